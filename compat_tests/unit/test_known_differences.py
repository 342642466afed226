"""What the lists of known differences say after a measurement."""

from __future__ import annotations

import pytest

from compat_tests.differential import differences
from compat_tests.differential.comparison import Outcome, all_cases
from compat_tests.differential.differences import UNEXPLAINED, Difference, Lists

FAMILY = [case_id for case_id in all_cases() if case_id.startswith("tx/")]
DIFFERENT, EQUAL = Outcome("there", "here"), Outcome("same", "same")
ENTRY = Difference(("tx/*",), "deliberate", "ther*", "here", "a reason", ("4.0", "4.3"))


def lists(*entries: Difference) -> Lists:
    return Lists(entries, {"shared": "#", "3.10": "#", "4.0": "#", "4.3": "#"})


def updated(outcomes: dict[str, dict[str, Outcome]], *entries: Difference) -> list[Difference]:
    return list(lists(*entries).updated(outcomes).entries)


def test_known_difference_still_measured_is_kept_unchanged() -> None:
    outcomes = dict.fromkeys(FAMILY, DIFFERENT)
    assert updated({"4.0": outcomes, "4.3": outcomes}, ENTRY) == [ENTRY]
    assert updated({"4.0": {FAMILY[0]: DIFFERENT}}, ENTRY) == [ENTRY]


def test_difference_gone_in_every_series_is_removed() -> None:
    outcomes = dict.fromkeys(FAMILY, EQUAL)
    assert updated({"4.0": outcomes, "4.3": outcomes}, ENTRY) == []


def test_difference_gone_in_one_series_is_kept_for_remaining_series() -> None:
    [entry] = updated({"4.0": dict.fromkeys(FAMILY, EQUAL)}, ENTRY)
    assert (entry.versions, entry.cases, entry.file) == (("4.3",), ("tx/*",), "4.3")


def test_partly_resolved_difference_lists_remaining_cases() -> None:
    outcomes = {**dict.fromkeys(FAMILY, DIFFERENT), FAMILY[0]: EQUAL}
    found = updated({"4.0": outcomes, "4.3": outcomes}, ENTRY)
    assert [(entry.versions, entry.cases) for entry in found] == [(("4.0", "4.3"), tuple(FAMILY[1:]))]


def test_case_with_changed_difference_becomes_new_unexplained_defect() -> None:
    other = Outcome("elsewhere", "here")
    outcomes = {**dict.fromkeys(FAMILY, DIFFERENT), FAMILY[0]: other}
    kept, *new = updated({"4.0": outcomes, "4.3": outcomes}, ENTRY)
    assert kept.cases == tuple(FAMILY[1:])
    assert new == [Difference((FAMILY[0],), "defect", "elsewhere", "here", UNEXPLAINED, ("4.0", "4.3"))]


def test_equal_new_differences_are_grouped_into_one_entry() -> None:
    outcomes = dict.fromkeys(FAMILY[:2], DIFFERENT)
    found = updated({"4.0": outcomes, "4.3": {**outcomes, FAMILY[2]: DIFFERENT}, "3.10": {FAMILY[0]: EQUAL}})
    assert [(entry.versions, entry.cases, entry.file) for entry in found] == [
        (("4.0", "4.3"), tuple(FAMILY[:2]), "shared"),
        (("4.3",), (FAMILY[2],), "4.3"),
    ]


def test_difference_not_measured_is_kept() -> None:
    assert updated({"3.10": dict.fromkeys(FAMILY, EQUAL)}, ENTRY) == [ENTRY]


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (EQUAL, "no longer differs; take it off"),
        (DIFFERENT, ""),
        (Outcome("elsewhere", "here"), "differs in another way"),
        (Outcome("there", "the case stumbled: LookupError()"), "cannot tell what happened"),
    ],
)
def test_listed_case_is_a_problem_unless_it_differs_as_listed(
    outcome: Outcome, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differences.Lists, "read", lambda: lists(ENTRY))
    assert (told in differences.problem("4.0", FAMILY[0], outcome)) is bool(told) or not told
    assert bool(differences.problem("4.0", FAMILY[0], outcome)) is bool(told)


def test_unlisted_case_is_a_problem_only_if_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences.Lists, "read", lambda: lists(ENTRY))
    assert differences.problem("3.10", FAMILY[0], EQUAL) == ""
    assert "the outcomes differ" in differences.problem("3.10", FAMILY[0], DIFFERENT)


def test_written_differences_are_read_back_unchanged(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    hard = Difference(tuple(FAMILY), "defect", 'it\'s "so" \\x0a é', "a\tb", "why", ("4.3",))
    monkeypatch.setattr(differences, "FOLDER", tmp_path)
    lists(ENTRY, hard).write()
    assert Lists.read.__wrapped__(Lists).entries == (ENTRY, hard)
