"""Measure brokers side by side: `python -m compat_tests.benchmarks.side_by_side [CASE ...]` (`make bench`).

Each client runs in a process of its own, one for each case and target. In every round each target has one
turn, and each round begins with another target; the first round does not count. So whatever else the machine
does happens to all of them. CASE is a pattern, such as 'pika: *'; `--list` shows the names.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from functools import partial
from importlib.metadata import version

from compat_tests.benchmarks import load
from compat_tests.benchmarks.imports import import_seconds
from compat_tests.benchmarks.side_by_side import fixture_costs, page
from compat_tests.benchmarks.side_by_side.cases import CASES, Case
from compat_tests.benchmarks.side_by_side.targets import TARGETS, obstacle, running
from compat_tests.reliability import results

__all__ = ["OTHERS", "main", "measure"]

Addresses = dict[str, load.Address | None]
"""The targets that are measured; None for those that run in the process of the client."""
Found = dict[str, dict[str, list[float]]]
"""By target and by what was measured (see `client.Measured`): a figure for each round."""

_LOAD = 60_000
_IMPORTED = ("import fakeamqp", "from fakeamqp import Broker")


# --- clients -------------------------------------------------------------------------------------------


def clients(
    case: Case, addresses: Addresses, rounds: int, fraction: float, interpreter: str = sys.executable
) -> Found:
    """Measure one case on all targets. The clients, and brokers in their process, run in this interpreter."""
    count = max(case.threads, round(case.count * fraction))
    found: Found = {}
    with ExitStack() as stack:
        workers = {
            target: stack.enter_context(_client(case, target, address, interpreter))
            for target, address in addresses.items()
            if case.on(target)
        }
        for target in turns(workers, rounds):
            for name, figure in workers[target](count).items():
                found.setdefault(target, {}).setdefault(name, []).append(figure)
    return _without_the_first(found)


def turns(targets: Iterable[str], rounds: int) -> Iterator[str]:
    """The targets in the order in which they are measured, with one round to warm up."""
    names = list(targets)
    for number in range(rounds + 1):
        first = number % len(names) if names else 0
        yield from names[first:] + names[:first]


@contextmanager
def _client(
    case: Case, target: str, address: load.Address | None, interpreter: str
) -> Iterator[Callable[[int], dict[str, float]]]:
    module = "compat_tests.benchmarks.side_by_side.client"
    command = [interpreter, "-m", module, case.name, target, "" if address is None else address.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def measure(count: int) -> dict[str, float]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{count}\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the client of {case.name!r} on {target!r} ended: see above")
            measured: dict[str, float] = json.loads(line)
            return measured

        yield measure


# --- the rest ------------------------------------------------------------------------------------------


def loads(addresses: Addresses, rounds: int, fraction: float, *, same_channel: bool) -> Found:
    """Microseconds per message of the raw load, on all targets with a process of their own."""
    with load.sink_serving() as sink:
        apart = {address.name: target for target, address in addresses.items() if address is not None}
        servers = [address for address in addresses.values() if address is not None]
        count = round(_LOAD * fraction)
        rates = load.take_turns([*servers, sink], count, rounds, same_channel=same_channel)
    return {apart.get(name, name): {"time": [1e6 / rate for rate in found]} for name, found in rates.items()}


def fixtures(_addresses: Addresses, rounds: int, fraction: float) -> Found:
    """Microseconds of a test that does nothing, by its arguments."""
    found: Found = {}
    for _ in range(rounds):
        for name, microseconds in fixture_costs.measure(max(2, round(20 * fraction))).items():
            found.setdefault(name, {"time": []})["time"].append(microseconds)
    return found


def imports(_addresses: Addresses, rounds: int, _fraction: float) -> Found:
    """Microseconds that an import adds to the start of an interpreter."""
    return {
        f"{statement}{'' if compiled else ', not compiled'}": {
            "time": [seconds * 1e6 for seconds in import_seconds(statement, compiled=compiled, runs=rounds)]
        }
        for statement in _IMPORTED
        for compiled in (True, False)
    }


OTHERS: dict[str, Callable[[Addresses, int, float], Found]] = {
    "load: same channel number": partial(loads, same_channel=True),
    "load: different channel numbers": partial(loads, same_channel=False),
    "fixtures": fixtures,
    "imports": imports,
}


def _without_the_first(found: Found) -> Found:
    return {target: {name: figures[1:] for name, figures in kinds.items()} for target, kinds in found.items()}


# --- all of it -----------------------------------------------------------------------------------------


def measure(
    names: Sequence[str],
    addresses: Addresses,
    rounds: int,
    fraction: float,
    interpreter: str = sys.executable,
) -> Iterator[tuple[str, Found]]:
    """Measure the cases of these names one after the other."""
    for case in CASES:
        if case.name in names:
            yield case.name, clients(case, addresses, rounds, fraction, interpreter)
    for name, others in OTHERS.items():
        if name in names:
            yield name, others(addresses, rounds, fraction)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print tables, and keep the results if asked to."""
    everything = [*(case.name for case in CASES), *OTHERS]
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.benchmarks.side_by_side",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="patterns (default: all cases)")
    parser.add_argument("--targets", nargs="+", default=["*"], metavar="TARGET", help="patterns (all)")
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    parser.add_argument(
        "--fraction", type=float, default=1.0, help="of the messages of a round (%(default)s)"
    )
    parser.add_argument(
        "--interpreter",
        default=sys.executable,
        metavar="PYTHON",
        help="of clients and of brokers in their process; it needs pika and aio-pika (this one)",
    )
    parser.add_argument("--list", action="store_true", help="show the names of cases and targets")
    parser.add_argument(
        "--record", action="store_true", help="keep the results, and write docs/benchmarks.md"
    )
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="TARGET=HOST:PORT",
        help="a running broker instead of one that is started, such as 'RabbitMQ 4.3=localhost:5672'",
    )
    given = parser.parse_args(arguments)
    if given.list:
        print(*everything, "", *TARGETS, sep="\n")
        return
    names = [each for each in everything if _matches(each, given.cases or ["*"])]
    if not names:
        parser.error("no case has such a name; --list shows them")
    found: dict[str, Found] = {}
    versions = {name: version(name) for name in ("pika", "aio-pika")}
    missing = {}
    with ExitStack() as stack:
        addresses: Addresses = {}
        for text in given.against:
            target, _, place = text.rpartition("=")
            host, _, port = place.rpartition(":")
            addresses[target] = load.Address(target, host, int(port))
        for target in TARGETS:
            if target in addresses or not _matches(target, given.targets):
                continue
            reason = obstacle(target)
            if reason is not None:
                missing[target] = reason
                print(f"Left out: {target}, because {reason}")
                continue
            addresses[target] = address = stack.enter_context(running(target))
            if address is not None:
                versions[target] = address.name
        addresses = {
            target: addresses[target] for target in sorted(addresses, key=[*TARGETS, *addresses].index)
        }
        for name, measured in measure(names, addresses, given.rounds, given.fraction, given.interpreter):
            found[name] = measured
            print(page.line(name, measured), flush=True)
    whole = {"rounds": given.rounds, "versions": versions, "missing": missing, "cases": found}
    print(page.text(whole))
    if given.record:
        results.write(page.NAME, "make bench", whole, page.FOLDER)
        page.main()


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


if __name__ == "__main__":
    main()
