import os

def f():
    tap()  # probepatch: form-feed-and-long/a
    return 1
