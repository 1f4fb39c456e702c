async def f(x):
    with one, (yield_) as b, probe(x) as p:  # c
        pass
    with (
        two(1) as a,
        b,  # last
        probe(1, a),
    ):
        pass
    with (x := three()), probe(x): pass
    async with four as y, probe(y):
        pass
