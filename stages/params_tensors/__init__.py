"""Stage 5, the tensors: what both sides hold by name, shape and dtype, and whether it is the same to the bit."""
