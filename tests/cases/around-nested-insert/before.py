def f(x):
    for i in x:
        go(i)
    return x
