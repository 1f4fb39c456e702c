class K:
    """Doc."""
    probed = False  # probepatch: add-definitions/a

    a = 1

    def f(self):
        return self.a

    def probe(self):  # probepatch: add-definitions/m
        """Doc."""
        return self.a
    # end of K


print(K)


def helper():  # probepatch: add-definitions/f
    return 1
