class K:
    pass

def f(self):
    if self.a:
        tap(self)  # probepatch: before-each-return/e
        return 1
    def inner():
        return 2
    g = [x for x in self]
    match self.b:
        case 1:
            tap(self)  # probepatch: before-each-return/e
            return (
            3
        )
        case _:
            tap(self)  # probepatch: before-each-return/e
            # other
            return inner
