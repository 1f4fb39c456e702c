def f(x):
    for i in x:
        use(i)  # each
        # last comment
    else:
        nothing()