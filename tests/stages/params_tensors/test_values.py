"""Bits to numbers, without numpy and with it: the same."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.params_tensors import difference
from stages.params_tensors.difference import Difference
from stages.params_tensors.dtypes import READABLE, rounded_to_bf16, values, widened, width


def test_eight_bits():
    e4m3, e5m2 = (values(dtype, bytes(range(256))) for dtype in ("F8_E4M3", "F8_E5M2"))
    assert (e4m3[0x38], e4m3[0x30], e4m3[0x7E], e4m3[0x01], e4m3[0xB8]) == (1.0, 0.5, 448.0, 2.0**-9, -1.0)
    assert sum(map(math.isnan, e4m3)) == 2
    assert (e5m2[0x3C], e5m2[0x7B], e5m2[0x7C], e5m2[0x01]) == (1.0, 57344.0, math.inf, 2.0**-16)
    assert sum(map(math.isnan, e5m2)) == 6
    assert values("F8_E8M0", b"\x7f\x80\x00")[:3] == [1.0, 2.0, 2.0**-127]


@given(st.lists(st.integers(0, 0xFFFFFFFF), min_size=1, max_size=40))
def test_rounding_is_to_nearest_even(words):
    raw = struct.pack(f"<{len(words)}I", *words)
    numbers = struct.unpack(f"<{len(words)}f", raw)
    found = rounded_to_bf16(raw)
    if any(map(math.isnan, numbers)):
        assert found is None
        return
    for word, bits in zip(words, struct.unpack(f"<{len(words)}H", found), strict=True):
        low, high = word & 0xFFFF, word >> 16
        assert bits == high + (low > 0x8000 or (low == 0x8000 and high & 1))


@given(st.binary(min_size=2, max_size=64).filter(lambda raw: len(raw) % 2 == 0))
def test_widening_is_exact(raw):
    assert list(widened(raw)[2::4] + widened(raw)[3::4]) == list(raw[0::2] + raw[1::2])
    assert not any(widened(raw)[0::4] + widened(raw)[1::4])


@settings(max_examples=300)
@given(st.sampled_from(sorted(READABLE)), st.integers(1, 20), st.data())
def test_both_ways_measure_the_same(dtype, count, data):
    if difference.by_numpy.np is None:
        pytest.skip("no numpy")
    raw = st.binary(min_size=count * width(dtype), max_size=count * width(dtype))
    a, b = data.draw(raw), data.draw(raw)
    if a == b:
        return
    numpy, found = difference.by_numpy.np, []
    for module in (None, numpy):
        difference.by_numpy.np = module
        try:
            one = Difference(count)
            one.same_dtype(dtype, a, b, 7)
        finally:
            difference.by_numpy.np = numpy
        found.append((one.first, one.differing, one.measured))
        if dtype not in ("C64", "F64", "I64", "U64"):  # of these numpy's differences are rounded, or of whole numbers
            found[-1] += (one.largest, one.both_nan, one.signs, one.not_finite)
    assert found[0] == found[1]
