"""The rules of input alignment, one file for each family. ``RULES`` is all of them, in the order of a report."""
