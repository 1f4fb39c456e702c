"""Hand-written lines as a recipe's code: the opposite of ``codemods.layout``."""

from __future__ import annotations

from codemods.layout import SnippetError, inside_strings

MARGIN = "    "


def as_code(text: bytes, indent: bytes) -> str | None:
    """Lines of a block with this indentation as a recipe writes them; None for lines that no recipe can write.

    The first line may stand without its indent. Lines inside of strings keep their bytes.
    """
    lines = _lines(text)
    inside = _inside(text, indent) if lines is not None else None
    if lines is None or inside is None:
        return None
    head = indent.decode()
    out = []
    for number, line in enumerate(lines, 1):
        if number in inside:
            out.append(line)
            continue
        if not line.strip():
            out.append("")
            continue
        if head and not line.startswith(head):
            if number > 1 or line[:1] in (" ", "\t"):
                return None
            out.append(line)
            continue
        rest = line[len(head) :]
        bare = rest.lstrip("\t")
        out.append(MARGIN * (len(rest) - len(bare)) + bare)
    return "\n".join(out).strip("\n")


def with_blank_first(code: str, count: int) -> str | None:
    """The code with blank lines above, which stand as lines of blanks: an empty first line is none in a recipe."""
    try:
        inside = inside_strings(code)
    except SnippetError:
        return None
    lines = [
        MARGIN + line if line.strip() and number not in inside else line
        for number, line in enumerate(code.split("\n"), 1)
    ]
    return "\n".join([MARGIN] * count + lines)


def blank_head(text: bytes) -> int:
    """How many blank lines stand first."""
    lines = text.split(b"\n")
    return next((number for number, line in enumerate(lines) if line.strip()), 0)


def _lines(text: bytes) -> list[str] | None:
    decoded = text.decode("utf-8")
    if "\r\n" in decoded:
        if decoded.count("\n") != decoded.count("\r\n"):
            return None
        decoded = decoded.replace("\r\n", "\n")
    return decoded.split("\n")


def _inside(text: bytes, indent: bytes) -> set[int] | None:
    code = text.decode("utf-8").replace("\r\n", "\n")
    first = next((line for line in code.split("\n") if line.strip()), "")
    indented = first[:1] in (" ", "\t")
    if indent and not indented:
        code, indented = indent.decode() + code, True
    try:
        found = inside_strings(f"if 1:\n{code}" if indented else code)
    except SnippetError:
        return None
    return {number - indented for number in found}
