# engine side
from eng_probe import tokens  # noqa

def f(a):
    # the sum
    if on:  # probepatch: replace-statement/b
        x = add(a[
        0
    ], 1)
    else:
        x = a[
        0
    ] + 1  # end
    if a: y = 2; return y
    return x
