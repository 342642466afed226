"""Every code block of the documentation works, and every link leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from compat_tests.docs.pages import QUIET, ROOT, Page, pages

PAGES = pages()
BLOCKS = [
    pytest.param(page, index, id=f"{page.name}:{block.line}")
    for page in PAGES
    for index, block in enumerate(page.blocks)
]
#: The library that the code of a page needs, where it cannot be installed everywhere.
NEEDS = {"docs/amqp-1-0.md": "proton"}
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


@pytest.fixture(scope="module", autouse=True)
def forget_what_blocks_made() -> Iterator[None]:
    """Other tests count what is alive, and what is open."""
    yield
    for page in PAGES:
        page.forget()


@pytest.mark.parametrize(("page", "index"), BLOCKS)
def test_code_block_of_documentation_runs(page: Page, index: int, pytester: pytest.Pytester) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    page.run_through(index)
    if page.blocks[index].is_test_file:
        page.write_files(index, pytester.path)
        # All schedules take minutes where the collector never rests.
        result = pytester.runpytest_inprocess(*QUIET, "--amqp-schedules=20")
        outcomes = result.parseoutcomes()
        assert outcomes.get("passed", 0) > 0
        assert not set(outcomes) & {"failed", "errors", "warnings"}


def test_how_to_pages_have_code_blocks() -> None:
    assert {
        "README.md",
        "docs/fault-actions.md",
        "docs/fault-chaos.md",
        "docs/fault-injection.md",
        "docs/fault-network.md",
        "docs/fault-protocols.md",
        "docs/getting-started.md",
        "docs/inspecting.md",
        "docs/limits.md",
        "docs/personalities.md",
        "docs/policies.md",
        "docs/pytest-environment.md",
        "docs/pytest-fixtures.md",
        "docs/pytest-real-broker.md",
        "docs/simulation.md",
        "docs/time.md",
        "docs/traces.md",
        "docs/transports.md",
        "docs/upgrading.md",
    } <= {page.name for page in PAGES}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_relative_links_of_documentation_lead_to_existing_files(path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_rows_of_documentation_tables_have_as_many_cells_as_head(path) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", path.read_text(), re.MULTILINE):
        head, *rows = [re.split(r"(?<!\\)\|", line) for line in table.splitlines()]
        assert [row for row in rows if len(row) != len(head)] == []


def test_options_named_by_plugin_page_exist(pytestconfig: pytest.Config) -> None:
    _, _, table = (ROOT / "docs" / "pytest-fixtures.md").read_text().partition("\n## Options\n")
    rows = [[cell.strip(" `") for cell in row.split("|")[1:3]] for row in re.findall(r"^\|.*", table, re.M)]
    named = [(option.partition("=")[0], ini) for option, ini in rows[2:]]
    assert named
    for option, ini in named:
        assert option or ini
        if option:
            pytestconfig.getoption(option)
        if ini:
            pytestconfig.getini(ini)


def test_errors_name_existing_sections_of_troubleshooting_page() -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "fakeamqp").rglob("*.py"))
    named = set(re.findall(r'troubleshooting\(\s*"([\w-]+)"', code))
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    headings = {each.lower().replace(" ", "-") for each in re.findall(r"^## (.+)$", page, re.M)}
    assert named == {"a-wait-times-out", "the-fault-never-fired", "the-login-is-refused"}
    assert named <= headings
