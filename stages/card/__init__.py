"""The task card: facts, permissions and evidence of one capture, in one JSON file that nobody has to trust blindly."""
