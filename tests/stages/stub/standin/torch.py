"""A stand-in for torch where it is not installed: float tensors as lists, files as zip archives of JSON. As much as the payloads
need for the rules rename, add_batch, drop_batch and sum; the real one is used in test_real.py."""

from __future__ import annotations

import json
import math
import os
import pickle
import time
import zipfile
from contextlib import nullcontext
from types import SimpleNamespace

__version__ = "stand-in"
strided, contiguous_format, float32, float64, uint8 = "strided", None, "torch.float32", "torch.float64", "torch.uint8"
no_grad = nullcontext


class Tensor:
    layout, is_quantized, device = strided, False, SimpleNamespace(type="cpu")

    def __init__(self, numbers, shape, dtype=float32):
        self.numbers, self.shape, self.dtype = list(numbers), tuple(shape), dtype

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return 1

    def is_complex(self):
        return False

    def is_floating_point(self):
        return self.dtype.startswith("torch.float")

    def detach(self, **_options):
        return self

    clone = contiguous = detach

    def view(self, dtype):
        assert dtype == uint8
        return Tensor([float(one).hex() for one in self.numbers], self.shape, dtype)

    def reshape(self, *_shape):
        return Tensor(self.numbers, [len(self.numbers)], self.dtype)

    def to(self, dtype):
        return Tensor(self.numbers, self.shape, dtype)

    def unsqueeze(self, axis):
        return Tensor(self.numbers, [*self.shape[:axis], 1, *self.shape[axis:]], self.dtype)

    def squeeze(self, axis):
        return Tensor(self.numbers, [*self.shape[:axis], *self.shape[axis + 1 :]], self.dtype)

    def isnan(self):
        return Tensor([one != one for one in self.numbers], self.shape, "torch.bool")

    def any(self):
        return any(self.numbers)

    def norm(self):
        return math.sqrt(sum(one * one for one in self.numbers))

    def dot(self, other):
        return sum(a * b for a, b in zip(self.numbers, other.numbers, strict=True))

    def __add__(self, other):
        return Tensor([a + b for a, b in zip(self.numbers, other.numbers, strict=True)], self.shape, self.dtype)

    def __sub__(self, other):
        return self + Tensor([-one for one in other.numbers], other.shape)

    def abs(self):
        return Tensor(map(abs, self.numbers), self.shape)

    def max(self):
        return max(self.numbers)


nn = SimpleNamespace(Parameter=Tensor)


def equal(one, other):
    return one.shape == other.shape and one.numbers == other.numbers


def save(tensor, file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data.json", json.dumps([tensor.numbers, tensor.shape, tensor.dtype]))
    if "STANDIN_WAIT" in os.environ:  # says that it has begun, and goes on when it may
        open(os.environ["STANDIN_WAIT"] + ".begun", "w").close()
        while not os.path.exists(os.environ["STANDIN_WAIT"]):
            time.sleep(0.01)


def load(path, *, map_location, weights_only):
    assert weights_only
    assert map_location == "cpu"
    with zipfile.ZipFile(path) as archive:
        text = archive.read("data.json")
    if text.startswith(b"pickle"):
        raise pickle.UnpicklingError("weights_only")
    found = json.loads(text)
    return Tensor(*found) if isinstance(found, list) else found
