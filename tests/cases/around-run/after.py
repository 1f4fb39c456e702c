def f(x):
    try:  # probepatch: around-run/e
        a = x
        b = 1

        # c now
        c = x
    finally:  # probepatch: around-run/e
        stop()
    return c
