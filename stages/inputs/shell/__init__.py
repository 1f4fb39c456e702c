"""A small honest reader of bash: what a script would run, with the place in the file of every byte of every argument."""
