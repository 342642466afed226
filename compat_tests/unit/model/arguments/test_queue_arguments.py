"""Arguments of queues: what is read, how the rows agree, and that one row is enough."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import fakeamqp.model
from fakeamqp.model.arguments.exchange_arguments import EXCHANGE_ARGUMENTS, ExchangeOptions
from fakeamqp.model.arguments.policy_keys import POLICY_KEYS
from fakeamqp.model.arguments.queue_arguments import (
    CONSUMER_ARGUMENTS,
    QUEUE_ARGUMENTS,
    QUEUE_TYPES,
    ConsumerOptions,
    QueueOptions,
    queue_options,
)
from fakeamqp.model.arguments.rows import Argument
from fakeamqp.model.arguments.values import LONGEST_TTL
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.model.versions import EVERY


def options(**arguments: Any) -> QueueOptions:
    """Options of a queue; names without their x- and with underscores."""
    named = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return queue_options("classic", "q", "/", named, PERSONALITIES["rabbitmq-4.2"])


def refusal(**arguments: Any) -> str:
    with pytest.raises(PreconditionFailed) as caught:
        options(**arguments)
    return caught.value.text


def test_queue_without_known_arguments_has_default_options() -> None:
    assert options() == QueueOptions()
    assert options(colour="red") == QueueOptions()


def test_millisecond_arguments_become_options_in_seconds() -> None:
    assert options(message_ttl=1500).message_ttl == 1.5
    assert options(expires=1).expires == 0.001
    assert options(message_ttl=0).message_ttl == 0.0
    assert options(message_ttl=LONGEST_TTL).message_ttl == LONGEST_TTL / 1000


def test_all_classic_queue_arguments_can_be_combined() -> None:
    assert options(
        message_ttl=1000,
        expires=2000,
        max_length=3,
        max_length_bytes=4,
        max_priority=5,
        overflow="reject-publish-dlx",
        dead_letter_exchange="",
        dead_letter_routing_key="",
        single_active_consumer=True,
        queue_type="classic",
        queue_mode="lazy",
        queue_version=2,
    ) == QueueOptions(
        message_ttl=1.0,
        expires=2.0,
        max_length=3,
        max_length_bytes=4,
        max_priority=5,
        overflow="reject-publish-dlx",
        dead_letter_exchange="",
        dead_letter_routing_key="",
        single_active_consumer=True,
    )


@pytest.mark.parametrize("name", ["message_ttl", "expires", "max_length", "max_length_bytes", "max_priority"])
@pytest.mark.parametrize("value", [-1, 1.0, "1", True, None, b"1", [1], {}])
def test_negative_or_non_integer_number_argument_is_refused(name: str, value: Any) -> None:
    assert f"invalid arg 'x-{name.replace('_', '-')}' for queue 'q' in vhost '/': " in refusal(
        **{name: value}
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"message_ttl": LONGEST_TTL + 1}, "value_too_large"),
        ({"expires": LONGEST_TTL + 1}, "value_too_large"),
        ({"expires": 0}, "value_zero"),
        ({"max_priority": 256}, "max_value_exceeded"),
        ({"overflow": "spill"}, "invalid_overflow"),
        ({"dead_letter_routing_key": "k"}, "routing_key_but_no_dlx_defined"),
    ],
    ids=repr,
)
def test_argument_out_of_range_is_refused_with_reason(arguments: dict[str, Any], reason: str) -> None:
    assert reason in refusal(**arguments)


def test_argument_of_another_queue_type_is_refused() -> None:
    assert refusal(max_age="1D") == (
        "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
    )


# --- the rows agree with each other, and nothing else names an argument ---------------------------------


MODEL = Path(fakeamqp.model.__file__).parent
TABLES: dict[type, tuple[Argument, ...]] = {
    QueueOptions: QUEUE_ARGUMENTS,
    ConsumerOptions: CONSUMER_ARGUMENTS,
    ExchangeOptions: EXCHANGE_ARGUMENTS,
}


def strings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_each_argument_and_each_option_has_exactly_one_row() -> None:
    for record, rows in TABLES.items():
        names = [row.name for row in rows]
        assert len(set(names)) == len(names)
        assert [row.option for row in rows if row.option] == [each.name for each in fields(record)]


def test_argument_names_do_not_occur_outside_arguments_package() -> None:
    names = {row.name for rows in TABLES.values() for row in rows}
    # Keys of one word, such as "expires" and "overflow", are also words of other things.
    names |= {key for key in POLICY_KEYS if "-" in key}
    found = [
        f"{path.relative_to(MODEL)}:{line}: {value}"
        for path in sorted(MODEL.rglob("*.py"))
        if path.parent.name != "arguments"
        for line, value in strings(path)
        if value in names
    ]
    assert not found


def test_argument_name_occurs_at_most_once_in_each_table_module() -> None:
    for table in ("queue_arguments", "exchange_arguments"):
        named = [value for _, value in strings(MODEL / "arguments" / f"{table}.py")]
        for row in (row for rows in TABLES.values() for row in rows):
            assert named.count(row.name) <= 1, (table, row.name)


def test_comparison_positions_are_unique_or_absent_for_each_queue_type() -> None:
    for kind in QUEUE_TYPES:
        taken = [row.types[kind] for row in QUEUE_ARGUMENTS if kind in row.types]
        positions = [each.position for each in taken if each.compared]
        assert not any(positions) or len(set(positions)) == len(positions) > positions.count(0) == 0, kind


def test_versions_of_rows_equal_known_personalities() -> None:
    assert set(PERSONALITIES) == EVERY


def test_every_operator_policy_key_is_also_a_policy_key() -> None:
    for name, key in POLICY_KEYS.items():
        assert key.operator <= key.versions, name


def test_policy_merges_only_apply_to_queue_types_that_take_the_argument() -> None:
    for row in QUEUE_ARGUMENTS:
        if row.policy is not None:
            assert set(row.policy.merges) <= set(row.types), row.name
            assert (row.policy.merge is not None) == bool(row.option), row.name


# --- one row is enough for an argument -------------------------------------------------------------------


ARGUMENT = """\
    most_readers: int | None = option(
        "x-most-readers",
        ArgumentReader.positive,
        {"quorum": Taken(SINCE_4_3, position=210)},
        PolicyKey(values.positive("is not a number of readers"), versions=SINCE_4_3, merge=min, foreign={}),
    )
    def __repr__(self)"""

PROGRAM = """
from importlib.machinery import SourceFileLoader

get_data = SourceFileLoader.get_data

def with_row(loader, path):
    data = get_data(loader, path)
    if path.endswith("queue_arguments.py"):
        data = data.replace(b"    def __repr__(self)", ROW.encode(), 1)
        assert b"x-most-readers" in data
    return data

SourceFileLoader.get_data = with_row
path_stats = SourceFileLoader.path_stats

def not_compiled(loader, path):
    if path.endswith("queue_arguments.py"):
        raise OSError
    return path_stats(loader, path)

SourceFileLoader.path_stats = not_compiled

from compat_tests.tools.personalities import choices_table
from fakeamqp import Broker
from fakeamqp.settings import PERSONALITIES
from fakeamqp.model.arguments.queue_arguments import compared_arguments, queue_options
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.policies import PolicyError

def refusal(kind, arguments):
    try:
        queue_options(kind, "q", "/", arguments, PERSONALITIES["rabbitmq-4.3"])
    except PreconditionFailed as refused:
        return refused.text

print(queue_options("quorum", "q", "/", {"x-most-readers": 2}, PERSONALITIES["rabbitmq-4.3"]).most_readers)
print(queue_options("quorum", "q", "/", {"x-most-readers": 0}, PERSONALITIES["rabbitmq-4.2"]).most_readers)
print(refusal("quorum", {"x-most-readers": 0}))
print(refusal("classic", {"x-most-readers": 2}))
print("x-most-readers" in compared_arguments("quorum", PERSONALITIES["rabbitmq-4.3"]))
print("`x-most-readers` in declarations of quorum queues" in choices_table())

ARGUMENTS = {"x-queue-type": "quorum", "x-most-readers": 5}
QUEUE = {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": ARGUMENTS}
with Broker(definitions={"queues": [QUEUE]}) as broker:
    broker.admin.set_policy("p", "q", {"most-readers": 3})
    print(broker._state.virtual_hosts["/"].queues["q"].options)
    try:
        broker.admin.set_policy("p", "q", {"most-reader": 3})
    except PolicyError as unknown:
        print(str(unknown).partition("; ")[2])
"""


def test_one_option_row_adds_queue_argument_and_policy_key() -> None:
    program = f"ROW = {ARGUMENT!r}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2",
        "None",
        "invalid arg 'x-most-readers' for queue 'q' in vhost '/': {value_zero,0}",
        "invalid arg 'x-most-readers' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
        "True",
        "True",
        "QueueOptions(most_readers=3)",
        "did you mean 'most-readers'?",
    ]
