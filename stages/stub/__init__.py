"""Stage 8: a side's module inputs are overridden with those of the other side, and the capture is run again."""
