def f():
    """x = call('a', b)"""
    s = "x = call('a', b)"
    x = call(  # now
        "a",
        (b),
        c=1,
    )
    x = call("b", b)
