# engine side
from eng import tokens  # noqa

def f(a):
    # the sum
    x = a[
        0
    ] + 1  # end
    if a: y = 1; return y
    return x
