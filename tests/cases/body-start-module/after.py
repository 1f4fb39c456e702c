#!/usr/bin/env python3
# licence
"""Doc."""
from __future__ import annotations
import probe  # probepatch: body-start-module/e

import os
