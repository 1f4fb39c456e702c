def f(
    x,  # the input
):  # header comment
    # about the return
    return x
