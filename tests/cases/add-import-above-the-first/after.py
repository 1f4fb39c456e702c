# licence
"""Doc."""
LOADED = 1  # probepatch: add-import-above-the-first/b

# the usual
from verl import probe  # probepatch: import
import os
