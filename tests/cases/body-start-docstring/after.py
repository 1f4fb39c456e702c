def f(x):
    """Doc."""
    tap(x)  # probepatch: body-start-docstring/e
    # about the return
    return x
