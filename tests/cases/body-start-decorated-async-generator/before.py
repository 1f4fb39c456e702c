class K:
    @deco(
        1,
    )
    @staticmethod
    async def f(self):
        await g(self)

    def g(self):
        yield 1
