import ast  # probepatch: import
from late import later  # probepatch: import

from x import y  # probepatch: import

import os
try:
    import verl
except ImportError:
    verl = None
if os.name == "nt":
    import winreg

from verl.a import a  # isort: skip
from verl import probe  # probepatch: import
from verl.utils import b

# isort: off
from verl import c
# isort: on
os.environ["A"] = "1"
from late import d
