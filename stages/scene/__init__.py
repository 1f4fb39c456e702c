"""Stage 3: what runs on each side, which path of it, and where the three things of a capture are."""
