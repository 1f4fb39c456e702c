# licence
"""Doc."""
LOADED = 1  # probepatch: add-import-above-the-first/b

from verl import probe  # probepatch: import

# the usual
import os
