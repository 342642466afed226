"""Text files have the same encoding everywhere: Windows has another default."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POSITION = {"read_text": 0, "write_text": 1}
"""Where `pathlib.Path` takes the encoding."""


def without_encoding(source: str) -> Iterator[int]:
    """The lines of calls that read or write text in the default encoding of the system."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or any(each.arg == "encoding" for each in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in POSITION and len(node.args) <= POSITION[name]:
            yield node.lineno
        elif name == "open":
            method = isinstance(node.func, ast.Attribute)
            modes = [*node.args[0 if method else 1 :], *(each.value for each in node.keywords)]
            mode = next((each.value for each in modes if isinstance(each, ast.Constant)), None)
            if (isinstance(mode, str) and not mode.strip("+rwxat")) or (not method and not modes):
                yield node.lineno
        elif name in ("run", "Popen", "check_output") and any(each.arg == "text" for each in node.keywords):
            yield node.lineno


def test_search_finds_text_calls_without_encoding() -> None:
    found = "open(p)|open(p, 'w')|p.open('w')|p.read_text()|p.write_text(t)|run(c, text=True)"
    assert all(list(without_encoding(each)) == [1] for each in found.split("|"))
    fine = (
        "open(p, 'rb')|open(p, encoding='utf-8')|p.open('wb')|p.read_text('utf-8')|link.open()|p.read_bytes()"
    )
    assert not any(list(without_encoding(each)) for each in fine.split("|"))


def test_text_is_read_and_written_with_an_encoding() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("fakeamqp", "pytest_plugin")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in without_encoding(path.read_text("utf-8"))
    ]
    assert found == []
