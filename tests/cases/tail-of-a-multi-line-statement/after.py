def f(x):
    a = """
"""
    tap(1)  # probepatch: tail-of-a-multi-line-statement/a
    go(1); b = (
1)
    try:  # probepatch: tail-of-a-multi-line-statement/b
        go(2)
    finally:  # probepatch: tail-of-a-multi-line-statement/b
        stop()
    return a


def g(x):
    a = """
"""; go(3)
    tap(3)  # probepatch: tail-of-a-multi-line-statement/c
