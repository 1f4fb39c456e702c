def f(x):
    try:  # probepatch: around-nested-insert/e
        for i in x:
            pre(i)  # probepatch: around-nested-insert/h
            go(i)
            if on:  # probepatch: around-nested-insert/g
                tap("""a
b""")
    finally:  # probepatch: around-nested-insert/e
        stop()
    return x
