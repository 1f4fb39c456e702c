if sys.platform == "linux":
    def load(p):
        print(p)
        pass
else:
    def load(p):
        tap(p)  # probepatch: select-twins/a
        return ("other", p)

class Pool:
    @property
    def size(self):
        def load(p):
            tap(p)  # probepatch: select-twins/d
            return p
        return load(self._n)

    @size.setter
    def size(self, n):
        tap(n)  # probepatch: select-twins/b
        self._n = n

    @overload
    def get(self, k: int) -> int: ...
    def get(self, k):
        tap(k)  # probepatch: select-twins/c
        return k
