"""Pytest plugin: which tests are quick, and which take long.

`--tier quick` (`make test`) runs what must be green before a commit, in 4 to 9 minutes on two processors.
`--tier long` (`make test-all`) runs the rest, and once more every test that draws random examples: there they
are more, and new ones. Without the option everything runs.

A test is quick unless its file or a folder above it is in `LONG` or `LONG_EXAMPLES`, or it is marked with
`pytest.mark.long`.

`--one-in N` (CI) runs one in N of a tier: of the long tests, and of the quick ones on another Python. Of
`COSTLY`, which take most of the time, it is one in 5 N. The seed of the random examples draws them, so that
each commit gets others and a run can be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from compat_tests.programs.seeds import seed_of

__all__ = ["CORE_OF_SPARK", "COSTLY", "DRAWING", "LONG", "LONG_EXAMPLES"]

HERE = Path(__file__).resolve().parents[1]
EXAMPLES = HERE.parent / "examples"

#: Tests that need a real RabbitMQ, many real clients or schedules, an installation, a browser, or a Java for
#: each test.
LONG = (
    "benchmarks",
    "client_suites",
    "clients",
    "crashes",
    "differential",
    "docs/test_recipes.py",
    "faults/test_clients.py",
    "faults/test_soak.py",
    "faults/test_through_proxy.py",
    "fuzz/test_fuzz_plugin.py",
    "management/test_against_rabbitmq.py",
    "management/test_serve.py",
    "management/test_tools.py",
    "packaging",
    "pages",
    "plugin/test_spark_sessions.py",
    "simulation/libraries",
    "spark",
)
#: Files below `LONG` that are quick all the same.
CORE_OF_SPARK = ("spark/test_session.py",)
#: Examples whose tests are long. The batch job of Spark is quick: one whole job is among the quick tests.
LONG_EXAMPLES = ("spark_orders",)
#: Tests that draw random examples without being marked as tests of Hypothesis.
DRAWING = ("fuzz", "programs", "unit/model/queues/test_stream.py")
#: How much less often than others `--one-in` draws a costly test.
COSTLY_ONE_IN = 5
#: The costly tests: cases and clients on each RabbitMQ but that of the default personality, suites of
#: clients, tools and libraries of others, killed jobs, the longest random examples, a Java for each block of
#: a page or each test, clusters of Spark, a month under load.
COSTLY = re.compile(
    r"compat_tests/("
    r"differential/test_(against_rabbitmq|amqp_1_0|definitions|protocol_on_node|stream_readers)\.py"
    r".*\[(3\.10|4\.0)"
    r"|differential/test_(header_0_9|random_programs)\.py"
    r"|reliability/test_soak\.py"
    r"|client_suites/test_client_suites\.py.*\["
    r"|crashes/"
    r"|docs/test_recipes\.py"
    r"|management/test_(against_rabbitmq\.py.*\[4\.0|tools\.py)"
    r"|faults/test_(clients|through_proxy)\.py"
    r"|packaging/test_spark_workers\.py"
    r"|fuzz/test_mutated_streams\.py"
    r"|simulation/libraries/"
    r"|spark/test_(amqp_stream|docs|secrets)\.py"
    r"|plugin/test_spark_sessions\.py"
    r"|unit/test_deleted_protocols\.py"
    r")"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--tier",
        choices=("quick", "long"),
        help="run the quick tests, or the long ones and all that draw examples",
    )
    parser.getgroup("fakeamqp").addoption(
        "--one-in",
        type=int,
        metavar="N",
        default=1,
        help="with --tier: run one in N of the tests, drawn with the seed of the examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "long: a test that `make test` leaves to `make test-all`")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import files of long tests where the quick ones are asked for."""
    if config.getoption("--tier") == "quick" and collection_path.is_file() and in_long(collection_path):
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the other tier, and those that are not drawn."""
    tier = config.getoption("--tier")
    if tier is None:
        return
    chosen = [item for item in items if tier in tiers_of(item)]
    if (one_in := config.getoption("--one-in")) > 1:
        if not str(config.getoption("--hypothesis-seed", default=None)).isdecimal():
            raise pytest.UsageError("--one-in draws tests with a seed: --hypothesis-seed=NUMBER is missing")
        seed = seed_of(config)
        chosen = [item for item in chosen if is_drawn(item.nodeid, seed, one_in)]
    left = set(items).difference(chosen)
    if left:
        config.hook.pytest_deselected(items=list(left))
    items[:] = chosen


def tiers_of(item: pytest.Item) -> set[str]:
    """The tiers that run this test. Hypothesis marks its own tests."""
    if item.get_closest_marker("long") is not None or in_long(item.path):
        return {"long"}
    draws = item.get_closest_marker("hypothesis") is not None or _is_below(item.path, DRAWING)
    return {"quick", "long"} if draws else {"quick"}


def is_drawn(test: str, seed: int, one_in: int) -> bool:
    """Whether a test of this id runs where one in so many of the long tests does."""
    among = one_in if COSTLY.match(test) is None else COSTLY_ONE_IN * one_in
    return crc32(f"{seed} {test}".encode()) % among == 0


@cache
def in_long(path: Path) -> bool:
    """Whether the tests of this file are in `LONG` or `LONG_EXAMPLES`."""
    if _is_below(path, LONG_EXAMPLES, EXAMPLES):
        return True
    return _is_below(path, LONG) and not _is_below(path, CORE_OF_SPARK)


def _is_below(path: Path, parts: Iterable[str], folder: Path | None = None) -> bool:
    return any(path.is_relative_to((folder or HERE) / part) for part in parts)
