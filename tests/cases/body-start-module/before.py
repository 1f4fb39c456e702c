#!/usr/bin/env python3
# licence
"""Doc."""
from __future__ import annotations

import os
