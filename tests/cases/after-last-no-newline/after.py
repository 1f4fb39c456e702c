def f():
    y = 1
    tap(y)  # probepatch: after-last-no-newline/e