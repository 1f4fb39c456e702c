def f(x):
    go(1)
    if x:
        go(2)
