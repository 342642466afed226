"""The rows of arguments and policy keys: they agree with each other, and nothing else names an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import fakeamqp.model
from fakeamqp.model.arguments.exchange_arguments import EXCHANGE_ARGUMENTS, ExchangeOptions
from fakeamqp.model.arguments.policy_keys import POLICY_KEYS
from fakeamqp.model.arguments.queue_arguments import (
    CONSUMER_ARGUMENTS,
    QUEUE_ARGUMENTS,
    QUEUE_TYPES,
    ConsumerOptions,
    QueueOptions,
)
from fakeamqp.model.arguments.rows import Argument
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.model.versions import EVERY

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


def test_each_argument_and_each_option_stands_in_one_row() -> None:
    for record, rows in TABLES.items():
        names = [row.name for row in rows]
        assert len(set(names)) == len(names)
        assert [row.option for row in rows if row.option] == [each.name for each in fields(record)]


def test_names_stand_in_their_rows_only() -> None:
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


def test_names_stand_once_where_the_rows_are() -> None:
    for table in ("queue_arguments", "exchange_arguments"):
        named = [value for _, value in strings(MODEL / "arguments" / f"{table}.py")]
        for row in (row for rows in TABLES.values() for row in rows):
            assert named.count(row.name) <= 1, (table, row.name)


def test_positions_order_all_of_a_type_or_none() -> None:
    for kind in QUEUE_TYPES:
        taken = [row.types[kind] for row in QUEUE_ARGUMENTS if kind in row.types]
        positions = [each.position for each in taken if each.compared]
        assert not any(positions) or len(set(positions)) == len(positions) > positions.count(0) == 0, kind


def test_rows_name_personalities_that_exist() -> None:
    assert set(PERSONALITIES) == EVERY


def test_a_policy_can_set_what_an_operator_policy_can() -> None:
    for name, key in POLICY_KEYS.items():
        assert key.operator <= key.versions, name


def test_an_option_that_policies_set_is_one_of_a_type_that_takes_the_argument() -> None:
    for row in QUEUE_ARGUMENTS:
        if row.policy is not None:
            assert set(row.policy.merges) <= set(row.types), row.name
            assert (row.policy.merge is not None) == bool(row.option), row.name
