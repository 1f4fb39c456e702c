def f(x):
    """Doc."""
    # about the return
    return x
