"""Runs suites, and compares how their tests went."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from compat_tests.client_suites.sources import Source
from compat_tests.client_suites.suites import INSIDE, Suite
from compat_tests.client_suites.targets import ROOT, Target, nodes, runtimes, targets, through_proxy
from compat_tests.tools.legs import Traffic
from compat_tests.tools.loopback import free_port

__all__ = [
    "Comparison",
    "Outcome",
    "SuiteError",
    "compare",
    "measured",
    "measured_in_loops",
    "measured_through_proxy",
    "run",
]

_NOT_SERVED = 1
"""The port for TLS: whoever asks for it is refused."""
_AT_ONCE = 6
"""Suites wait more than they work."""
SECOND_LOOKS = 2
"""How often tests that went otherwise are run again on both sides: a busy machine may have been too slow."""


class SuiteError(Exception):
    """A suite did not run to its end; the text has the end of its output."""


class Outcome(NamedTuple):
    """How a test went: `status` is passed, failed or skipped, `why` the reason."""

    status: str
    why: str
    seconds: float


def run(
    suite: Suite, source: Source, target: Target, only: Sequence[str] = (), *, whole: bool = True
) -> dict[str, Outcome]:
    """Run a suite on a target.

    Args:
        only: the tests to run, by id; by default all of the suite.
        whole: with what is slow.

    Returns:
        How each test went, by its id.

    Raises:
        SuiteError: it did not run to its end.
    """
    with tempfile.TemporaryDirectory() as made:
        report = Path(made, "outcomes.json")
        port = target.port or free_port()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST", "PYTHON", "RABBITMQ", "FAKEAMQP_SUITE_"))
        }
        environment = {
            **kept,
            "PATH": f"{source.interpreter.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(INSIDE) if target.in_loops is None else f"{INSIDE}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "FAKEAMQP_SUITE_OUTCOMES": str(report),
            "FAKEAMQP_SUITE_PORTS": json.dumps({"5672": port, **target.services}),
            "FAKEAMQP_SUITE_CONTAINER": json.dumps({"5672/tcp": port, "5671/tcp": _NOT_SERVED}),
            **{name: value.format(host=target.host, port=port) for name, value in suite.environment.items()},
        }
        in_loops = target.in_loops is not None
        if in_loops:
            environment["FAKEAMQP_SUITE_BROKER"] = json.dumps({**target.in_loops, "port": port})
        arguments = suite.arguments(only, whole=whole, in_loops=in_loops)
        try:
            done = subprocess.run(
                [str(source.interpreter), *arguments],
                cwd=source.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=suite.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SuiteError(
                f"{suite} on {target} took more than {suite.seconds:g} s:\n{_tail(error.stdout)}"
            ) from None
        # 0: all passed; 1: some failed.
        if done.returncode not in (0, 1) or not report.is_file():
            raise SuiteError(f"{suite} on {target} ended with {done.returncode}:\n{_tail(done.stdout)}")
        found = {test: Outcome(*outcome) for test, outcome in json.loads(report.read_text()).items()}
        return {test: outcome for test, outcome in found.items() if not only or test in only}


def _tail(output: str | bytes | None) -> str:
    text = output.decode(errors="replace") if isinstance(output, bytes) else output or ""
    return text[-3000:]


@dataclass(frozen=True)
class Comparison:
    """How a suite went on two targets."""

    suite: Suite
    targets: tuple[Target, Target]
    outcomes: tuple[Mapping[str, Outcome], Mapping[str, Outcome]]

    def differing(self) -> list[str]:
        """The tests that went differently, in the order of the suite."""
        there, here = self.outcomes
        return [test for test in {**there, **here} if _status(there, test) != _status(here, test)]

    def statuses(self, test: str) -> tuple[str, str]:
        """How a test went on both."""
        there, here = self.outcomes
        return _status(there, test), _status(here, test)

    def counts(self, side: int) -> str:
        """How many tests passed, failed and were skipped on one of the targets."""
        count = Counter(each.status for each in self.outcomes[side].values())
        return ", ".join(f"{count[status]} {status}" for status in ("passed", "failed", "skipped"))

    def seconds(self, side: int) -> float:
        """How long the tests took on one of the targets."""
        return sum(each.seconds for each in self.outcomes[side].values())

    def explained(self, test: str) -> str:
        """What happened to a test on both."""
        lines = [test]
        for target, found in zip(self.targets, self.outcomes, strict=True):
            why = found[test].why.strip().splitlines()[:12] if test in found else []
            lines += [f"  {target}: {_status(found, test)}", *(f"    {line}" for line in why)]
        return "\n".join(lines)


def _status(found: Mapping[str, Outcome], test: str) -> str:
    return found[test].status if test in found else "not run"


def compare(
    runs: Iterable[tuple[Suite, Source, tuple[Target, Target]]], *, whole: bool = True
) -> list[Comparison]:
    """Run each suite on a pair of targets; tests that go differently are run again, up to two times.

    Raises:
        SuiteError: a suite did not run to its end.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        started = [
            (suite, source, pair, [pool.submit(run, suite, source, target, whole=whole) for target in pair])
            for suite, source, pair in runs
        ]
        found = [
            (source, Comparison(suite, pair, (there.result(), here.result())))
            for suite, source, pair, (there, here) in started
        ]
        return [_looked_at_again(compared, source) for source, compared in found]


def _looked_at_again(compared: Comparison, source: Source) -> Comparison:
    for _ in range(SECOND_LOOKS):
        again = compared.differing()
        if not again:
            break
        there, here = (run(compared.suite, source, target, again) for target in compared.targets)
        compared = Comparison(
            compared.suite,
            compared.targets,
            ({**compared.outcomes[0], **there}, {**compared.outcomes[1], **here}),
        )
    return compared


def measured(
    suites: Mapping[Suite, Source], versions: Sequence[str], *, whole: bool = True
) -> dict[str, list[Comparison]]:
    """How suites went, whole or without what is slow, by the series.

    Raises:
        RabbitMQError: a node does not start.
        SuiteError: a suite did not run to its end.
    """
    with contextlib.ExitStack() as running:
        pairs: dict[tuple[str, Path | None], tuple[Target, Target]] = {}
        runs = []
        for version, (suite, source) in itertools.product(versions, suites.items()):
            key = (version, source.certificates if suite.services else None)
            if key not in pairs:
                pairs[key] = running.enter_context(targets(*key))
            runs.append((suite, source, pairs[key]))
        found = compare(runs, whole=whole)
        by_version: dict[str, list[Comparison]] = {version: [] for version in versions}
        for each in found:
            by_version[next(of for (of, _), pair in pairs.items() if pair == each.targets)].append(each)
        return by_version


def measured_in_loops(suites: Mapping[Suite, Source], *, whole: bool = True) -> list[Comparison]:
    """How suites went on the broker in a thread, and in the event loop of each test.

    Raises:
        SuiteError: a suite did not run to its end.
    """
    with runtimes() as pair:
        return compare([(*each, pair) for each in suites.items()], whole=whole)


def measured_through_proxy(
    suites: Mapping[Suite, Source], *, whole: bool = True
) -> list[tuple[Comparison, Traffic]]:
    """How suites went on RabbitMQ and through a proxy, and the bytes that passed: each suite has a proxy.

    Raises:
        RabbitMQError: a node does not start.
        SuiteError: a suite did not run to its end.
    """
    with nodes() as both, contextlib.ExitStack() as proxies:
        made = [proxies.enter_context(through_proxy(both)) for _ in suites]
        runs = [(*each, pair) for each, (pair, _) in zip(suites.items(), made, strict=True)]
        found = compare(runs, whole=whole)
        return [(compared, legs.traffic()) for compared, (_, legs) in zip(found, made, strict=True)]
