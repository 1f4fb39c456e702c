async def f(self):
    out = await self.generate(
        request_id=uuid4().hex,  # new id
        n=run(self.n, 1, k=2),
    )
    return out
