"""docs/fidelity.md, made of a measurement and of the lists: `python -m compat_tests.differential.fidelity`.

The numbers of cases come from the lists of known differences, which the tests hold against RabbitMQ. What was
measured when the page was written, random programs above all, is in a table of its own.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compat_tests.client_suites import running, sources, suites, tables as client_suites, targets
from compat_tests.differential import programs
from compat_tests.differential.comparison import SERIES, all_cases, side_by_side
from compat_tests.differential.differences import KINDS, Lists, problem
from compat_tests.differential.rabbitmq_node import RabbitMQError, available
from compat_tests.programs.program import Program
from compat_tests.programs.seeds import USUAL_SEED
from compat_tests.scripted import known_differences
from compat_tests.tools import tables

__all__ = ["FAMILIES", "PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"
PROGRAMS = 500

FAMILIES = {
    "403": "exclusive consumers",
    "404": "queues and exchanges that do not exist",
    "405": "exclusive queues",
    "406": "declarations that differ from the existing entity",
    "530": "consumer tags in use",
    "540": "methods that are not implemented",
    "ack": "acknowledgements, and tags that are unknown",
    "acl": "permissions, topic permissions",
    "age": "ages of streams",
    "alarm": "memory and disk alarms",
    "amq": "names that begin with amq., predeclared exchanges",
    "amqp-1.0": "the header of AMQP 1.0",
    "args": "arguments of declarations, bindings and consumers",
    "auto-delete": "queues that delete themselves with their last consumer",
    "behind": "frames behind one that causes an error",
    "bind": "durable queues and transient exchanges",
    "blank-queue": "blank queue names, in every state of a channel",
    "brief": "quorum queues: times to live",
    "bytes": "quorum queues: limits in bytes",
    "cancel-ok": "basic.cancel-ok from a client",
    "chan": "channels: opening, closing, numbers",
    "channel-max": "numbers of channels",
    "channel0": "frames of channel 0",
    "closed": "connections that an operator closes",
    "confirm": "publisher confirms",
    "confirms": "confirms of unroutable messages",
    "conn": "protocol headers, login, tuning, closing",
    "consume": "consumers, prefetch, cancellation",
    "consumer-timeout": "the acknowledgement timeout of a node",
    "count": "the bytes of basic.get-empty",
    "credit": "streams: credit, settlement, counts",
    "dead": "dead letters and their headers",
    "default-type": "default queue types of virtual hosts",
    "empty": "names that are empty",
    "exchange-type": "exchange types",
    "expiration": "texts about expirations",
    "filter": "streams: filters",
    "firehose": "the firehose: copies of messages",
    "float": "texts with floats",
    "frame": "frames, contents and tables that cannot be read",
    "frame-max": "sizes of frames at the agreed limit",
    "hashing": "refusals of hash exchanges, x-random",
    "header-0-9": "clients that open with the header of AMQP 0-9",
    "headers": "headers exchanges: matching",
    "heartbeat": "heartbeats: sending, detection of silence",
    "held": "quorum queues: dead letters at least once",
    "ids": "methods that RabbitMQ refuses",
    "limit": "limits of virtual hosts and users",
    "limits": "limits that change under open connections",
    "locator": "the locator of a queue's master",
    "login": "logins that fail",
    "malformed": "input that cannot be read, in every state of a channel",
    "message-size": "sizes of messages",
    "misc": "methods without effect",
    "mode": "the mode of classic queues",
    "names": "names: length, UTF-8",
    "offset": "streams: where consumers begin",
    "operator": "alarms, closed connections, changed permissions, restarts",
    "permission": "permissions that change under open channels",
    "policy": "policies and operator policies",
    "priority": "priorities",
    "publish": "publishing, properties, headers",
    "qos": "shared prefetch limits",
    "quorum": "quorum queues",
    "redelivered": "dead letters that stay redelivered",
    "reply-to": "direct reply-to",
    "restart": "entities and messages after a restart",
    "retention": "streams: retention",
    "retry": "quorum queues: delayed retries",
    "returns": "quorum queues: counts and limits of returned messages",
    "server-method": "methods that only a server sends",
    "single": "single active consumers",
    "size": "the largest messages",
    "spread": "distribution of messages by hash exchanges",
    "stream": "streams",
    "tables": "order, duplicates and widths in tables",
    "timeout": "acknowledgement timeouts of queues",
    "topic": "topic exchanges: matching",
    "transient": "transient queues",
    "ttl": "times to live",
    "tune": "connection.tune-ok",
    "twice": "headers that a message has twice",
    "tx": "transactions",
    "urgency": "quorum queues: priorities",
    "user": "accounts that are deleted or get another password",
    "utf-8": "names that are not UTF-8",
    "vhost": "virtual hosts that are added and deleted",
}
"""What the cases of a family are about, by the first part of their ids."""


def family(case_id: str) -> str:
    return case_id.partition("/")[0]


def cases_table() -> str:
    """How many cases of each family differ in each series, as the lists have it."""
    total = Counter(map(family, all_cases()))
    differing = {name: Counter(map(family, Lists.read().listed(name))) for name in SERIES}
    rows = [
        [f"`{name}/`", FAMILIES[name], str(count), *(str(differing[each][name] or "") for each in SERIES)]
        for name, count in sorted(total.items())
    ]
    sums = {name: sum(counts.values()) for name, counts in differing.items()}
    count = total.total() if hasattr(total, "total") else sum(total.values())
    rows.append(["all", "differ", str(count), *(str(sums[name]) for name in SERIES)])
    rows.append(["", "equal", "", *(f"{(count - sums[name]) / count:.1%}" for name in SERIES)])
    return tables.table(["Family", "About", "Cases", *(f"differ on {name}" for name in SERIES)], rows)


def differences_table() -> str:
    """What differs, and why."""
    found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for entry in Lists.read().entries:
        found.setdefault((entry.kind, entry.reason, entry.versions), []).extend(entry.cases)
    order = list(KINDS)
    rows = [
        [", ".join(versions), kind, reason, ", ".join(f"`{_cell(each)}`" for each in cases)]
        for (kind, reason, versions), cases in sorted(
            found.items(), key=lambda item: (order.index(item[0][0]), [*SERIES].index(item[0][2][0]))
        )
    ]
    return tables.table(["RabbitMQ", "Kind", "Why", "Cases"], rows)


def programs_table() -> str:
    """What differs in random programs, and why."""
    rows = [
        [", ".join(entry.versions), entry.kind, " ".join(entry.reason.split())]
        for entry in programs.DIFFERENCES
    ]
    return tables.table(["RabbitMQ", "Kind", "Why"], rows)


def behaviour_table() -> str:
    """How many protocol tests ran on each series, as `--record-on` counted."""
    kept = known_differences.results()
    found = [kept[name] for name in SERIES if name in kept]
    needs = sorted({need for each in found for need in each["skipped"] if "rabbitmq-" not in need})
    outcomes = {"pass": "passed", "differ, as listed": "different", "fail": "failed"}
    rows = [
        *([words, *(str(each["outcomes"].get(key, 0)) for each in found)] for words, key in outcomes.items()),
        *([f"need {need}", *(str(each["skipped"].get(need, 0)) for each in found)] for need in needs),
        ["are about another version", *(str(_of_others(each["skipped"])) for each in found)],
    ]
    return tables.table(["Cases that", *(f"on {each['version']}" for each in found)], rows)


def _of_others(skipped: Mapping[str, int]) -> int:
    return sum(count for need, count in skipped.items() if "rabbitmq-" in need)


def behaviour_differences_table() -> str:
    """The protocol tests that fail on RabbitMQ, and why."""
    rows = [
        [
            ", ".join(entry.versions),
            entry.kind,
            _cell(entry.rabbitmq),
            _cell(entry.reason),
            ", ".join(f"`{_cell(each.partition('::')[2])}`" for each in entry.tests),
        ]
        for entry in known_differences.entries()
    ]
    return tables.table(["RabbitMQ", "Kind", "RabbitMQ does", "Why", "Tests"], rows)


def measure_behaviour() -> None:
    """Run the protocol tests on a node of each series, and keep the results."""
    for series in SERIES:
        tests = ("compat_tests/protocol/amqp_0_9_1", "--on", f"rabbitmq-{series}", "--record-on")
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *tests], check=False)


def kinds_table() -> str:
    return tables.table(["Kind", "is"], [[kind, words] for kind, words in KINDS.items()])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


MADE = {
    "behaviour tests": behaviour_table,
    "differences in behaviour tests": behaviour_differences_table,
    "cases": cases_table,
    "kinds": kinds_table,
    "differences": differences_table,
    "programs": programs_table,
    "clients' suites that differ": client_suites.differences_table,
    "clients' suites": client_suites.left_out_table,
}


def with_tables(page: str) -> str:
    """The page with the tables that come from the lists."""
    return tables.with_tables(page, MADE)


def measured_row(series: str, chosen: Sequence[Program]) -> list[str]:
    """Run all cases and some programs on a series and on the broker: a row of the table."""
    with side_by_side(series) as both:
        outcomes = both.compare_all(
            all_cases().values(), lambda case, outcome: problem(series, case.id, outcome)
        )
        wrong = [case_id for case_id, outcome in outcomes.items() if problem(series, case_id, outcome)]
        equal = sum(not outcome.differs for outcome in outcomes.values())
        found = programs.ProgramsSideBySide(series, both).compare_all(chosen)
        for case_id in wrong:
            print(problem(series, case_id, outcomes[case_id]))
        for _, difference in found.parted:
            print(f"a program parts on {series}: {difference}")
        return [
            both.node.version,
            f"`{both.personality}`",
            f"{equal} of {len(outcomes)} ({equal / len(outcomes):.1%})",
            str(len(wrong)),
            f"{found.count - found.too_slow - len(found.parted)} of {found.count - found.too_slow}",
        ]


def measured_table(rows: Iterable[list[str]]) -> str:
    head = [
        "RabbitMQ",
        "Personality",
        "Equal cases",
        "Cases not as listed",
        "Programs without an unlisted difference",
    ]
    return tables.table(head, list(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure on every RabbitMQ at hand, and write the page.

    Returns:
        The exit status: 2 where there is not every series.
    """
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.differential.fidelity", description=(main.__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--lists-only", action="store_true", help="only what follows from the lists")
    suites_or_not = parser.add_mutually_exclusive_group()
    suites_or_not.add_argument("--without-suites", action="store_true", help="all but the clients' suites")
    suites_or_not.add_argument("--only-suites", action="store_true", help="only the clients' suites")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="random programs for each series")
    parser.add_argument("--seed", type=int, default=USUAL_SEED, help="of the random programs")
    options = parser.parse_args(arguments)
    logging.disable()  # The broker tells of every broken client.
    page = PAGE.read_text(encoding="utf-8")
    if not options.lists_only:
        missing = [f"{series}: {reason}" for series in SERIES if (reason := available(series)) is not None]
        if missing:
            print("There is nothing to compare with.", *missing, sep="\n", file=sys.stderr)
            return 2
        made: dict[str, Callable[[], str]] = {}
        try:
            if not options.without_suites:
                made |= _measured_suites()
            if not options.only_suites:
                chosen = programs.drawn(options.seed, options.programs)
                measure_behaviour()
                with ThreadPoolExecutor(len(SERIES)) as pool:
                    rows = list(pool.map(lambda name: measured_row(name, chosen), SERIES))
                made["measured"] = lambda: measured_table(rows)
        except (RabbitMQError, running.SuiteError, sources.Unavailable) as error:
            print(error, file=sys.stderr)
            return 2
        page = tables.with_tables(page, made)
    PAGE.write_text(with_tables(page), encoding="utf-8")
    return 0


def _measured_suites() -> dict[str, Callable[[], str]]:
    chosen = {each: sources.source(each) for each in suites.SUITES.values()}
    found = running.measured(chosen, targets.VERSIONS)
    through_proxy = running.measured_through_proxy(chosen)
    return {
        "measured clients' suites": lambda: client_suites.measured_table(found),
        "clients' suites through a proxy": lambda: client_suites.through_proxy_table(through_proxy),
    }


if __name__ == "__main__":
    sys.exit(main())
