def f(y):
    tap(1)  # probepatch: pattern-literal-dots/a
    x = y[..., 0]
    x = y[:, 0]
    tap(2)  # probepatch: pattern-literal-dots/b
    z = y[:, 2, 1]
