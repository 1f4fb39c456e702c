from __future__ import annotations

from probekit import tap  # probepatch: import

import os, sys
from x import (
    a,
    b as c,
)

def f():
    """Doc."""
    import numpy as np  # probepatch: add-import/c
    return 1

def g():
    import json
    return json
