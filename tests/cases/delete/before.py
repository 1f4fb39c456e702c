import a
# about b
import b  # noqa

def f(x):
    if x:
        # only
        go(1)  # go
    x = 1; y = 2; z = 3  # all
