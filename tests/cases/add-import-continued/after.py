# licence

import abc  # probepatch: import
import os; \
import json
import pickle  # probepatch: import
import queue; import pdb; \
    import sys
import re  # probepatch: import
import zlib; x = 1
