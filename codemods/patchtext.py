"""A unified diff in bytes that `git apply` accepts and that gives exactly the bytes of ``after``.

Lines end at ``\\n`` only, whatever else stands in them: a lone CR, a form feed or a byte that is no UTF-8 is content.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ESCAPES = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
_REGULAR = 0o100644
_EXECUTABLE = 0o100755
_LOOK_LIMIT = 2_000_000  # comparisons of equal lines, about a second


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines ``old[old_start:old_end]`` give way to ``new[new_start:new_end]``, context included; ``lines`` begin with '
    ', '-' or '+'."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    lines: tuple[bytes, ...]

    @property
    def header(self) -> bytes:
        """``@@ -3,7 +3,8 @@``; an empty range names the line before it, as POSIX says."""
        return b"@@ -%s +%s @@" % (_range(self.old_start, self.old_end), _range(self.new_start, self.new_end))


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their ``\\n``; the last one may lack it."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def hunks(before: bytes, after: bytes, context: int = 3) -> Iterator[Hunk]:
    """The differences with ``context`` unchanged lines around them."""
    old, new = split_lines(before), split_lines(after)
    for group in _groups(_changes(old, new), 2 * context):
        start, end = max(group[0][0] - context, 0), min(group[-1][1] + context, len(old))
        lines, at = [], start
        for i1, i2, j1, j2 in group:
            lines += [b" " + line for line in old[at:i1]]
            lines += [b"-" + line for line in old[i1:i2]] + [b"+" + line for line in new[j1:j2]]
            at = i2
        lines += [b" " + line for line in old[at:end]]
        new_start, new_end = start + group[0][2] - group[0][0], end + group[-1][3] - group[-1][1]
        yield Hunk(start, end, new_start, new_end, tuple(lines))


def file_patch(path: str, before: bytes | None, after: bytes | None, mode: int = _REGULAR) -> bytes:
    """The patch of one file; empty when nothing changes.

    ``path`` is relative, with ``/``; None stands for a file that does not exist; ``mode`` is the file's st_mode or its
    permission bits.
    """
    if before == after:
        return b""
    name = path.encode("utf-8", "surrogateescape")
    ours, theirs = quoted(b"a/" + name), quoted(b"b/" + name)
    git_mode = _EXECUTABLE if mode & 0o100 else _REGULAR
    head = [b"diff --git %s %s" % (ours, theirs)]
    if before is None:
        head.append(b"new file mode %o" % git_mode)
    elif after is None:
        head.append(b"deleted file mode %o" % git_mode)
    body = [
        line
        for hunk in hunks(before or b"", after or b"")
        for line in (hunk.header + b"\n", *map(_printed, hunk.lines))
    ]
    if body:
        head.append(b"--- " + (_label(ours) if before is not None else b"/dev/null"))
        head.append(b"+++ " + (_label(theirs) if after is not None else b"/dev/null"))
    return b"".join(line + b"\n" for line in head) + b"".join(body)


def quoted(name: bytes) -> bytes:
    """A path as git writes it: C-quoted when it holds a quote, a backslash, a control character or a byte outside
    ASCII."""
    if not any(c < 32 or c > 126 or c in _ESCAPES for c in name):
        return name
    return b'"%s"' % b"".join(
        b"\\" + _ESCAPES[c] if c in _ESCAPES else (bytes([c]) if 32 <= c <= 126 else b"\\%03o" % c) for c in name
    )


def _label(name: bytes) -> bytes:
    """A name in a ``---`` or ``+++`` line: a tab ends one that holds spaces, or a date would be looked for behind
    it."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def _printed(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _range(start: int, end: int) -> bytes:
    count = end - start
    if count == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if count else start, count)


Change = tuple[int, int, int, int]
"""``old[i1:i2]`` gives way to ``new[j1:j2]``."""


def _changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[Change]:
    """What lies between the lines that both have, from top to bottom."""
    found, i, j = [], 0, 0
    for same_i, same_j in [*_pairs(old, new), (len(old), len(new))]:
        if (i, j) != (same_i, same_j):
            found.append((i, same_i, j, same_j))
        i, j = same_i + 1, same_j + 1
    return found


def _groups(changes: Sequence[Change], gap: int) -> Iterator[list[Change]]:
    """Changes with at most ``gap`` unchanged lines between them stand in one hunk."""
    group: list[Change] = []
    for change in changes:
        if group and change[0] - group[-1][1] > gap:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _pairs(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Equal lines in order: common head and tail first, then between lines that are unique in both (a patience
    diff)."""
    pairs: list[tuple[int, int]] = []
    todo = [(0, len(old), 0, len(new))]
    while todo:
        i1, i2, j1, j2 = todo.pop()
        while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
            pairs.append((i1, j1))
            i1, j1 = i1 + 1, j1 + 1
        while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
            i2, j2 = i2 - 1, j2 - 1
            pairs.append((i2, j2))
        if i1 == i2 or j1 == j2:
            continue
        anchors = [(i1 + i, j1 + j) for i, j in _anchors(old[i1:i2], new[j1:j2])]
        if not anchors:
            pairs += [(i1 + i, j1 + j) for i, j in _closest(old[i1:i2], new[j1:j2])]
            continue
        pairs += anchors
        starts = [(i1, j1), *((i + 1, j + 1) for i, j in anchors)]
        todo += [(i, end_i, j, end_j) for (i, j), (end_i, end_j) in zip(starts, [*anchors, (i2, j2)], strict=True)]
    return sorted(pairs)


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """The longest rising run of lines that occur once in ``old`` and once in ``new``."""
    in_old, in_new = _unique(old), _unique(new)
    tops: list[int] = []  # tops[n]: the smallest new line that ends a run of n + 1
    piles: list[tuple[int, int, int]] = []  # (old line, new line, the entry before it in its run)
    entry_of: list[int] = []
    for line, i in in_old.items():
        j = in_new.get(line)
        if j is None:
            continue
        n = bisect.bisect_left(tops, j)
        piles.append((i, j, entry_of[n - 1] if n else -1))
        tops[n : n + 1] = [j]
        entry_of[n : n + 1] = [len(piles) - 1]
    run = []
    at = entry_of[-1] if entry_of else -1
    while at >= 0:
        i, j, at = piles[at]
        run.append((i, j))
    return run[::-1]


def _unique(lines: Sequence[bytes]) -> dict[bytes, int]:
    """Lines that occur once, in order, with their index."""
    counts = Counter(lines)
    return {line: index for index, line in enumerate(lines) if counts[line] == 1}


def _closest(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Equal lines of two pieces without unique lines in common; none where looking for them would take too long."""
    counts = Counter(new)
    if sum(counts[line] for line in old) > _LOOK_LIMIT:
        return []
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(block.a + n, block.b + n) for block in blocks for n in range(block.size)]
