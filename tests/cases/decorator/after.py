@outer
@probe.cls  # probepatch: decorator/a
class K:
    @property
    # about f
    @probe.fn(1)  # probepatch: decorator/b
    def f(self):
        return 1
