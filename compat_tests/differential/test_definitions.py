"""What RabbitMQ exports loads here, and what we dump loads there; both mean the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.differential.comparison import SERIES, Series
from compat_tests.differential.rabbitmq_node import RabbitMQError, RabbitMQNode
from fakeamqp import Broker
from fakeamqp.model.definitions import DefinitionsError
from fakeamqp.model.erlang import pairs_term
from fakeamqp.model.policies import effective_definition

if TYPE_CHECKING:
    from compat_tests.differential.conftest import Nodes

pytestmark = pytest.mark.timeout(900)

MADE: dict[str, Any] = {
    "vhosts": [{"name": "shop", "metadata": {"description": "Orders", "tags": ["a", "b"]}}],
    "users": [
        {"name": "app", "password": "secret", "tags": ["monitoring"], "limits": {"max-channels": 7}},
        {"name": "bare"},
    ],
    "permissions": [{"user": "app", "vhost": "shop", "configure": "", "write": ".*", "read": "^o"}],
    "topic_permissions": [
        {"user": "app", "vhost": "shop", "exchange": "events", "write": "^o", "read": ".*"}
    ],
    "parameters": [
        {"component": "vhost-limits", "name": "limits", "vhost": "shop", "value": {"max-queues": 9}},
        {
            "component": "operator_policy",
            "name": "cap",
            "vhost": "shop",
            "value": {
                "pattern": ".*",
                "apply-to": "queues",
                "priority": 0,
                "definition": {"max-length": 9, "expires": 500_000},
            },
        },
    ],
    "global_parameters": [{"name": "mine", "value": {"a": [1, "b"]}}],
    "policies": [
        {
            "vhost": "shop",
            "name": "retry",
            "pattern": "^orders",
            "apply-to": "queues",
            "priority": 1,
            "definition": {"max-length": 5, "message-ttl": 100},
        },
        {
            "vhost": "shop",
            "name": "rest",
            "pattern": "^events$",
            "apply-to": "exchanges",
            "priority": 0,
            "definition": {"alternate-exchange": "rest"},
        },
    ],
    "exchanges": [
        {
            "vhost": "shop",
            "name": name,
            "type": kind,
            "durable": True,
            "auto_delete": False,
            "arguments": {},
        }
        for name, kind in (("events", "topic"), ("rest", "fanout"))
    ],
    "queues": [
        {
            "vhost": "shop",
            "name": name,
            "durable": True,
            "auto_delete": False,
            "arguments": arguments,
        }
        for name, arguments in (("orders", {"x-queue-type": "classic"}), ("other", {"x-max-length": 3}))
    ],
    "bindings": [
        {
            "source": "events",
            "vhost": "shop",
            "destination": name,
            "destination_type": kind,
            "routing_key": "order.#",
            "arguments": {"x": 1},
        }
        for name, kind in (("orders", "queue"), ("rest", "exchange"))
    ],
}

SECTIONS = ("permissions", "topic_permissions", "policies", "parameters", "exchanges", "queues", "bindings")


@pytest.fixture(scope="module", params=SERIES.values(), ids=str)
def series(request: pytest.FixtureRequest) -> Series:
    chosen: Series = request.param
    return chosen


@pytest.fixture(scope="module")
def node(series: Series, nodes: Nodes) -> RabbitMQNode:
    return nodes.beside(series.name).node


@pytest.fixture(scope="module")
def exported(series: Series, node: RabbitMQNode) -> dict[str, Any]:
    """What RabbitMQ exports once it has imported what the broker dumps."""
    node.import_definitions(Broker(personality=series.personality, definitions=MADE).definitions())
    return without_cases(node.export_definitions())


def without_cases(definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions without what other tests have left on the node, in virtual host /."""
    left = {
        section: [each for each in definitions[section] if each["vhost"] != "/"]
        for section in ("exchanges", "queues", "bindings")
    }
    return {**definitions, **left}


def entries(definitions: dict[str, Any], section: str) -> list[str]:
    """The entries of virtual host shop, comparable."""
    found = [dict(entry) for entry in definitions[section] if entry.get("vhost") == "shop"]
    for entry in found:
        if section == "queues":
            entry.pop("type", None)  # 3.10 does not tell it, 3.13 does.
    return sorted(json.dumps(entry, sort_keys=True) for entry in found)


@pytest.mark.parametrize("section", SECTIONS)
def test_definitions_dumped_by_broker_are_equal_after_rabbitmq_import(
    exported: dict[str, Any], series: Series, section: str
) -> None:
    ours = Broker(personality=series.personality, definitions=MADE).definitions()
    assert entries(exported, section) == entries(ours, section)
    assert entries(ours, section)


@pytest.mark.parametrize("section", SECTIONS)
def test_definitions_exported_by_rabbitmq_are_equal_after_broker_load(
    exported: dict[str, Any], series: Series, section: str
) -> None:
    broker = Broker(personality=series.personality, definitions=exported)
    assert entries(broker.definitions(), section) == entries(exported, section)


def test_users_virtual_hosts_and_global_parameters_equal_those_of_rabbitmq(
    exported: dict[str, Any], series: Series
) -> None:
    theirs = exported
    ours = Broker(personality=series.personality, definitions=exported).definitions()
    for section in ("users", "vhosts", "global_parameters"):
        for entry in theirs[section]:
            [same] = [each for each in ours[section] if each["name"] == entry["name"]]
            for key in ("limits", "tags", "password_hash", "value"):
                assert same.get(key) == entry.get(key), f"{section} {entry['name']}: {key}"


def test_password_hashes_of_broker_match_passwords_on_rabbitmq(
    node: RabbitMQNode, exported: dict[str, Any], series: Series
) -> None:
    ours = Broker(personality=series.personality, definitions=MADE).definitions()
    hashes = [{each["name"]: each for each in side["users"]} for side in (exported, ours)]
    for key in ("password_hash", "hashing_algorithm"):
        for name in ("app", "bare"):
            assert hashes[0][name][key] == hashes[1][name][key], f"{name}: {key}"
    for name, password, answer in (
        ("app", "secret", "ok"),
        ("app", "wrong", "refused"),
        ("bare", "", "refused"),
    ):
        login = f'rabbit_access_control:check_user_pass_login(<<"{name}">>, <<"{password}">>)'
        assert node.evaluate(f"element(1, {login})").strip() == answer


def test_user_with_password_and_hash_is_refused_by_rabbitmq_and_broker(
    node: RabbitMQNode, series: Series
) -> None:
    [hashed] = Broker(users={"both": "hashed"}).definitions()["users"]
    both = {"users": [{**hashed, "password": "plain"}]}
    with pytest.raises(RabbitMQError, match="both_password_and_password_hash_are_provided"):
        node.import_definitions(both)
    with pytest.raises(DefinitionsError, match="password_hash"):
        Broker(personality=series.personality, definitions=both)


def test_effective_policies_of_queues_equal_those_of_rabbitmq(
    node: RabbitMQNode, exported: dict[str, Any], series: Series
) -> None:
    listed = json.loads(node.control("list_queues", "-p", "shop", "name", "policy", "--formatter", "json"))
    broker = Broker(personality=series.personality, definitions=exported)
    queues = broker._reader.read(lambda state: state.virtual_hosts["shop"].queues)
    for entry in listed:
        name = entry["name"]
        assert broker.queue(name, "shop").view().policy == (entry["policy"] or None)
        queue = queues[name]
        lookup = f'{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"shop">>, queue, <<"{name}">>))'
        merged = "rabbit_data_coercion:to_map(rabbit_policy:effective_definition(Q))"
        there = node.control("eval", f"{lookup}, lists:sort(maps:to_list({merged})).")
        here = pairs_term(effective_definition(queue.policy, queue.operator_policy).items())
        assert "".join(there.split()) == here
    assert {entry["name"]: entry["policy"] for entry in listed} == {"orders": "retry", "other": ""}


def test_operator_policy_and_limits_set_by_rabbitmqctl_load_into_broker(
    node: RabbitMQNode, exported: dict[str, Any], series: Series
) -> None:
    node.control("set_operator_policy", "-p", "shop", "more", "^x", '{"max-length": 4}', "--priority", "7")
    node.control("set_vhost_limits", "-p", "shop", '{"max-queues": 50}')
    theirs = without_cases(node.export_definitions())
    broker = Broker(personality=series.personality, definitions=theirs)
    [policy] = [each for each in broker.policies if each.name == "more"]
    assert (policy.operator, policy.priority, policy.definition) == (True, 7, {"max-length": 4})
    [there] = [each for each in theirs["vhosts"] if each["name"] == "shop"]
    [here] = [each for each in broker.definitions()["vhosts"] if each["name"] == "shop"]
    assert here["limits"] == there["limits"]
    assert dict(here["limits"]) == {"max-queues": 50}
