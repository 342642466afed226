"""The methods of 0-9 in RabbitMQ: those of 0-9, and what the facts about 0-9-1 add to them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9.codec.methods import ADDED, RABBITMQ_METHODS
from fakeamqp.protocols.amqp_0_9.method_names import METHOD_NAMES
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m091

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPEC = Path(__file__).resolve().parents[4] / "spec"
BOTH = sorted(m09.METHODS.keys() & m091.METHODS.keys())


def facts(name: str) -> dict[int, dict[str, Any]]:
    """The methods of a protocol as its facts tell them, by index."""
    spec = tomllib.loads((SPEC / name).read_text(encoding="utf-8"))
    return {each["id"] << 16 | method["id"]: method for each in spec["classes"] for method in each["methods"]}


def test_added_methods_are_exactly_those_of_0_9_1_missing_in_0_9() -> None:
    of_0_9, of_0_9_1 = facts("amqp-0-9.toml"), facts("amqp-0-9-1.toml")
    assert ADDED.keys() == of_0_9_1.keys() - of_0_9.keys()
    of_the_document = {index for index in ADDED if of_0_9_1[index].get("extension") != "rabbitmq"}
    assert {ADDED[index].NAME for index in of_the_document} == {"basic.recover", "basic.recover-ok"}


def test_no_method_of_0_9_is_replaced() -> None:
    assert RABBITMQ_METHODS == {**m09.METHODS, **ADDED}
    assert RABBITMQ_METHODS.keys() == m09.METHODS.keys() | m091.METHODS.keys()


@pytest.mark.parametrize("index", BOTH, ids=lambda index: m09.METHODS[index].NAME)
def test_methods_of_both_protocols_have_the_same_layout(index: int) -> None:
    """So it does not matter which of them reads it."""
    one, other = m09.METHODS[index], m091.METHODS[index]
    assert [kind for _, kind in one.LAYOUT] == [kind for _, kind in other.LAYOUT]
    assert one.HAS_CONTENT == other.HAS_CONTENT


def test_only_basic_recover_has_another_name_in_0_9_1() -> None:
    differing = {m09.METHODS[index].NAME: m091.METHODS[index].NAME for index in BOTH}
    assert {one: other for one, other in differing.items() if one != other} == {
        "basic.recover": "basic.recover-async"
    }


def test_method_names_equal_the_kinds_of_the_0_9_dialect() -> None:
    assert tuple(dialect_named("0-9").kinds) == METHOD_NAMES
