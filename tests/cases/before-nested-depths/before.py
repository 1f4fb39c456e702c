def f(x):
    def nested():
        go(0)
    try:
        go(1)
    except E:
        go(2)
    else:
        go(3)
    finally:
        go(4)
    with a, b:
        while x:
            go(5)
    match x:
        case 1:
            go(6)
    lambda: go(7)
