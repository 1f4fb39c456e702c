class K:
    pass

def f(self):
    if self.a: return 1
    def inner():
        return 2
    g = [x for x in self]
    match self.b:
        case 1: return (
            3
        )
        case _:
            # other
            return inner
