def f(x):
    tap(x)  # probepatch: body-start-one-line/e
    return x  # short
def g(x):
    "doc"
    tap(x)  # probepatch: body-start-one-line/g
    return x
