def f(x):
    for i in x:
        use(i)
    tap(x)  # probepatch: body-end/e
    # the end


class K:
    a = 1
    b = 2  # probepatch: body-end/k


print(K)
READY = True  # probepatch: body-end/m
