"""For those who write recipes: diagnose, port, record, test, and recipe by version. Works on recipes and trees, writes neither."""
