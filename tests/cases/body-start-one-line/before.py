def f(x): return x  # short
def g(x): "doc"; return x
