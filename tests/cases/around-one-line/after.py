def f(x):
    if x:
        start()  # probepatch: around-one-line/e
        try:
            go(1)
        finally:  # probepatch: around-one-line/e
            stop()
    go(2)
    try:  # probepatch: around-one-line/g
        go(3)
    finally:  # probepatch: around-one-line/g
        stop()
    go(4)
