def f(x):
    y = 1

    tap(x.y[0], name='$OUT')  # probepatch: before-comment/e
    # run it
    # with care
    out = run(x.y[0])
    return out
