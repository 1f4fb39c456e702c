"""Programs that run inside a side's own interpreter: standard library at the top, the side's packages inside functions."""
