def f(path):
    try:
        return open(path)
    except OSError :
        return None
