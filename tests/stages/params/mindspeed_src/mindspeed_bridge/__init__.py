"""A second source of bridges, beside the first."""
