def f():
    """Doc."""
    tap()  # probepatch: body-start-docstring-only/e
