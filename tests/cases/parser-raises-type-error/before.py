def f(path):
    return () if 0 else(lambda:())
