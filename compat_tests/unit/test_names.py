"""A class name means one thing in the package."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 10
"""How many names may mean several things."""


def ambiguous() -> set[str]:
    """The public class names that several modules define.

    Codecs do not count: the specifications give their classes the same names.
    """
    modules = defaultdict(set)
    for path in (ROOT / "fakeamqp").rglob("*.py"):
        if "codec" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    modules[node.name].add(path)
    return {name for name, paths in modules.items() if len(paths) > 1}


def test_ambiguous_class_names_are_few_and_in_the_glossary() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    section = page.split("## Names with several meanings\n", 1)[1].split("\n## ", 1)[0]
    found = ambiguous()
    assert found == set(re.findall(r"`([A-Z]\w+)`", section))
    assert len(found) <= MOST
