"""The tables about the suites of clients in docs/fidelity.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compat_tests.client_suites.differences import known, problems, problems_of_equals
from compat_tests.client_suites.running import Comparison
from compat_tests.client_suites.suites import SUITES
from compat_tests.tools import tables
from compat_tests.tools.legs import Traffic

__all__ = ["differences_table", "left_out_table", "measured_table", "through_proxy_table"]


def measured_table(found: Mapping[str, Sequence[Comparison]]) -> str:
    """How the suites went, by the series."""
    head = ["Suite", "RabbitMQ", "Personality", "On RabbitMQ", "On the broker", "Differ", "Not as listed"]
    rows = [
        [
            f"{compared.suite} {compared.suite.version}",
            compared.targets[0].name.removeprefix("RabbitMQ "),
            f"`{compared.targets[1]}`",
            compared.counts(0),
            compared.counts(1),
            str(len(compared.differing())),
            str(len(problems(version, compared))),
        ]
        for version, comparisons in found.items()
        for compared in comparisons
    ]
    order = list(SUITES)
    return tables.table(head, sorted(rows, key=lambda row: order.index(row[0].partition(" ")[0])))


def through_proxy_table(found: Sequence[tuple[Comparison, Traffic]]) -> str:
    """How the suites went with and without a proxy, and what passed through it."""
    head = [
        "Suite",
        f"On {found[0][0].targets[0]}",
        "Through a proxy",
        "Not as listed",
        "Connections",
        "Frames",
        "Heartbeats",
        "Bytes",
        "Different on the legs",
    ]
    rows = [
        [
            f"{compared.suite} {compared.suite.version}",
            compared.counts(0),
            compared.counts(1),
            str(len(problems_of_equals(compared))),
            *(f"{each:,}".replace(",", " ") for each in traffic[:4]),
            str(len(traffic.problems)),
        ]
        for compared, traffic in found
    ]
    return tables.table(head, rows)


def differences_table() -> str:
    """The tests that are known to differ, and why."""
    rows = [
        [
            each.suite,
            ", ".join(each.versions),
            ", ".join(f"`{test}`" for test in each.tests),
            "varies" if each.sometimes else each.rabbitmq,
            "varies" if each.sometimes else each.fakeamqp,
            each.reason,
        ]
        for each in known()
    ]
    return tables.table(["Suite", "RabbitMQ", "Tests", "On RabbitMQ", "On the broker", "Why"], rows)


def left_out_table() -> str:
    """What of the suites is run, and what is not."""
    rows = []
    for suite in SUITES.values():
        left_out = [f"`{tests}`: {reason}" for tests, reason in suite.left_out.items()]
        if suite.not_matching is not None:
            pattern, reason = suite.not_matching
            left_out.append(f"tests with `{pattern.strip('()')}` in their ids: {reason}")
        runs = "command only" if not suite.short else "long tests"
        if suite.short and suite.slow:
            runs += f" (command only: {', '.join(f'`{each}`' for each in suite.slow)})"
        tests = ", ".join(f"`{each}`" for each in suite.tests)
        rows.append([f"{suite} {suite.version}", suite.origin, tests, "; ".join(left_out), runs])
    return tables.table(["Suite", "Source", "Parts that run", "Parts that do not", "Run by"], rows)
