def f():
    a = 1; b = 2; c = 3  # three
    if a: d = 4; return d
    return 0
