def f():
    """x = call('a', b)"""
    s = "x = call('a', b)"
    tap((b))  # probepatch: pattern-syntax-not-text/a
    x = call(  # now
        "a",
        (b),
        c=1,
    )
    x = call("b", b)
