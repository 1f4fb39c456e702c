def f(x):
    go(1)
    go(2)
