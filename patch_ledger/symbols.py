"""Where a symbol stands in a file, as far as the file can be read; and whether it compiles."""

from __future__ import annotations

import warnings

_BOM = b"\xef\xbb\xbf"


def span(data: bytes, symbol: str) -> tuple[int, int]:
    """The bytes of the definition with this qualified name; the whole file when there is not exactly one."""
    if not symbol or not compiles(data):
        return 0, len(data)
    shift = len(_BOM) if data.startswith(_BOM) else 0
    try:
        data[shift:].decode()
    except UnicodeDecodeError:
        return 0, len(data)
    from codemods.outline import outline  # needs ast, and only a file that somebody rearranged needs it

    found = outline(data[shift:]).named(symbol)
    return (found[0].start + shift, found[0].end + shift) if len(found) == 1 else (0, len(data))


def compiles(data: bytes) -> bool:
    """Whether the running Python compiles these bytes; nothing is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, "<checkout>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return False
    return True
