def f(a, b, c):
    y = get(a if b else c)
    z = get(
        a  # first
        + b
    )
    p, q = run()
    call(a or b)
