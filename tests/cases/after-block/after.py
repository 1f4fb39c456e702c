def f(x):
    for i in x:
        use(i)  # each
        used(i)  # probepatch: after-block/i
        # last comment
    else:
        nothing()
    done(x)  # probepatch: after-block/e