"""Questions that run inside a side's interpreter: standard library only, Python 3.8 and later, nothing of this project imported.

Each file defines ``probe(given)``, which takes and returns JSON values.
"""
