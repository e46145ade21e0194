"""The shape of the package: layers, names, errors; it can be copied elsewhere."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aeye
from aeye import errors

PACKAGE = Path(aeye.__file__).parent
ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(PACKAGE.glob("*.py"))
MODULES = [path.stem for path in SOURCES]


def layers() -> dict[str, int]:
    """Return the place of each module in the table of docs/contributing.md."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    found: list[str] = []
    for line in page.splitlines():
        if line.startswith("| `"):
            cell = line.split("|")[1]
            found += [name.strip(" `") for name in cell.split(",")]
    return {name: place for place, name in enumerate(found)}


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """Return (module, line, inside a function) of every import of ours and others."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [a.name for a in node.names]
            prefix = "." * node.level
            found += [(prefix + n, node.lineno, id(node) in inside) for n in names]
        elif isinstance(node, ast.Import):
            found += [(a.name, node.lineno, id(node) in inside) for a in node.names]
    return found


def test_there_is_something_to_test() -> None:
    """A glob that finds nothing must not pass."""
    assert len(SOURCES) > 20


def test_table_lists_every_module() -> None:
    """docs/contributing.md lists the modules, each once, and no others."""
    assert sorted(layers()) == sorted(name for name in MODULES if name != "__init__")


@pytest.mark.parametrize("path", SOURCES, ids=MODULES)
def test_imports_point_up_the_table(path: Path) -> None:
    """A module imports only modules above it: lazily and for typing as well."""
    place = layers()
    if path.stem == "__init__":
        return

    upward = [
        f"{path.name}:{line} imports {name}"
        for name, line, _ in imports(path)
        if name.startswith(".") and place[name.lstrip(".")] >= place[path.stem]
    ]

    assert upward == []


@pytest.mark.parametrize("path", SOURCES, ids=MODULES)
def test_third_parties_stay_in_their_module(path: Path) -> None:
    """Only transport knows requests, only schema knows jsonschema, inside functions."""
    allowed = {"requests": {"transport"}, "jsonschema": {"schema"}}
    found = []
    for name, line, inside in imports(path):
        top = name.split(".")[0]
        if not top or top in sys.stdlib_module_names or top == "__future__":
            continue
        if top == "typing_extensions" and not inside:
            continue  # under TYPE_CHECKING: see the test of a bare import
        if (top, path.stem) == ("opentelemetry", "telemetry"):
            continue  # optional: its test takes it away and looks what still works
        if not inside or path.stem not in allowed.get(top, ()):
            found.append(f"{path.name}:{line} imports {name}")

    assert found == []


if sys.version_info < (3, 10):  # 3.9: the list of standard modules is not there yet
    test_third_parties_stay_in_their_module = pytest.mark.skip(
        "needs sys.stdlib_module_names"
    )(test_third_parties_stay_in_their_module)


def test_no_module_shadows_another() -> None:
    """No module is named like a standard one, or like a public function or value."""
    standard = set(getattr(sys, "stdlib_module_names", ())) - {"__main__"}
    functions = {n for n in aeye.__all__ if not isinstance(getattr(aeye, n), type)}

    assert set(MODULES) & standard == set()
    assert set(MODULES) & functions == set()


@pytest.mark.parametrize("name", ["__init__", *(m for m in MODULES if m[0] != "_")])
def test_all_is_sorted_and_true(name: str) -> None:
    """``__all__`` is sorted by code point, and every name in it exists."""
    module = aeye if name == "__init__" else importlib.import_module(f"aeye.{name}")

    assert list(module.__all__) == sorted(set(module.__all__))
    assert [n for n in module.__all__ if not hasattr(module, n)] == []


def test_root_gives_the_same_objects_in_any_order() -> None:
    """Whichever module is imported first, the root's names are the same things."""
    code = (
        "import importlib, json, sys\n"
        "for name in sys.argv[1:]: importlib.import_module('aeye.' + name)\n"
        "import aeye\n"
        "print(json.dumps({n: getattr(getattr(aeye, n), '__module__', '') or ''"
        " for n in aeye.__all__}))"
    )
    names = [name for name in MODULES if not name.startswith("__")]
    orders = [[], names, names[::-1], names[1::2] + names[::2]]

    seen = [json.loads(run(code, *order)) for order in orders]

    assert seen[1:] == seen[:1] * 3


def test_bare_import_is_light() -> None:
    """``import aeye`` brings in nothing that takes long or touches the network."""
    heavy = {"requests", "jsonschema", "sqlite3", "http.server", "asyncio", "socket"}
    heavy |= {"ssl", "typing_extensions", "aeye.wire_chat", "aeye.transport"}
    # Less what was there before: a tool that looks on may have loaded anything.
    code = (
        "import json, sys; before = set(sys.modules); import aeye; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )

    loaded = set(json.loads(run(code)))

    assert loaded & heavy == set()


def test_error_tree_is_documented() -> None:
    """The docstring of ``errors`` names every class, under the parent it has."""
    parents: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        text = line.strip()
        bare = text.lstrip("├└─│ ")
        name = bare.split(" ")[0] if bare else ""
        if not name.isidentifier() or not hasattr(errors, name):
            continue
        depth = line.index(name)
        while stack and stack[-1][0] >= depth:
            stack.pop()
        parents[name] = stack[-1][1] if stack else "Exception"
        stack.append((depth, name))

    classes = {name: getattr(errors, name) for name in errors.__all__}

    assert sorted(parents) == sorted(classes)
    assert parents == {n: c.__mro__[1].__name__ for n, c in classes.items()}


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_survive_pickling(name: str) -> None:
    """Every error keeps its message, its text and its attributes through pickle."""
    cls = getattr(errors, name)
    error = cls("it broke")

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.args, str(copy)) == (cls, ("it broke",), str(error))
    assert vars(copy) == vars(error)


def test_works_under_another_name(tmp_path: Path) -> None:
    """Copied into another package under another name, it works the same."""
    home = tmp_path / "shop" / "_vendor"
    shutil.copytree(PACKAGE, home / "brain", ignore=shutil.ignore_patterns("*.pyc"))
    for folder in (tmp_path / "shop", home):
        (folder / "__init__.py").write_text("")
    code = (
        "from shop._vendor import brain\n"
        "import sys\n"
        "print(brain.ask('Hello', brain.connect('rehearsal'), schema=int))\n"
        "assert not [m for m in sys.modules if m.split('.')[0] == 'aeye']"
    )

    said = run(code, cwd=tmp_path)

    assert int(said) is not None


LONG = {
    # name: why it may be longer than 60 lines or deeper than four levels
}


@pytest.mark.parametrize("path", SOURCES, ids=MODULES)
def test_functions_are_short_and_flat(path: Path) -> None:
    """Functions have at most 60 lines and four levels, unless waived with a reason."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            name = f"{path.stem}.{node.name}"
            long = lines > 60 and node.name != "__init__"
            if (long or depth(node) > 4) and name not in LONG:
                found.append(f"{name}: {lines} lines, {depth(node)} levels")

    assert found == []


def depth(node: ast.AST, level: int = 0) -> int:
    """Return how deep statements are nested; an ``elif`` is not one more."""
    nests = (ast.If, ast.For, ast.While, ast.With, ast.Try)
    deepest = level
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                continue
            is_elif = (
                name == "orelse"
                and isinstance(node, ast.If)
                and isinstance(child, ast.If)
                and len(value) == 1
            )
            more = isinstance(child, nests) and not is_elif
            deepest = max(deepest, depth(child, level + more))
    return deepest


def run(code: str, *args: str, cwd: Path = ROOT) -> str:
    """Run *code* in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *args],
        cwd=str(cwd),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
