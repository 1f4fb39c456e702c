class K:
    a = 2
