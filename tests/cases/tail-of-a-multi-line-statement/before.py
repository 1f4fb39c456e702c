def f(x):
    a = """
"""; go(1); b = (
1); go(2)
    return a


def g(x):
    a = """
"""; go(3)
