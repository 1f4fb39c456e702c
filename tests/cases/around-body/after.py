class K:
	@deco
	async def f(self):
		"""Doc."""

		# first
		start()  # probepatch: around-body/e
		try:
			if self:
				return 1

			await x
		finally:  # probepatch: around-body/e
			stop()
