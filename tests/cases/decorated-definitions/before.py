class K:
    a = 1

    @property
    def f(self):
        return 1

    @deco(
        1,
    )
    def g(self):
        return 2
