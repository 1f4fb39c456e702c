#!/usr/bin/env python3
# licence
"""Doc."""

from __future__ import annotations

import abc  # probepatch: import
import json as js  # probepatch: import
import numpy  # probepatch: import

import os; import sys
from contextlib import contextmanager  # probepatch: import
from dataclasses import (
    dataclass,
    field,
)

import torch
import verl.probe  # probepatch: import
import torch.fx  # probepatch: import
from verl import DataProto
from verl import tap  # probepatch: import
from verl.single_controller.base import (
    Worker,
)
from verl.utils import probe  # probepatch: import
# about workers
from verl.workers import actor

from ..b import c
from . import near  # probepatch: import
from .d import e

from verl.zebra import z
