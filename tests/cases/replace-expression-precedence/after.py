def f(x, y):
    z = 2 * (x + 1)
    if not (a, b):
        send((a, b))
    return [x + 1]
