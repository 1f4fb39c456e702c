def f(x):
    go(1)
