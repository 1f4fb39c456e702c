"""The ten stages of a capture around the patch engine. Each takes the task card and leaves its evidence in it."""
