# coding: klingon
def f():
    return 1
