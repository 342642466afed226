"""Reads the code blocks of the documentation, for the tests beside this module.

A ```python block is code that runs in the namespace of the page, after the blocks above it. One that
starts with a comment naming a file, such as `# test_orders.py`, is that file: test files are run by pytest,
in one folder with the files that the page has named before. So is an ```ini block that names a file.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pika
from pika.exceptions import AMQPConnectionError

from fakeamqp import Broker

__all__ = ["QUIET", "ROOT", "Block", "Page", "pages"]

ROOT = Path(__file__).parents[2]
QUIET = (
    *("-p", "no:cacheprovider", "-p", "no:hypothesispytest"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)
"""Options of an inner pytest."""

_BLOCK = re.compile(r"^```(?:python\n|ini\n(?=# \w+\.ini\n))(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<name>[\w.]+\.(?:py|ini))\n")


@dataclass(frozen=True)
class Block:
    """One code block: where it is and what it says."""

    page: Path
    line: int
    code: str

    @property
    def file(self) -> str | None:
        """The file this block is, or None if it is code to be run as it stands."""
        found = _FILE.match(self.code)
        return found["name"] if found else None

    @property
    def is_test_file(self) -> bool:
        return self.file is not None and self.file.startswith("test_")


@dataclass
class Page:
    """A page and the namespace that its blocks share."""

    path: Path
    blocks: list[Block]
    namespace: dict[str, object] = field(default_factory=dict)
    _done: int = 0

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def forget(self) -> None:
        """End the brokers and connections that blocks made, and begin anew: no block has run."""
        made = list(self.namespace.values())
        # First the brokers: one that does not read, as with an alarm, would not answer to a close.
        for value in made:
            if isinstance(value, Broker):
                value.stop()
        for value in made:
            if isinstance(value, pika.BlockingConnection) and value.is_open:
                with suppress(AMQPConnectionError):
                    value.close()
        self.namespace.clear()
        self._done = 0

    def run_through(self, index: int) -> None:
        """Run the code blocks up to number `index` that have not run yet."""
        self.namespace.setdefault("__name__", "__docs__")
        while self._done <= index:
            block = self.blocks[self._done]
            self._done += 1
            if block.file is None:
                # Blank lines in front make tracebacks show the line of the page.
                source = "\n" * block.line + block.code
                exec(compile(source, str(self.path), "exec", dont_inherit=True), self.namespace)

    def write_files(self, index: int, folder: Path) -> None:
        """Write the files named by blocks up to number `index`; of test files, only that of `index`."""
        for number, block in enumerate(self.blocks[: index + 1]):
            if block.file is not None and (number == index or not block.is_test_file):
                (folder / block.file).write_text(block.code)


def pages(*, spark: bool = False) -> list[Page]:
    """The pages of the project that have code blocks: those about Spark, or all others.

    Pages about Spark have names that begin with it, or are in such a folder.
    """
    found = []
    for path in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]):
        if spark != any(name.startswith("spark") for name in path.relative_to(ROOT).parts):
            continue
        text = path.read_text()
        blocks = [
            Block(path, text.count("\n", 0, match.start("code")), match["code"])
            for match in _BLOCK.finditer(text)
        ]
        if blocks:
            found.append(Page(path, blocks))
    return found
