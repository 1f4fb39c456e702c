import a
# about b

def f(x):
    if x:
        # only
        pass  # go
    x = 1; z = 3  # all
