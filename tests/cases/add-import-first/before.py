# licence
# two lines
@final
class A:
    pass
