def f(x):
    yield x
