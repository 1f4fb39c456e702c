def f(x):
    if x: go(1)
    go(2); go(3); go(4)
