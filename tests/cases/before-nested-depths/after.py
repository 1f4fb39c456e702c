def f(x):
    def nested():
        go(0)
    try:
        tap(1)  # probepatch: before-nested-depths/e
        go(1)
    except E:
        tap(2)  # probepatch: before-nested-depths/e
        go(2)
    else:
        tap(3)  # probepatch: before-nested-depths/e
        go(3)
    finally:
        tap(4)  # probepatch: before-nested-depths/e
        go(4)
    with a, b:
        while x:
            tap(5)  # probepatch: before-nested-depths/e
            go(5)
    match x:
        case 1:
            tap(6)  # probepatch: before-nested-depths/e
            go(6)
    lambda: go(7)
