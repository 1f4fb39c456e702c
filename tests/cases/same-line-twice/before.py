def f():
    go()
