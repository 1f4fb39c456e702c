def f(x):
    tap(x)
    went(x)
