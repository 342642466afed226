"""Mutation testing: do the quick tests notice a wrong line?

    python -m compat_tests.reliability.mutants --sample 1000 --seed 17    (make mutants)
    python -m compat_tests.reliability.mutants --part trace --sample 40 --seed 3    of one part (`PARTS`)
    python -m compat_tests.reliability.mutants --again    those that survived, after tests were added

draws mutants (`mutations.py`), runs for each the quick tests that reach the changed lines until one fails,
and writes mutants.json, for parts other than the model mutants-PART.json. `mutant_verdicts.toml` has the
verdicts on survivors.

1. Which test reaches which line is measured once, with coverage.py, and kept in `.mutants/` until the code
   changes. `--measure` measures anew; `--measure FILES` only the tests of these files.
2. One process collects all tests. For each mutant it forks; the child changes the code of the function and
   runs the tests in it, quick ones and those that found neighbours first. A test that fails has killed the
   mutant if it passes in a child without it. A test that takes ten times as long as it did and three seconds
   has killed it as well: these are the timeouts.
3. A larger sample of the same seed contains the smaller one. What is known in `.mutants/` is not run again.

Why not a library: mutmut 3 leaves out every decorated function (properties are a tenth of those here), has no
mutant that removes a statement or a raise, draws no sample, and generates a tree of all mutants of all files;
cosmic-ray starts the tests anew for each mutant, and to collect them takes longer than most mutants live.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

from compat_tests.reliability import results
from compat_tests.reliability.mutations import PARTS, SKIPPED, Mutant, chosen, files, mutants
from compat_tests.reliability.swapping import Functions

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = Path(__file__).with_name("mutant_verdicts.toml")

#: Tests with threads or processes of their own, and slow ones that other parts do not need.
LEFT_OUT = ("unit/runtime", "unit/test_deleted_protocols.py", "broker/test_interrupts.py")
MEMORY = 4 << 30


class _Kept:
    """The files in which the tool keeps what it knows about a part."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.folder = ROOT / ".mutants" / part
        self.coverage = self.folder / "coverage"
        self.durations = self.folder / "durations.json"
        self.outcomes = self.folder / "outcomes.json"
        self.sources = self.folder / "sources"

    def arguments(self, given: list[str] | None) -> list[str]:
        """Pytest's arguments for the tests of the part, or of the given files only."""
        tests = ROOT / "compat_tests"
        paths = given or [str(found) for each in PARTS[self.part].tests for found in sorted(tests.glob(each))]
        left_out = LEFT_OUT if self.part == "spark" else ("unit/spark", *LEFT_OUT)
        return [
            *paths,
            *("--tier=quick", "-q", "-s", "--no-header", "--import-mode=importlib"),
            *("-p", "no:cacheprovider", "-p", "no:randomly"),
            *(f"--ignore={tests / each}" for each in left_out),
        ]


def main(arguments: list[str] | None = None) -> int:
    """Run it. The status is 1 if less than nine of ten are killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--part", choices=sorted(PARTS), default="model", help="what is changed")
    parser.add_argument("--sample", type=int, default=1000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=17, help="which ones")
    parser.add_argument("--again", action="store_true", help="run those again that survived")
    parser.add_argument("--measure", nargs="*", metavar="FILE", help="measure which tests reach what")
    parser.add_argument(
        "--only", nargs="*", metavar="ID", default=[], help="these mutants, whatever is known"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of tests for one mutant")
    parser.add_argument("--until", help="HH:MM; what is left is not in the results")
    parser.add_argument("--inner", choices=("measure", "run"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    kept = _Kept(options.part)
    if options.inner == "measure":
        return _measure(kept, options.measure)
    if options.inner == "run":
        return _run(kept, options)
    kept.folder.mkdir(parents=True, exist_ok=True)
    changed = _sources(kept) != (kept.sources.read_text() if kept.sources.exists() else "")
    if changed:
        kept.outcomes.unlink(missing_ok=True)  # What was known may be different now.
    measuring = ("--part", options.part, "--inner", "measure", "--measure")
    if changed or options.measure == []:
        _python(*measuring)
    if options.measure:
        _python(*measuring, *options.measure)
    if options.measure is not None:
        return 0
    _python("--inner", "run", *(sys.argv[1:] if arguments is None else arguments))
    return _report(kept, options)


def _python(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "compat_tests.reliability.mutants", *arguments], cwd=ROOT, check=True
    )


def _sources(kept: _Kept) -> str:
    """Tells whether the code is the one that was measured."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in files(ROOT, kept.part))).hexdigest()


# Which test reaches what


class _Measuring:
    """Pytest plugin: a context of coverage.py, and a duration, for each test that passes."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.durations: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._measured.switch_context(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            if item.nodeid not in self._failed:
                self.durations[item.nodeid] = round(time.perf_counter() - began, 4)
            self._measured.switch_context("between tests")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)


def _measure(kept: _Kept, given: list[str] | None) -> int:
    into = kept.folder / "some" if given else kept.coverage
    into.unlink(missing_ok=True)
    inside = [f"{ROOT}/{folder}/*" for folder in PARTS[kept.part].folders]
    measured = coverage.Coverage(data_file=str(into), config_file=False, include=inside)
    measured.start()
    plugin = _Measuring(measured)
    try:
        pytest.main(kept.arguments(given), plugins=[plugin])
    finally:
        measured.stop()
        measured.save()
    known = json.loads(kept.durations.read_text()) if given else {}
    kept.durations.write_text(json.dumps({**known, **plugin.durations}))
    if not given:
        kept.sources.write_text(_sources(kept))
    else:
        whole = coverage.CoverageData(str(kept.coverage))
        whole.read()
        some = coverage.CoverageData(str(into))
        some.read()
        whole.update(some)
        whole.write()
    return 0


class _Reach:
    """Which tests reach which lines."""

    def __init__(self, kept: _Kept) -> None:
        self.durations: dict[str, float] = json.loads(kept.durations.read_text())
        self._data = coverage.CoverageData(str(kept.coverage))
        self._data.read()
        self._files: dict[str, dict[int, list[str]]] = {}
        self._shares: dict[str, Counter[str]] = {}

    def of(self, mutant: Mutant) -> set[str]:
        """The contexts of these lines; "" is the import."""
        lines = self._lines(mutant.file)
        return {context for line in range(mutant.first, mutant.last + 1) for context in lines.get(line, ())}

    def has(self, file: str) -> bool:
        """Whether a test reaches a line of the file."""
        return any(context in self.durations for each in self._lines(file).values() for context in each)

    def near(self, mutant: Mutant) -> set[str]:
        """Those that reach the line before a part of a constant, which has no code of its own."""
        lines = self._lines(mutant.file)
        return set(lines.get(max((line for line in lines if line <= mutant.first), default=0), ()))

    def share(self, test: str, file: str) -> int:
        """How many lines of a file a test reaches: those that are about it reach many."""
        if file not in self._shares:
            lines = self._lines(file)
            self._shares[file] = Counter(context for contexts in lines.values() for context in contexts)
        return self._shares[file][test]

    def _lines(self, file: str) -> dict[int, list[str]]:
        if file not in self._files:
            self._files[file] = self._data.contexts_by_lineno(str(ROOT / file))
        return self._files[file]


# The run


def _run(kept: _Kept, options: argparse.Namespace) -> int:
    reach = _Reach(kept)
    sample = _sample(options, reach)
    known = _outcomes(kept)
    if options.only:
        wanted = [mutant for mutant in sample if mutant.id in options.only]
    elif options.again:
        wanted = [mutant for mutant in sample if known.get(mutant.id, {}).get("outcome") == "survived"]
    else:
        wanted = [mutant for mutant in sample if mutant.id not in known]
    for name in files(ROOT, kept.part):
        importlib.import_module(
            ".".join(name.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        )
    plugin = _Running(wanted, reach, known, kept, options)
    pytest.main(kept.arguments(None), plugins=[plugin])
    return 0


def _sample(options: argparse.Namespace, reach: _Reach) -> list[Mutant]:
    all_of_them = [
        mutant
        for mutant in mutants(ROOT, options.part)
        if reach.has(mutant.file) and reach.of(mutant) != {""}
    ]
    return chosen(all_of_them, options.sample, options.seed)


def _outcomes(kept: _Kept) -> dict[str, dict[str, Any]]:
    return json.loads(kept.outcomes.read_text()) if kept.outcomes.exists() else {}


class _Running:
    """Pytest plugin: instead of the tests of the session, those that each mutant asks for."""

    def __init__(
        self,
        wanted: list[Mutant],
        reach: _Reach,
        known: dict[str, dict[str, Any]],
        kept: _Kept,
        options: argparse.Namespace,
    ) -> None:
        self._wanted = wanted
        self._kept = kept
        self._reach = reach
        self._known = known
        self._limit: float = options.limit
        self._until: str | None = options.until
        self._items: dict[str, pytest.Item] = {}
        self._trusted: dict[str, bool] = {}
        self._kills: dict[str, Counter[str]] = defaultdict(Counter)
        self._failed = False
        self._functions: Functions

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._items = {item.nodeid: item for item in items}
        self._functions = Functions(ROOT)  # Before the collector's generations are frozen.

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for number, mutant in enumerate(self._wanted, 1):
            if self._until is not None and time.strftime("%H:%M") >= self._until:
                break
            began = time.monotonic()
            outcome = self._outcome(mutant)
            outcome["seconds"] = round(time.monotonic() - began, 1)
            before = self._known.get(mutant.id, {})
            outcome["first"] = before.get("first", outcome["outcome"])
            self._known[mutant.id] = outcome
            self._kept.outcomes.write_text(json.dumps(self._known, indent=0))
            print(
                f"{number}/{len(self._wanted)} {mutant.id} {mutant.file}:{mutant.first} {outcome['outcome']}"
                f" {outcome['seconds']} s {outcome['by']}",
                flush=True,
            )
            if outcome["outcome"] == "survived":
                print(mutant.diff, flush=True)
        return True

    def _outcome(self, mutant: Mutant) -> dict[str, Any]:
        try:
            changed = self._functions.changed(mutant)
        except (LookupError, SyntaxError) as error:
            return {"outcome": "impossible", "by": str(error)}
        tests = self._tests(mutant)
        while True:
            outcome, by = self._fork(tests, changed)
            if outcome == "survived":
                break
            usual = self._reach.durations[by]
            if not self._is_trusted(by):
                tests = tests[tests.index(by) + 1 :]
            elif outcome == "killed" or self._reach.durations[by] <= usual:
                break
        if outcome != "survived":
            self._kills[mutant.file][by] += 1
        return {"outcome": outcome, "by": by if outcome != "survived" else f"{len(tests)} tests"}

    def _tests(self, mutant: Mutant) -> list[str]:
        durations = self._reach.durations
        kills = self._kills[mutant.file]
        reached = self._reach.of(mutant) or self._reach.near(mutant)
        found = [name for name in reached if name in self._items and name in durations]
        share = self._reach.share

        def worth(name: str) -> tuple[float, str]:
            return durations[name] / (share(name, mutant.file) ** 2 * (1 + 5 * kills[name])), name

        found.sort(key=worth)
        total = 0.0
        for number, name in enumerate(found):
            total += durations[name]
            if total > self._limit:
                return found[:number]
        return found

    def _is_trusted(self, test: str) -> bool:
        """Whether it passes without a mutant. What it takes now, on a busy machine, counts from now on."""
        if test not in self._trusted:
            began = time.monotonic()
            self._trusted[test] = self._fork([test], [], least=30)[0] == "survived"
            durations = self._reach.durations
            durations[test] = max(durations[test], time.monotonic() - began)
        return self._trusted[test]

    def _fork(self, tests: list[str], changed: list[Any], least: float = 3) -> tuple[str, str]:
        """Run tests in a child, until one fails. Gives what came of it, and the last test."""
        tests = [each for each in tests if self._trusted.get(each, True)]
        if not tests:
            return "survived", ""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            os._exit(self._in_child(tests, changed, writing))
        os.close(writing)
        number = -1
        outcome = "survived"
        try:
            while True:
                allowed = least + 10 * self._reach.durations[tests[max(number, 0)]]
                if not select.select([reading], [], [], allowed)[0]:
                    outcome = "timeout"
                    break
                octets = os.read(reading, 4096)
                if not octets:
                    break
                number += len(octets)
        finally:
            if outcome == "timeout":
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            os.close(reading)
        if outcome != "timeout" and status:
            outcome = "killed"
        return outcome, tests[max(number, 0)]

    def _in_child(self, tests: list[str], changed: list[Any], writing: int) -> int:
        """Gives the status of the child: 1 if a test failed."""
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            for function, code in changed:
                function.__code__ = code
            items = [self._items[each] for each in tests]
            for item, after in zip(items, [*items[1:], None], strict=True):
                os.write(writing, b".")
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self._failed:
                    return 1
        except BaseException:
            return 1
        return 0


# What it found


def _report(kept: _Kept, options: argparse.Namespace) -> int:
    verdicts = _verdicts()
    known = _outcomes(kept)
    reach = _Reach(kept)
    sample = [mutant for mutant in _sample(options, reach) if mutant.id in known]
    judged = [(mutant, known[mutant.id]) for mutant in sample if known[mutant.id]["outcome"] != "impossible"]
    killed = [each for _, each in judged if each["outcome"] != "survived"]
    survived: list[dict[str, Any]] = []
    for mutant, each in judged:
        if each["first"] != "survived":
            continue
        unrun = "not run: an import has run the line before the mutant comes"
        verdict = verdicts.get(mutant.id, unrun if "" in reach.of(mutant) else "not judged")
        if each["outcome"] != "survived":
            verdict = f"killed since: {each['by']}"
        survived.append(
            {
                "id": mutant.id,
                "file": mutant.file,
                "line": mutant.first,
                "function": mutant.function,
                "kind": mutant.kind,
                "diff": mutant.diff,
                "verdict": verdict,
            }
        )
    left = [each for each in survived if not each["verdict"].startswith("killed since")]
    equivalent = [each for each in left if each["verdict"].startswith("equivalent")]
    found = {
        "seed": options.seed,
        "sample": len(judged),
        "killed": len(killed),
        "killed_at_first": len(judged) - len(survived),
        "equivalent": len(equivalent),
        "timeouts": sum(each["outcome"] == "timeout" for each in killed),
        "kinds": dict(sorted(Counter(mutant.kind for mutant, _ in judged).items())),
        "skipped": SKIPPED,
        "survived": survived,
    }
    which = f"--part {kept.part} --sample {options.sample} --seed {options.seed}"
    name = "mutants" if kept.part == "model" else f"mutants-{kept.part}"
    results.write(name, f"python -m compat_tests.reliability.mutants {which}", found)
    share = len(killed) / max(len(judged), 1)
    print(
        f"{len(judged)} mutants of seed {options.seed}: {len(killed)} killed ({share:.1%}),"
        f" {found['timeouts']} of them by time; {len(judged) - len(survived)} at first."
        f" {len(left)} survive, {len(equivalent)} of them are equivalent."
    )
    return int(share < 0.9)


def _verdicts() -> dict[str, str]:
    """The id of each judged survivor, and the sentence about it."""
    if not VERDICTS.exists():
        return {}
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found: dict[str, str] = tomllib.loads(VERDICTS.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
