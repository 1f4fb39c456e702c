if sys.platform == "linux":
    def load(p):
        print(p)
else:
    def load(p):
        return ("other", p)

class Pool:
    @property
    def size(self):
        def load(p):
            return p
        return load(self._n)

    @size.setter
    def size(self, n):
        self._n = n

    @overload
    def get(self, k: int) -> int: ...
    def get(self, k):
        return k
