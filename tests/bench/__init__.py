"""What probepatch costs beside public tools that do the same work. ``python -m tests.bench``."""
