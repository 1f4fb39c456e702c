#!/usr/bin/env python3
# licence
"""Doc."""

from __future__ import annotations

import os; import sys
from dataclasses import (
    dataclass,
    field,
)

import torch
from verl import DataProto
from verl.single_controller.base import (
    Worker,
)
# about workers
from verl.workers import actor

from ..b import c
from .d import e

from verl.zebra import z
