def f(x):
    a = x
    b = 1

    # c now
    c = x
    return c
