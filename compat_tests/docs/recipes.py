"""Reads the recipes: pages in `docs/recipes` whose code blocks are files.

A block is the file that its first line names in a comment: `# test_tasks.py`, `// orders.test.mjs`. JSON has
no comments: there the line above names the file. The files of a page are in one folder. If several blocks
name one file, the later one replaces it for the blocks after it: the files before it are run first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from compat_tests.docs.pages import ROOT

__all__ = ["FOLDER", "Recipe", "recipes"]

FOLDER = ROOT / "docs" / "recipes"

_BLOCK = re.compile(
    r"(?:`(?P<above>\w+\.json)`:\n\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"(?:<\?php )?(?:#|//) (?P<name>[\w./-]+\.\w+)\n")


@dataclass(frozen=True)
class Recipe:
    """One page, and the files of its blocks in stages."""

    path: Path

    @property
    def blocks(self) -> list[tuple[str, str, str | None]]:
        """Language, code and file of each block."""
        found = []
        for block in _BLOCK.finditer(self.path.read_text()):
            named = _FILE.match(block["code"])
            found.append((block["language"], block["code"], named["name"] if named else block["above"]))
        return found

    def stages(self) -> list[dict[str, str]]:
        """The files by name. A stage ends where a file comes again; tests are only in their own stage."""
        stages: list[dict[str, str]] = [{}]
        for _, code, name in self.blocks:
            if name is None:
                continue
            if name in stages[-1]:
                stages.append({old: text for old, text in stages[-1].items() if not is_test(old)})
            stages[-1][name] = code
        return [stage for stage in stages if stage]


def is_test(name: str) -> bool:
    """Whether pytest collects this file."""
    return Path(name).name.startswith("test_")


def recipes() -> list[Recipe]:
    """All pages."""
    return [Recipe(path) for path in sorted(FOLDER.glob("*.md"))]
