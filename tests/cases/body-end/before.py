def f(x):
    for i in x:
        use(i)
    # the end


class K:
    a = 1


print(K)
