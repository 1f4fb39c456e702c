"""Stage 1: is the place fit for the capture? One check a file; each gives findings that say what was seen and what to do."""
