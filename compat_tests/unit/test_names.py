"""A class name means one thing in the package, and the name of a test is a claim."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 10
"""How many names may mean several things."""
RIDDLE = re.compile(
    r"_(who|whoever|whom|whose|what|whatever|nobody|nothing|somebody|someone|something|anybody|anyone|anything"
    r"|everybody|everyone|everything|none|that_is|that_are|that_was|that_were|it_is|it_was|the_others?"
    r"|an?_\w+_one)(?=_|$)"
)
"""Words with which the name of a test does not name its subject.

A name is a claim in the terms of AMQP: subject, condition and effect. For example
`test_expired_message_is_dead_lettered_with_reason_expired`: a reader knows what is tested without the body.
"""
DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)
MOST_RIDDLES = 0.03
"""Which share of the tests may have such names."""


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
    page = (ROOT / "docs" / "glossary-internal.md").read_text("utf-8")
    section = page.split("## Names with several meanings\n", 1)[1].split("\n## ", 1)[0]
    found = ambiguous()
    assert found == set(re.findall(r"`([A-Z]\w+)`", section))
    assert len(found) <= MOST


def test_fewer_than_3_percent_of_test_names_have_words_without_a_subject() -> None:
    names = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "compat_tests").rglob("test_*.py"))
        for name in DEFINED.findall(path.read_text("utf-8"))
    ]
    riddles = [name for name in names if RIDDLE.search(name.rpartition(": test")[2])]
    assert len(riddles) < MOST_RIDDLES * len(names), "\n".join(riddles)
