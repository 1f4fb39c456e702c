def f(x, y):
    z = 2 * get(x)
    if not get(x):
        send(get(x))
    return [get(x)]
