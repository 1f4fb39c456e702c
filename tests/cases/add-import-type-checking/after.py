"""Doc."""

import os  # probepatch: import
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
