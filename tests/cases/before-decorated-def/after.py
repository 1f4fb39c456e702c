import os


LOADED = 1  # probepatch: before-decorated-def/m
# f does it
@deco
def f(x):
    y = 1

    tap()  # probepatch: before-decorated-def/e
    # inner
    @wraps(x)
    def inner(a: int, *, b=2) -> int:
        return a

    return inner
