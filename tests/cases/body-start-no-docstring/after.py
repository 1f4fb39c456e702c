def f(
    x,  # the input
):  # header comment
    tap(x)  # probepatch: body-start-no-docstring/e
    # about the return
    return x
