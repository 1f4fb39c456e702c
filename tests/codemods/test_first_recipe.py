"""What somebody with a first recipe runs into: layout, versions from metadata, findings that say what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.catalogue import Framework
from codemods.identify import identify_as
from codemods.layout import SnippetError, lay_out
from codemods.misses import PlanError
from codemods.planner import plan_edits
from codemods.recipe_reader import load_recipe
from codemods.target import Bases
from tests.conftest import write

RECIPE_HEAD = 'recipe: r\nframework: example\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'


def test_continuation_lines_do_not_tell_the_authors_indent() -> None:
    """Brackets, strings and backslashes continue a line as they like."""

    def laid(code: str) -> str:
        return lay_out(code, b"    ", b"    ", b"\n").data.decode()

    hanging = "y = max(a,\n        b)\nif y:\n    z()"
    assert laid(hanging) == "    " + hanging.replace("\n", "\n    ") + "\n"
    assert laid("y = (\n  a,\n)\nif y:\n    z()").endswith("if y:\n        z()\n")
    assert laid("y = a + \\\n  b\nif y:\n    z()").endswith("if y:\n        z()\n")
    assert laid("y = 'a\\\n  b'\nif y:\n    z()").endswith("if y:\n        z()\n")
    assert laid("if y:\n  z()") == "    if y:\n        z()\n"


def test_code_that_cannot_be_read_is_told_with_its_line() -> None:
    with pytest.raises(SnippetError) as caught:
        lay_out("x = 1\nf(", b"", b"    ", b"\n")
    assert (caught.value.why or "").startswith("line ")


METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: 9\n"


@pytest.mark.parametrize(
    ("files", "stated"),
    [
        ({"other_name-1.2.dist-info/METADATA": ("other-name", "1.2")}, None),
        (
            {"p_k_g-1.2.dist-info/METADATA": ("p.k.g", "1.2"), "p_k_g-1.2.dist-info/top_level.txt": "tests\npkg\n"},
            "1.2",
        ),
        ({"x-1.3.dist-info/METADATA": ("x", "1.3"), "x-1.3.dist-info/RECORD": "a.py,,\npkg/__init__.py,,\n"}, "1.3"),
        ({"pkg.egg-info/PKG-INFO": ("pkg", "1.4")}, "1.4"),
        ({"pkg-1.5-py3.egg-info": ("pkg", "1.5")}, "1.5"),
        ({"PKG-INFO": ("anything", "1.6")}, "1.6"),
        ({"pkg.egg-info/PKG-INFO": ("pkg", "0.0.0")}, None),
        ({"pkg.egg-info/PKG-INFO": ("pkg", "soon")}, None),
        ({"pkg-1.7.dist-info/METADATA": ("pkg", "1.7"), "a-2.dist-info/METADATA": ("a", "2")}, "1.7"),
    ],
)
def test_the_metadata_beside_a_package_states_its_version(tmp_path: Path, files: dict, stated: str | None) -> None:
    texts = {
        name: text if isinstance(text, str) else METADATA.format(name=text[0], version=text[1])
        for name, text in files.items()
    }
    write(tmp_path, {"pkg/__init__.py": "", **texts})
    framework = Framework("f", "pkg", (), ())
    identity = identify_as(framework, Bases({}.get), tmp_path)
    assert (str(identity.declared) if identity.declared else None) == stated
    assert identity.declared_in == (next(iter(files)) if stated else "")
    own = Framework("f", "pkg", ("pkg/version.py",), ())
    assert str(identify_as(own, Bases({"pkg/version.py": b'version = "3"'}.get), tmp_path).declared) == "3"


def test_a_part_of_a_statement_is_told_from_a_statement(tmp_path: Path) -> None:
    source = b"class A:\n    def f(self):\n        y = self.g(1)\n        return h(self.g(2), y)\n"
    edit = '{id: e, file: m.py, in: A.f, before: "self.g(1)", insert: tap()}'
    (tmp_path / "r.yaml").write_text(RECIPE_HEAD + f"  - {edit}\n")
    with pytest.raises(PlanError) as caught:
        plan_edits([load_recipe(tmp_path / "r.yaml")], Bases({"m.py": source}.get))
    finding = caught.value.findings[0]
    assert "a statement is matched whole" in (finding.todo or "")
    assert "m.py:3: before: $_ = self.g(1)" in finding.details
    (tmp_path / "r.yaml").write_text(RECIPE_HEAD + f"  - {edit.replace('self.g(1)', 'self.g(2)')}\n")
    with pytest.raises(PlanError) as caught:
        plan_edits([load_recipe(tmp_path / "r.yaml")], Bases({"m.py": source}.get))
    assert "m.py:4: before: return h(self.g(2), y)" in caught.value.findings[0].details


def test_a_file_that_is_not_there_gets_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RECIPE_HEAD + "  - {id: e, file: pkg/workers/fsdp.py, body_start: tap()}\n")
    files = ["pkg/worker/fsdp.py", "pkg/other/fsdp.py", "pkg/workers/fdsp.py", "x/y.py"]
    with pytest.raises(PlanError) as caught:
        plan_edits([load_recipe(tmp_path / "r.yaml")], Bases(lambda path: None, "src", lambda: files))
    finding = caught.value.findings[0]
    assert finding.todo == "did you mean `pkg/worker/fsdp.py`?"
    assert any("pkg/workers/fdsp.py" in detail for detail in finding.details)
    assert not any("x/y.py" in detail for detail in finding.details)
