"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import email.parser
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import grimp
import pytest

import cli
from codemods.errors import FindingError, InvalidError, ProbePatchError, RefusedError, UsageError

ROOT = Path(cli.__file__).resolve().parent
ROOMS = ("commands", "fleet", "stages", "authoring", "codemods", "patch_ledger", "locales")
SHIPPED = {"probepatch.py", "cli.py", *ROOMS, "recipes", "fixtures"}


def _sources() -> list[Path]:
    return [ROOT / "cli.py", *(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))]


def _python(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)


# --- who imports whom (the layers are import-linter's) ----------------------------------------------------------------


def test_the_ledger_uses_few_modules_of_the_engine():
    graph = grimp.build_graph(*ROOMS, cache_dir=None)
    used = {
        found
        for module in graph.modules
        if module.startswith("patch_ledger")
        for found in graph.find_modules_directly_imported_by(module)
        if found.startswith("codemods")
    }
    assert used <= {f"codemods.{name}" for name in ("splice", "plan", "errors", "outline", "gitrepo")}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = "import sys, cli; cli.main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = _python(code, *arguments)
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert loaded & {"libcst", "rich", "git", "ruamel", "packaging", "patch_ledger", "torch"} == set()
    assert not any(name.startswith("commands.") for name in done.stderr.split())


# --- nothing writes but the ledger ------------------------------------------------------------------------------------

PLAN = """
import sys
from pathlib import Path

writing = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod", "os.chown",
           "os.truncate", "os.utime", "shutil.move", "shutil.rmtree", "shutil.copyfile"}

def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (flags or 0) & 0o1103:  # WRONLY, RDWR, CREAT, TRUNC
            raise SystemExit(f"opened for writing: {path}")
    elif event in writing:
        raise SystemExit(f"{event} {arguments}")

sys.dont_write_bytecode = True
from commands.planning import Wish, prepare

sys.addaudithook(watch)
plan = prepare(Wish(Path(sys.argv[1]), None, None, files=tuple(map(Path, sys.argv[2:])))).plan
print(len(plan.changed))
"""


def test_planning_never_writes(demo_checkout):
    before = {path: path.read_bytes() for path in demo_checkout.rglob("*") if path.is_file()}
    done = _python(PLAN, demo_checkout, *sorted((ROOT / "fixtures/recipes/tinyrl").glob("tinyrl-*.yaml")))
    assert (done.stdout, done.stderr) == ("3\n", "")
    assert {path: path.read_bytes() for path in demo_checkout.rglob("*") if path.is_file()} == before


def test_the_audit_hook_sees_a_write(tmp_path):
    traps = ("open(sys.argv[1] + '/x', 'w')", "import os; os.mkdir(sys.argv[1] + '/y')")
    hook = PLAN[: PLAN.index("sys.dont_write")] + "sys.addaudithook(watch)\n"
    for trap in traps:
        assert _python(hook + trap, tmp_path).returncode != 0
    assert list(tmp_path.iterdir()) == []


# --- what is shipped --------------------------------------------------------------------------------------------------


def test_the_wheel_holds_our_names_and_our_data_only(tmp_path):
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = tmp_path.glob("probepatch-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = email.parser.Parser().parsestr(
            archive.read(next(n for n in names if n.endswith("/METADATA"))).decode()
        )
    info = f"probepatch-{cli.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == SHIPPED | {info}
    assert {f"{info}/entry_points.txt", f"{info}/licenses/LICENSE", "recipes/verl/framework.yaml"} <= set(names)
    assert any(name.startswith("recipes/payloads/") for name in names)
    assert any(name.startswith("fixtures/checkout/tinyrl/") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".po", ".pot"))]
    assert metadata["Version"] == cli.__version__
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert not [line for line in required if line.startswith(("torch", "mindstudio"))]


# --- words ------------------------------------------------------------------------------------------------------------

TALKING = {"echo", "say", "warn", "secho", "style", "format_message"}
QUIET_WORDS = {"what", "why", "todo", "help", "epilog", "title"}


def _errors_of_ours() -> set[str]:
    found, classes = set(), [ProbePatchError]
    while classes:
        one = classes.pop()
        found.add(one.__name__)
        classes += one.__subclasses__()
    return found


def _is_sentence(node: ast.expr) -> bool:
    """A literal that a person would read: two words or more, or a word in an f-string."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.Constant) and re.search(r"[^\W\d_]{2}", part.value) for part in node.values)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 1


def _untranslated(tree: ast.AST, errors: set[str]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in ("_", "ngettext"):
            found += [argument for argument in call.args if isinstance(argument, ast.JoinedStr)]
        talks = name in TALKING or name in errors
        found += [argument for argument in call.args if talks and _is_sentence(argument)]
        found += [
            word.value for word in call.keywords if word.arg in QUIET_WORDS and talks and _is_sentence(word.value)
        ]
        if name in ("option", "argument", "group", "command"):
            found += [word.value for word in call.keywords if word.arg == "help" and _is_sentence(word.value)]
    return found


def test_every_sentence_goes_through_the_catalogue():
    ours = [path for path in _sources() if "payloads" not in path.parts]  # those run in a side's interpreter
    for path in ours:
        __import__(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    errors = _errors_of_ours()
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in _sources()
        for node in _untranslated(ast.parse(path.read_text()), errors)
    ]
    assert found == []


def test_the_scan_finds_an_untranslated_sentence():
    assert not _untranslated(ast.parse('click.echo(f"{a}: {b}")'), set())
    bad = [
        'click.echo(f"{n} files")',
        'click.echo("two words")',
        'RefusedError("not allowed")',
        'RefusedError(_("x"), why="because of that")',
        '_(f"a {x}")',
    ]
    for code in bad:
        assert _untranslated(ast.parse(code), _errors_of_ours()), code


def test_the_documented_exit_codes_are_the_real_ones():
    codes = {kind.exit_code for kind in (FindingError, UsageError, RefusedError, InvalidError)}
    assert codes == {1, 2, 3, 4}
    for text in (cli.EXIT_CODES, (ROOT / "docs/json.md").read_text()):
        for code in (0, *codes, cli.INTERNAL, cli.INTERRUPTED, cli.NO_READER):
            assert f"{code} " in text


def test_schemas_are_valid_and_documented():
    import jsonschema

    page = (ROOT / "docs/json.md").read_text()
    for path in sorted((ROOT / "docs/schemas").glob("*.json")):
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        assert f"schemas/{path.name}" in page
