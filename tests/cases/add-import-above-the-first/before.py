# licence
"""Doc."""

# the usual
import os
