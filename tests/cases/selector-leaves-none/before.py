def load(p):
    return 1
