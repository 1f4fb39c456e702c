from __future__ import annotations
import os, sys
from x import (
    a,
    b as c,
)

def f():
    """Doc."""
    return 1

def g():
    import json
    return json
