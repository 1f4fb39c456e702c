"""Scripts that run in a side's interpreter: standard library only, and msprobe where it is asked for."""
