# -*- coding: latin-1 -*-
name = "äöü"
def f():
    tap('ü')  # probepatch: latin-1/a
    return "é"  # ß
