"""Recipe + source bytes -> plan. Reads a checkout, never writes one. Importing this package imports nothing else."""
