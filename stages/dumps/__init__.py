"""Stage 7: what the run left behind, read as it is; comparable or not, and why."""
