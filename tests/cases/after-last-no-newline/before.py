def f():
    y = 1