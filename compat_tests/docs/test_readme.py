"""The report of a failed test that README.md shows is the one that a user gets."""

from __future__ import annotations

import re

import pytest

from compat_tests.docs.pages import QUIET, ROOT, pages

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"^ +[0-9.]+  ", re.MULTILINE)


def test_failure_report_in_readme_equals_real_report(pytester: pytest.Pytester) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    [shown] = CONSOLE.findall(text)
    failing, *report = shown.splitlines()
    [example] = [block for page in pages() if page.name == "README.md" for block in page.blocks[:1]]
    app = example.code.partition("def test_")[0]
    pytester.makepyfile(
        app + "def test_an_order_is_json(amqp_broker):\n"
        '    place_order(amqp_broker.url, b"two apples")\n'
        f"    {failing.removeprefix('>').strip()}\n"
    )

    done = pytester.runpytest_inprocess(*QUIET)

    said = {_plain(line) for line in [*done.outlines]}
    missing = [line for line in [failing, *report] if _plain(line) not in said]
    assert missing == []


def _plain(line: str) -> str:
    """A line without what differs from run to run: the time, and the width of the terminal."""
    return re.sub(r"-{3,}", "---", TIME.sub("", line)).rstrip()
