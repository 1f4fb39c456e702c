import os


# f does it
@deco
def f(x):
    y = 1

    # inner
    @wraps(x)
    def inner(a: int, *, b=2) -> int:
        return a

    return inner
