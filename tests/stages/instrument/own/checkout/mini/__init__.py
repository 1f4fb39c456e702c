"""A trainer that nobody knows: three statements, and a loop over them."""

__version__ = "1.0"
