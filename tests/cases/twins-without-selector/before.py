import sys
if sys.platform == "linux":
    def load(p):
        return 1
else:
    @deco
    def load(p):
        return 2
