"""The examples that recipes carry, run with their variants."""
