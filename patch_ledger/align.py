"""Where the bytes of one version of a file stand in another: matching blocks, by unique lines first, then ever finer."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

_WORDS = re.compile(rb"\w+|[^\S\n]+|\n|[^\w\s]")
_MOST_PAIRS = (
    1_000_000  # of equal parts to compare, which is what the search costs; beyond, a stretch counts as rewritten
)
_MOST_WORDS = 4000  # per side of a changed stretch; beyond, it counts as rewritten


@dataclass(frozen=True, slots=True)
class Block:
    """``size`` equal bytes at ``old`` in the old version and ``new`` in the new one."""

    old: int
    new: int
    size: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """Blocks in order, none touching the next on both sides; ``old_size`` and ``new_size`` are the versions' lengths."""

    blocks: tuple[Block, ...]
    old_size: int
    new_size: int

    def find(self, start: int, end: int) -> int | None:
        """Where the old bytes ``start:end`` stand in the new version, if all of them are in one block.

        An empty range must have an unchanged byte, or the file's end, on either side.
        """
        margin = 1 if start == end else 0
        first, last = max(start - margin, 0), min(end + margin, self.old_size)
        at = bisect_right(self.blocks, first, key=lambda block: block.old) - 1
        if at < 0:
            return 0 if self.old_size == self.new_size == 0 else None
        block = self.blocks[at]
        if last > block.old + block.size or first == last:
            return None
        at_head = start > 0 or margin == 0 or block.new == 0
        at_tail = end < self.old_size or margin == 0 or block.new + block.size == self.new_size
        return block.new + start - block.old if at_head and at_tail else None

    def old_at(self, new: int) -> int | None:
        """The old offset of a byte of the new version, if it is an old byte."""
        at = bisect_right(self.blocks, new, key=lambda block: block.new) - 1
        if at < 0 or new >= self.blocks[at].new + self.blocks[at].size:
            return None
        return self.blocks[at].old + new - self.blocks[at].new

    def gap(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the new version that stands where the old ``start:end`` was."""
        low, high = 0, self.new_size
        for block in self.blocks:
            if block.old < start:
                low = block.new + min(block.size, start - block.old)
            elif block.old + block.size > end:
                break
        for block in reversed(self.blocks):
            if block.old + block.size > end:
                high = block.new + max(0, end - block.old)
            elif block.old < start:
                break
        return low, max(low, high)


def align(old: bytes, new: bytes) -> Alignment:
    """Align two versions of a file."""
    head = old.rfind(b"\n", 0, _common(old, new)) + 1
    tail = _common_lines_at_end(old[head:], new[head:])
    blocks = [Block(0, 0, head)]
    blocks += _by_lines(old[head : len(old) - tail], new[head : len(new) - tail], head)
    blocks.append(Block(len(old) - tail, len(new) - tail, tail))
    return Alignment(tuple(_joined(blocks)), len(old), len(new))


def _common(one: bytes, other: bytes) -> int:
    """The length of the common prefix, by bisection over slices."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_lines_at_end(old: bytes, new: bytes) -> int:
    """The length of the common suffix, in whole lines: half a line could be the end of another one."""
    size = _common(old[::-1], new[::-1])
    if size < len(old) or size < len(new):
        line_end = old.find(b"\n", len(old) - size)
        size = len(old) - line_end - 1 if line_end >= 0 else 0
    return size


def _joined(blocks: Sequence[Block]) -> Iterator[Block]:
    current: Block | None = None
    for block in blocks:
        if not block.size:
            continue
        if current and current.old + current.size == block.old and current.new + current.size == block.new:
            current = Block(current.old, current.new, current.size + block.size)
            continue
        if current:
            yield current
        current = block
    if current:
        yield current


def _offsets(parts: Sequence[bytes]) -> list[int]:
    return list(accumulate((len(part) for part in parts), initial=0))


def _by_lines(old: bytes, new: bytes, shift: int) -> Iterator[Block]:
    """Blocks inside a changed stretch that begins at ``shift`` in both versions."""
    ours, theirs = re.findall(rb"[^\n]*\n|[^\n]+", old), re.findall(rb"[^\n]*\n|[^\n]+", new)
    our_at, their_at = _offsets(ours), _offsets(theirs)
    anchors = [(-1, -1), *_unique_lines(ours, theirs), (len(ours), len(theirs))]
    for (i1, j1), (i2, j2) in pairwise(anchors):
        if i1 >= 0:
            yield Block(shift + our_at[i1], shift + their_at[j1], len(ours[i1]))
        for a1, a2, b1, b2, equal in _trimmed_opcodes(ours[i1 + 1 : i2], theirs[j1 + 1 : j2]):
            start, there = our_at[i1 + 1 + a1], their_at[j1 + 1 + b1]
            end, there_end = our_at[i1 + 1 + a2], their_at[j1 + 1 + b2]
            if equal:
                yield Block(shift + start, shift + there, end - start)
            else:
                yield from _by_words(old[start:end], new[there:there_end], shift + start, shift + there)


def _by_words(old: bytes, new: bytes, old_at: int, new_at: int) -> Iterator[Block]:
    ours, theirs = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(ours), len(theirs)) > _MOST_WORDS:
        return
    our_at, their_at = _offsets(ours), _offsets(theirs)
    for a1, a2, b1, _b2, equal in _opcodes(ours, theirs):
        if equal:
            yield Block(old_at + our_at[a1], new_at + their_at[b1], our_at[a2] - our_at[a1])


def _trimmed_opcodes(ours: Sequence[bytes], theirs: Sequence[bytes]) -> Iterator[tuple[int, int, int, int, bool]]:
    """Opcodes of two stretches between unique lines; equal ends are taken off first, they may be long runs of equal lines."""
    most = min(len(ours), len(theirs))
    head = next((n for n in range(most) if ours[n] != theirs[n]), most)
    tail = next((n for n in range(most - head) if ours[-1 - n] != theirs[-1 - n]), most - head)
    yield 0, head, 0, head, True
    our_end, their_end = len(ours) - tail, len(theirs) - tail
    for a1, a2, b1, b2, equal in _opcodes(ours[head:our_end], theirs[head:their_end]):
        yield head + a1, head + a2, head + b1, head + b2, equal
    yield our_end, len(ours), their_end, len(theirs), True


def _opcodes(ours: Sequence[bytes], theirs: Sequence[bytes]) -> Iterator[tuple[int, int, int, int, bool]]:
    if not ours or not theirs:
        return
    ours_count, theirs_count = Counter(ours), Counter(theirs)
    if sum(count * theirs_count[part] for part, count in ours_count.items()) > _MOST_PAIRS:
        return
    from difflib import SequenceMatcher  # only a file that somebody changed needs it

    for tag, a1, a2, b1, b2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag in ("equal", "replace"):
            yield a1, a2, b1, b2, tag == "equal"


def _unique_lines(ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[tuple[int, int]]:
    """Lines that stand once in both versions, in the longest run of pairs that keeps both orders."""
    once = Counter(theirs)
    place = {line: j for j, line in enumerate(theirs) if once[line] == 1 and line.strip()}
    mine = Counter(ours)
    pairs = [(i, place[line]) for i, line in enumerate(ours) if mine[line] == 1 and line in place]
    ends: list[int] = []
    tops: list[int] = []
    below: list[int] = []
    for n, (_i, j) in enumerate(pairs):
        at = bisect_left(ends, j)
        below.append(tops[at - 1] if at else -1)
        ends[at : at + 1] = [j]
        tops[at : at + 1] = [n]
    run: list[tuple[int, int]] = []
    n = tops[-1] if tops else -1
    while n >= 0:
        run.append(pairs[n])
        n = below[n]
    return run[::-1]
