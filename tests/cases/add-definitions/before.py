class K:
    """Doc."""

    a = 1

    def f(self):
        return self.a
    # end of K


print(K)
