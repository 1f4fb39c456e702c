def f(a, b, c):
    y = (a if b else c) * 2
    tap((a  # first  # probepatch: hole-precedence/b
        + b))
    keep = (a  # first
        + b)
    z = get(
        a  # first
        + b
    )
    tap((p, q))  # probepatch: hole-precedence/c
    p, q = run()
    call(a or b, k=a or b)
