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
