def f(x):
    go(i for i in x)
