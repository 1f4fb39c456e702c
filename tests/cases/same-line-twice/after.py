def f():
    one()  # probepatch: same-line-twice/a
    two()  # probepatch: same-line-twice/b
    try:  # probepatch: same-line-twice/c
        go()
    finally:  # probepatch: same-line-twice/c
        three()
    four()  # probepatch: same-line-twice/d
