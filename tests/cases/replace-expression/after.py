async def f(self):
    out = await self.generate(
        request_id=fixed_id(),  # new id
        n=probe(self.n),
    )
    return out
