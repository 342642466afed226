"""The sets of tests that the text of 0-9 wants an implementation to claim: which rules belong to each.

Tests of the rules are elsewhere; here it is seen that a set has no rule without one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from compat_tests.tools.conformance import Catalogue, Rule, marked_rules, read_catalogue

TESTS = Path(__file__).parents[1]
WIRE = {"protocol-header", "frame", "types", "content", "oob", "trace", "heartbeat", "request", "response"}
rule = pytest.mark.rule


@cache
def catalogue() -> Catalogue:
    return read_catalogue("0-9")


@cache
def marked() -> dict[str, set[str]]:
    return marked_rules(TESTS, catalogue())


SETS: dict[str, Callable[[Rule], bool]] = {
    "set-wire-valid": lambda each: each.group in WIRE and not each.refuses,
    "set-wire-invalid": lambda each: each.group in WIRE and each.refuses,
    "set-mandatory": lambda each: each.level in ("MUST", "MUST NOT"),
    "set-recommended": lambda each: each.level in ("SHOULD", "SHOULD NOT"),
    "set-optional": lambda each: each.level == "MAY",
    "set-limits": lambda each: each.testable == "load",
    "set-life-cycles": lambda each: (
        each.section in ("exchange.delete", "queue.delete", "channel.close", "connection.close")
        or "auto-delete" in each.id
    ),
}


@rule("0-9/conformance/assertion-style")
@rule("0-9/conformance/test-sets")
@pytest.mark.parametrize("name", [pytest.param(name, marks=rule(f"0-9/conformance/{name}")) for name in SETS])
def test_every_rule_of_a_set_has_a_test_or_an_exception(name: str) -> None:
    members = [each.id for each in catalogue().rules.values() if SETS[name](each)]
    assert len(members) > 5 and all(catalogue().same(id_) == [id_] for id_ in members)
    missing = [id_ for id_ in members if id_ not in marked() and id_ not in catalogue().exceptions]
    assert not missing, f"{len(missing)} of {len(members)}:\n" + "\n".join(missing)


def test_valid_and_invalid_wire_sets_share_no_rule() -> None:
    valid, invalid = SETS["set-wire-valid"], SETS["set-wire-invalid"]
    assert not [each.id for each in catalogue().rules.values() if valid(each) and invalid(each)]
