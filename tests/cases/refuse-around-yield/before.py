async def f(x):
    for i in x:
        yield i
