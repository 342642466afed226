"""The modules of faults: how far they import each other in circles."""

from __future__ import annotations

import ast
from pathlib import Path

import fakeamqp.faults

_FOLDER = Path(fakeamqp.faults.__file__).parent
_MOST = 4
"""The most modules that may import each other in a circle. Imports for type checkers count."""


def _modules() -> dict[str, Path]:
    root = _FOLDER.parent.parent
    names = {path: ".".join(path.relative_to(root).with_suffix("").parts) for path in _FOLDER.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def _imports(modules: dict[str, Path]) -> dict[str, set[str]]:
    """By module: the modules that it imports anywhere, in functions and for type checkers as well."""
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        imported = found[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                imported.update(named & modules.keys() or {node.module or ""} & modules.keys())
            elif isinstance(node, ast.Import):
                imported.update({alias.name for alias in node.names} & modules.keys())
        imported.discard(name)
    return found


def _circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module."""
    reached: dict[str, set[str]] = {}
    for name in imports:
        ahead, seen = [name], reached.setdefault(name, set())
        while ahead:
            new = imports[ahead.pop()] - seen
            seen |= new
            ahead += new
    circles = {frozenset(other for other in seen if name in reached[other]) for name, seen in reached.items()}
    return [sorted(circle) for circle in circles if len(circle) > 1]


def test_at_most_four_modules_of_faults_import_each_other_in_a_circle() -> None:
    large = [circle for circle in _circles(_imports(_modules())) if len(circle) > _MOST]
    assert not large, "\n".join(" ".join(circle) for circle in large)


def test_search_finds_circle_of_imports() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert _circles(imports) == [["a", "b", "c"]]
