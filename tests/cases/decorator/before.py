@outer
class K:
    @property
    # about f
    def f(self):
        return 1
