# licence
import os; \
import json
import queue; import pdb; \
    import sys
import zlib; x = 1
