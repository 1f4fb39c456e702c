"""Stage 6: both sides patched or none, their msprobe configs, the environment they are started with; and the run itself."""
