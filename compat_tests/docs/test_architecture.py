"""The page about the architecture names files, folders, classes and tables that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from compat_tests.tools.matrix import cases

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
BASES = (ROOT, ROOT / "fakeamqp", *(ROOT / "fakeamqp" / "protocols").glob("amqp_*/"))


@cache
def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "fakeamqp").rglob("*.py"))


def exists(path: str) -> bool:
    return any(any(base.glob(path)) for base in BASES)


def test_files_and_folders_named_by_architecture_page_exist() -> None:
    paths = [text for text in CODE if re.fullmatch(r"[\w*./-]+(\.py|\.toml|/)|[\w-]+/[\w/.-]+", text)]
    assert len(paths) > 60
    with cases() as case:
        for path in paths:
            with case(path):
                assert exists(path.removesuffix("/"))


def test_classes_methods_and_tables_named_by_architecture_page_exist() -> None:
    names = [text for text in CODE if re.fullmatch(r"[A-Z]\w+(\.\w+)?", text)]
    assert len(names) > 30
    with cases() as case:
        for name in names:
            with case(name):
                owner, _, member = name.partition(".")
                assert re.search(rf"^(class {owner}\b|{owner}: )", sources(), re.MULTILINE)
                assert not member or re.search(rf"(def {member}\b|\b{member}: |self\.{member} = )", sources())
