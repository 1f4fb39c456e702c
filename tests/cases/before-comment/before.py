def f(x):
    y = 1

    # run it
    # with care
    out = run(x.y[0])
    return out
