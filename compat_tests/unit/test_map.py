"""The map of the tests in docs/contributing.md is true, and files stand where it leads."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "compat_tests"
PACKAGE = ROOT / "fakeamqp"
PAGE = (ROOT / "docs" / "contributing.md").read_text("utf-8")
SECTION = PAGE.split("## Where a test belongs\n", 1)[1].split("\n## ", 1)[0]
ROWS = [row for row in SECTION.splitlines() if row.startswith("| ")][1:]
PLACES = re.findall(r"`([a-z_]+/[^`]*)`", "\n".join(row.split("|")[2] for row in ROWS))
#: folders without tests
SUPPORT = {"scripted", "tools"}

#: folders of protocol/ whose features several protocols have
SEVERAL_PROTOCOLS = {"files_and_streams"}
#: folder of unit/ -> the part of the package that its files test, where the names differ
PARTS = {
    "codec": "protocols",
    "amqp_0_9": "protocols/amqp_0_9",
    "amqp_0_9_1": "protocols/amqp_0_9_1",
}
#: Files that are not named after a module, and why.
OTHERWISE = {
    "faults/": "A fault crosses many modules: these files are named after the effect or the step of it.",
    "spark/": "Spark's reader and writer meet in a job: these files are named after what users see of it.",
    "trace/": "These are about what a trace holds, whichever module writes it.",
    "replay/test_replies.py": "It is about what a replayed client makes of other replies.",
    "amqp_0_9/test_realms.py": "Realms are requested in one class and checked in all others.",
    "test_apache_suite.py": "It compares the suite of Apache Qpid with the protocol tests.",
    "test_deleted_protocols.py": "It is about the package without one of its protocols.",
    "test_encodings.py": "It is about how all files are opened.",
    "test_fault_modules.py": "It is about how the modules of faults import each other.",
    "test_map.py": "It is about the tests.",
    "test_without_extras.py": "It is about the package without its optional dependencies.",
}


def modules_below(folder: Path) -> set[str]:
    """The names of modules and packages in a folder, itself included."""
    return {folder.name, *(name.stem for path in folder.rglob("*.py") for name in (path, path.parent))}


def test_map_has_at_most_ten_rows() -> None:
    assert 0 < len(ROWS) <= 10


def test_every_place_in_the_map_exists() -> None:
    patterns = {place: re.sub(r"<\w+>", "*", place) for place in PLACES}
    assert [place for place, pattern in patterns.items() if not any(TESTS.glob(pattern))] == []


def test_every_folder_of_tests_is_in_the_map() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")}
    assert folders == {place.split("/")[0] for place in PLACES} | SUPPORT
    assert all(f"`{name}/`" in SECTION for name in SUPPORT)


def test_files_of_protocol_tests_are_features_in_folders_of_protocols() -> None:
    protocols = {path.name for path in (PACKAGE / "protocols").glob("amqp_*")}
    files = {path.relative_to(TESTS / "protocol") for path in (TESTS / "protocol").rglob("test_*.py")}
    assert {path.parent.as_posix() for path in files} == protocols | SEVERAL_PROTOCOLS
    # No file is named after a module that several features share.
    shared = {"server_connection", "server_channel", "server_session", "dispatch", "codec", "dialect"}
    assert not {path.stem.removeprefix("test_") for path in files} & shared


def test_unit_test_files_are_named_after_modules() -> None:
    tools = modules_below(TESTS)
    used = set()
    unnamed = []
    for path in sorted((TESTS / "unit").rglob("test_*.py")):
        file = path.relative_to(TESTS / "unit")
        if len(file.parts) == 1:
            names = modules_below(PACKAGE) | tools - {path.stem}
        else:
            names = modules_below(PACKAGE / PARTS.get(file.parts[0], file.parts[0]))
        words = path.stem.split("_")[1:]
        if not any("_".join(words[:count]) in names for count in range(1, len(words) + 1)):
            excused = {key for key in OTHERWISE if file.as_posix().startswith(key)}
            used |= excused
            if not excused:
                unnamed.append(file.as_posix())
    assert unnamed == []
    assert used == set(OTHERWISE), "these are no exceptions any more"
