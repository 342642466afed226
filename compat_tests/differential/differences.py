"""The known differences between RabbitMQ and the broker: one list for each series, and what several share.

The lists are in `known_differences/`. Together they are the whole difference: a test fails where a case
differs without an entry, and where an entry no longer fits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from compat_tests.differential.comparison import SERIES, Outcome, all_cases, fits
from compat_tests.differential.script import STUMBLED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["FOLDER", "KINDS", "UNEXPLAINED", "Difference", "Lists", "problem"]

FOLDER = Path(__file__).with_name("known_differences")
SHARED = "shared"
KINDS = {
    "deliberate": "the broker differs on purpose",
    "defect": "an error to mend",
    "not built": "the broker refuses it so far",
}
UNEXPLAINED = "?"
"""The reason of an entry that was added by a command and not yet looked at."""
_WIDTH = 110


@dataclass(frozen=True)
class Difference:
    """An entry. `cases`, `rabbitmq` and `fakeamqp` are patterns, in which `*` stands for anything."""

    cases: tuple[str, ...]
    kind: str
    rabbitmq: str
    fakeamqp: str
    reason: str
    versions: tuple[str, ...]
    """The series it is about."""

    def covers(self, case_id: str) -> bool:
        return any(fits(pattern, case_id) for pattern in self.cases)

    def explains(self, outcome: Outcome) -> bool:
        """Whether both outcomes are as this entry says."""
        return fits(self.rabbitmq, outcome.rabbitmq) and fits(self.fakeamqp, outcome.fakeamqp)

    @property
    def file(self) -> str:
        return SHARED if len(self.versions) > 1 else self.versions[0]

    def toml(self) -> str:
        """The entry as it is written."""
        lines = ["[[difference]]"]
        if self.file == SHARED:
            lines.append(f"versions = {_list(self.versions)}")
        lines.append(f"cases = {_list(self.cases)}")
        for key in ("kind", "rabbitmq", "fakeamqp", "reason"):
            lines.append(f"{key} = {_string(getattr(self, key))}")
        return "\n".join(lines)


def _string(text: str) -> str:
    plain = "'" not in text and text.isprintable()
    return f"'{text}'" if plain and ('"' in text or "\\" in text) else json.dumps(text, ensure_ascii=False)


def _list(items: Iterable[str]) -> str:
    texts = [_string(each) for each in items]
    line = f"[{', '.join(texts)}]"
    if len(line) <= _WIDTH - 10:
        return line
    lines = [""]
    for text in texts:
        if lines[-1] and len(lines[-1]) + len(text) + 4 > _WIDTH:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else '  '}{text},"
    return "\n".join(["[", *lines, "]"])


class Lists:
    """All lists."""

    def __init__(self, entries: Iterable[Difference], introductions: Mapping[str, str]) -> None:
        self.entries = tuple(entries)
        self._introductions = introductions

    @classmethod
    @cache
    def read(cls) -> Lists:
        """The lists as they are written."""
        entries: list[Difference] = []
        introductions = {}
        for name in (SHARED, *SERIES):
            text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
            introductions[name] = text.partition("\n\n")[0].rstrip()
            for entry in tomllib.loads(text).get("difference", []):
                given = {"versions": [name], **entry}
                for key in ("cases", "versions"):
                    given[key] = tuple(given[key])
                entries.append(Difference(**given))
        return cls(entries, introductions)

    def texts(self) -> dict[str, str]:
        """What is to be written, by the names of the files."""
        return {
            name: "\n\n".join([introduction, *(each.toml() for each in self.entries if each.file == name)])
            + "\n"
            for name, introduction in self._introductions.items()
        }

    def write(self) -> None:
        """Write the lists."""
        for name, text in self.texts().items():
            (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")

    def of(self, series: str) -> list[Difference]:
        """The entries about a series."""
        return [each for each in self.entries if series in each.versions]

    def entry(self, series: str, case_id: str) -> Difference | None:
        """The entry that covers a case."""
        return next((each for each in self.of(series) if each.covers(case_id)), None)

    def listed(self, series: str) -> dict[str, Difference]:
        """The cases that differ, by id."""
        found = ((case_id, self.entry(series, case_id)) for case_id in all_cases())
        return {case_id: entry for case_id, entry in found if entry is not None}

    def updated(self, measured: Mapping[str, Mapping[str, Outcome]]) -> Lists:
        """The lists as they have to be after a measurement: outcomes of cases by series and case id.

        Cases that no longer differ are taken out. New ones, and those that differ in another way than before,
        get entries of their own, which somebody has to explain.
        """
        entries = list(self.entries)
        for series, outcomes in measured.items():
            entries = [part for entry in entries for part in _remaining(entry, series, outcomes)]
        listed = {
            (series, case_id)
            for series, outcomes in measured.items()
            for case_id in outcomes
            if any(series in each.versions and each.covers(case_id) for each in entries)
        }
        new: dict[tuple[str, str, str], list[str]] = {}
        for series, outcomes in measured.items():
            for case_id, outcome in outcomes.items():
                if outcome.differs and (series, case_id) not in listed:
                    new.setdefault((case_id, *outcome), []).append(series)
        alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for (case_id, rabbitmq, fakeamqp), versions in new.items():
            alike.setdefault((rabbitmq, fakeamqp, tuple(versions)), []).append(case_id)
        entries += [
            Difference(tuple(cases), "defect", rabbitmq, fakeamqp, UNEXPLAINED, versions)
            for (rabbitmq, fakeamqp, versions), cases in alike.items()
        ]
        return Lists(_with_shared(entries), self._introductions)


def _remaining(entry: Difference, series: str, outcomes: Mapping[str, Outcome]) -> list[Difference]:
    """What is left of an entry where a series has these outcomes."""
    if series not in entry.versions:
        return [entry]
    wrong = {
        case_id
        for case_id, outcome in outcomes.items()
        if entry.covers(case_id) and not (outcome.differs and entry.explains(outcome))
    }
    if not wrong:
        return [entry]
    others = tuple(each for each in entry.versions if each != series)
    parts = [replace(entry, versions=others)] if others else []
    cases: list[str] = []
    for pattern in entry.cases:
        named = [case_id for case_id in all_cases() if fits(pattern, case_id)]
        right = [case_id for case_id in named if case_id not in wrong]
        cases += [pattern] if right == named else right
    if cases:
        parts.append(replace(entry, versions=(series,), cases=tuple(dict.fromkeys(cases))))
    return parts


def _with_shared(entries: Iterable[Difference]) -> list[Difference]:
    """Entries that say the same of several series are one."""
    found: dict[Difference, Difference] = {}
    for each in entries:
        key = replace(each, versions=())
        known = found.get(key)
        if known is not None:
            versions = tuple(name for name in SERIES if name in (*known.versions, *each.versions))
            found[key] = replace(known, versions=versions)
        else:
            found[key] = each
    return list(found.values())


def problem(series: str, case_id: str, outcome: Outcome) -> str:
    """What is not as the lists say; empty where everything is."""
    entry = Lists.read().entry(series, case_id)
    if STUMBLED in outcome.rabbitmq or STUMBLED in outcome.fakeamqp:
        what = "the case cannot tell what happened"
    elif entry is None:
        what = "the outcomes differ" if outcome.differs else ""
    elif not outcome.differs:
        what = "no longer differs; take it off the list of known differences"
    else:
        what = "" if entry.explains(outcome) else "differs in another way than the list says"
    return f"{case_id} on {series}: {what}\n{outcome}" if what else ""
