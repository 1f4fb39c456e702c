"""As much of torch as the helpers touch."""


class _Distributed:
    @staticmethod
    def is_initialized():
        return False


distributed = _Distributed()


class Tensor:
    """A matrix of numbers."""

    dtype = "torch.float32"

    def __init__(self, rows):
        self.rows = rows

    @property
    def shape(self):
        return (len(self.rows), len(self.rows[0])) if isinstance(self.rows[0], list) else (len(self.rows),)

    def dim(self):
        return len(self.shape)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        return Tensor([row[place[1]] for row in self.rows])

    def tolist(self):
        return self.rows
