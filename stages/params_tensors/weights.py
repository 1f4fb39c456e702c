"""The comparison itself: equal bytes first, values only where bytes differ; several tensors at a time, in bounded memory."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from locales import _
from stages.params_tensors.difference import BUDGET, Difference
from stages.params_tensors.dtypes import values, width
from stages.params_tensors.streams import CHUNK, Files, Stream
from stages.params_tensors.tensors import View
from stages.params_tensors.verdicts import (
    DIFF,
    DTYPE_DIFF,
    EXACT,
    EXACT_UP_TO_PADDING,
    QUANTIZED,
    UNSUPPORTED,
    Finding,
    Pair,
)

MOST_THREADS = 8
Step = Callable[[int], object]


def compare(pairs: Iterable[Pair], threads: int | None, step: Step) -> list[Finding]:
    """A finding for each pair, in their order. ``step`` is told how many bytes are done. Raises TensorFileError."""
    todo = list(pairs)
    largest_first = sorted(range(len(todo)), key=lambda number: -todo[number].train.length)
    with Files() as files, ThreadPoolExecutor(threads or min(os.cpu_count() or 1, MOST_THREADS)) as pool:
        jobs = {number: pool.submit(_compare, todo[number], files, step) for number in largest_first}
        try:
            return [jobs[number].result() for number in range(len(todo))]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _compare(pair: Pair, files: Files, step: Step) -> Finding:
    out = Finding(pair.name, pair.verdict, pair.train, pair.infer, pair.note)
    if pair.verdict == QUANTIZED:
        return _dequantised(pair, out, files)
    if pair.verdict not in (EXACT, EXACT_UP_TO_PADDING, DTYPE_DIFF):
        return out
    if not (pair.train.readable and pair.infer.readable):
        return _by_hash(pair, out, files, step)
    a, b = Stream(pair.train, files), Stream(pair.infer, files)
    elements = math.prod(pair.train.shape)
    used = elements if pair.rows is None else pair.rows * math.prod(pair.train.shape[1:])
    found = _difference(pair, a, b, used, step)
    if pair.verdict == DTYPE_DIFF:
        said = {
            "equal": _("values equal"),
            "equal_after_cast": _("values equal after the cast"),
            "nan": _("values equal but for NaN"),
        }
        note = said.get(found.values, _("values differ, too"))
        return replace(out, note=_with(out.note, note), difference=found.as_json(pair.train.shape))
    if found.differing:
        notes = {"equal": _("bits differ, values are equal (the sign of zeros)"), "nan": _("both NaN, bits differ")}
        return replace(
            out,
            verdict=DIFF,
            note=_with(out.note, notes.get(found.values, "")),
            difference=found.as_json(pair.train.shape),
        )
    if pair.rows is None:
        return replace(out, difference=found.as_json(pair.train.shape))
    same_padding = pair.verdict == EXACT and not _difference(pair, a, b, elements - used, step).differing
    note = _("rows 0 to {last} are equal; {a} and {b} rows are stored").format(
        last=pair.rows - 1, a=pair.train.shape[0], b=pair.infer.shape[0]
    )
    return replace(
        out,
        verdict=EXACT if same_padding else EXACT_UP_TO_PADDING,
        note=out.note if same_padding else _with(out.note, note),
        difference=found.as_json(pair.train.shape),
    )


def _with(note: str, more: str) -> str:
    return "; ".join(part for part in (note, more) if part)


def _difference(pair: Pair, a: Stream, b: Stream, elements: int, step: Step) -> Difference:
    """The next ``elements`` of both."""
    dtype_a, dtype_b = pair.train.dtype, pair.infer.dtype
    size_a, size_b = width(dtype_a), width(dtype_b)
    found = Difference(elements)
    each = min(CHUNK // max(size_a, size_b), elements)
    left, right = bytearray(each * size_a), bytearray(each * size_b)
    done = 0
    while done < elements:
        count = min(each, elements - done)
        if count < each:
            left, right = bytearray(count * size_a), bytearray(count * size_b)
        a.fill(memoryview(left))
        b.fill(memoryview(right))
        if dtype_a != dtype_b:
            found.other_dtype(dtype_a, bytes(left), dtype_b, bytes(right), done)
        elif left != right:
            found.same_dtype(dtype_a, bytes(left), bytes(right), done)
        done += count
        step(count * size_a)
    return found


def _by_hash(pair: Pair, out: Finding, files: Files, step: Step) -> Finding:
    """Where a side has only hashes: equal or not, nothing more is known."""
    if pair.verdict != EXACT:
        return replace(
            out, verdict=UNSUPPORTED, note=_("only a hash is known; that says nothing about another shape or dtype")
        )
    hashes = [_sha256(view, files) for view in (pair.train, pair.infer)]
    step(pair.train.length)
    if None in hashes:
        why = _("its values are not known: not saved, or only a hash of another piece is known")
        return replace(out, verdict=UNSUPPORTED, note=_with(out.note, why))
    if hashes[0] == hashes[1]:
        return replace(out, note=_with(out.note, _("by SHA-256")))
    return replace(out, verdict=DIFF, note=_with(out.note, _("by SHA-256; save the tensors to see where")))


def _sha256(view: View, files: Files) -> str | None:
    if view.sha256 is not None or not view.readable:
        return view.sha256
    stream, sha, left = Stream(view, files), hashlib.sha256(), view.length
    while left:
        buffer = bytearray(min(CHUNK, left))
        stream.fill(memoryview(buffer))
        sha.update(buffer)
        left -= len(buffer)
    return sha.hexdigest()


def _dequantised(pair: Pair, out: Finding, files: Files) -> Finding:
    """A tensor-wide scale is applied to the first elements; other scales need a rule that nobody gave."""
    packed, plain = (
        (pair.train, pair.infer) if width(pair.train.dtype) < width(pair.infer.dtype) else (pair.infer, pair.train)
    )
    scale = pair.scale
    if (
        scale is None
        or math.prod(scale.shape) != 1
        or scale.dtype not in ("F32", "BF16", "F16")
        or packed.shape != plain.shape
    ):
        return replace(out, note=_with(out.note, _("it needs to be dequantised; not computed")))
    if not (packed.readable and plain.readable and scale.readable):
        return replace(out, note=_with(out.note, _("the values are not saved; not computed")))
    elements = math.prod(plain.shape)
    count = min(elements, BUDGET)
    factor = values(scale.dtype, _head(scale, 1, files))[0]
    numbers = [factor * value for value in values(packed.dtype, _head(packed, count, files))]
    wanted = values(plain.dtype, _head(plain, count, files))
    worst = max((abs(one - other) for one, other in zip(numbers, wanted, strict=True)), default=0.0)
    of = "" if count == elements else _(" (of the first {count} elements)").format(count=count)
    if list(wanted) == numbers:
        said = _("equal when dequantised")
    else:
        said = _("differs when dequantised, by {size:g} at most").format(size=worst)
    return replace(out, note=_with(out.note, said + of))


def _head(view: View, count: int, files: Files) -> bytes:
    raw = bytearray(count * width(view.dtype))
    Stream(view, files).fill(memoryview(raw))
    return bytes(raw)
