"""Doc."""
import os  # probepatch: add-import-type-checking/a
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
