class K:
	@deco
	async def f(self):
		"""Doc."""

		# first
		if self:
			return 1

		await x
