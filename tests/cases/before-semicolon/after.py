def f():
    a = 1
    tap()  # probepatch: before-semicolon/e
    b = 2; c = 3  # three
    if a:
        d = 4
        tap()  # probepatch: before-semicolon/g
        return d
    return 0
