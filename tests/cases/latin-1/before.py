# -*- coding: latin-1 -*-
name = "äöü"
def f():
    return "é"  # ß
