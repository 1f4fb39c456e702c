async def f(x):
    with one, (yield_) as b:  # c
        pass
    with (
        two(1) as a,
        b,  # last
    ):
        pass
    with (x := three()): pass
    async with four as y:
        pass
