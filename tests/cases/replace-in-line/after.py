def f():
    a = 1
    b = 3  # probepatch: replace-in-line/a
    tap(b)
    c = 3
    return c
