class K:
    @deco(
        1,
    )
    @staticmethod
    async def f(self):
        tap(self)  # probepatch: body-start-decorated-async-generator/e
        await g(self)

    def g(self):
        tap(self)  # probepatch: body-start-decorated-async-generator/g
        yield 1
