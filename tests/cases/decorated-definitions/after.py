class K:
    a = 1


    g = None
