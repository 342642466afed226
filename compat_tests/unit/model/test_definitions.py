"""RabbitMQ's definitions, in and out: the exports of each version, what is refused, and the round trip."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.matrix import cases
from fakeamqp import Broker
from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.definitions import DefinitionsError, dump_definitions, load_definitions
from fakeamqp.model.errors import AuthenticationFailed
from fakeamqp.model.limits import UserLimits, VirtualHostLimits
from fakeamqp.model.queues import QueueDeclaration

EXPORTS = sorted((Path(__file__).parent / "exports").glob("*.json"))
RABBITS = ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")


def fresh(personality: str = "rabbitmq-4.2") -> Server:
    """A broker without a user, so that nothing but what is loaded comes out."""
    server = Server(personality)
    server.state.access.users.clear()
    return server


def loaded(definitions: Any, personality: str = "rabbitmq-4.2") -> Server:
    server = fresh(personality)
    load_definitions(server.state, definitions)
    return server


# --- the exports of each version -------------------------------------------------------------------


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_loaded_export_takes_effect_in_broker(path: Path) -> None:
    server = loaded(json.loads(path.read_text()), path.stem)
    shop = server.state.virtual_hosts["shop"]
    assert (shop.metadata.description, shop.metadata.tags) == ("Orders", ("production",))
    assert shop.limits == VirtualHostLimits(max_queues=10)
    assert server.state.access.users["app"].limits == UserLimits(max_connections=5, max_channels=-1)
    assert server.state.access.authenticate("app", "secret").tags == ()
    orders = shop.queues["orders"].options
    assert (orders.dead_letter_exchange, orders.message_ttl, orders.max_length) == ("rest", 60.0, 1000)
    assert shop.queues["rest"].options.max_length == 5
    assert shop.exchanges["events"].alternate_exchange == "rest"
    assert [binding.routing_key for binding in shop.bindings.all()] == ["order.#", ""]
    assert server.state.cluster_name == "rabbit@host"


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_loaded_export_is_dumped_unchanged(path: Path) -> None:
    export = json.loads(path.read_text())
    dumped = dump_definitions(loaded(export, path.stem).state)
    if path.stem == "rabbitmq-3.13":  # What was set by command is exported as a list of pairs.
        cap = export["parameters"][1]["value"]
        assert cap["definition"] == [["max-length", 1000]]
        cap["definition"] = {"max-length": 1000}
    assert dumped == export


@pytest.mark.parametrize("personality", RABBITS)
@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_export_of_one_version_loads_into_every_version(path: Path, personality: str) -> None:
    dumped = dump_definitions(loaded(json.loads(path.read_text()), personality).state)
    assert dump_definitions(loaded(dumped, personality).state) == dumped


@pytest.mark.parametrize(
    ("personality", "limits", "outside"),
    [
        ("rabbitmq-3.13", [], None),
        ("rabbitmq-4.0", [], "classic"),
        ("rabbitmq-4.2", {}, None),
        ("rabbitmq-4.3", {}, None),
    ],
)
def test_dump_has_shape_of_version(personality: str, limits: Any, outside: str | None) -> None:
    dumped = dump_definitions(fresh(personality).state)
    [host] = dumped["vhosts"]
    assert host["limits"] == limits
    assert host.get("default_queue_type") == outside
    named = personality in ("rabbitmq-4.2", "rabbitmq-4.3")
    assert host["metadata"].get("default_queue_type") == ("classic" if named else None)
    assert ("explanation" in dumped) is (personality != "rabbitmq-3.13")


def test_export_of_one_virtual_host_loads_only_into_existing_virtual_host() -> None:
    export = {
        "rabbitmq_definition_format": "single_virtual_host",
        "original_vhost_name": "shop",
        "metadata": {"description": "", "tags": []},
        "limits": {"max-queues": 7},
        "policies": [{"name": "p", "pattern": "^o", "definition": {"max-length": 1}}],
        "parameters": [],
        "queues": [{"name": "orders", "durable": True, "arguments": {}}],
        "exchanges": [],
        "bindings": [],
    }
    server = fresh()
    with pytest.raises(
        DefinitionsError, match=r"add it first, with broker\.admin\.add_virtual_host\('shop'\)"
    ):
        load_definitions(server.state, export)
    shop = server.state.add_virtual_host("shop")
    load_definitions(server.state, export)
    assert shop.queues["orders"].options.max_length == 1
    assert shop.limits.max_queues == 7


def test_tags_as_text_and_arguments_as_empty_list_are_accepted() -> None:
    server = loaded(
        {
            "users": [{"name": "a", "password": "a", "tags": "monitoring, management", "limits": []}],
            "queues": [{"name": "q", "arguments": []}],
        }
    )
    assert server.state.access.users["a"].tags == ("monitoring", "management")
    assert server.vhost.queues["q"].durable


def test_default_queue_type_is_loaded_from_metadata_or_from_entry_itself() -> None:
    for entry in ({"metadata": {"default_queue_type": "quorum"}}, {"default_queue_type": "quorum"}):
        server = loaded({"vhosts": [{"name": "v", **entry}]}, "rabbitmq-3.13")
        assert server.state.virtual_hosts["v"].metadata.default_queue_type == "quorum"
    for unset in (None, "", "undefined"):
        server = loaded({"vhosts": [{"name": "v", "metadata": {"default_queue_type": unset}}]})
        assert server.state.virtual_hosts["v"].metadata.default_queue_type == "classic"


def test_tracing_switches_firehose_of_virtual_host_and_is_not_exported() -> None:
    state = loaded({"vhosts": [{"name": "v", "tracing": True}, {"name": "w", "tracing": False}]}).state
    assert state.virtual_hosts["v"].firehose is not None
    assert state.virtual_hosts["w"].firehose is None
    assert not any("tracing" in entry for entry in dump_definitions(state)["vhosts"])


def test_rabbitmq_log_exchange_in_definitions_is_skipped() -> None:
    server = loaded({"exchanges": [{"name": "amq.rabbitmq.log", "type": "topic", "durable": True}]})
    assert "amq.rabbitmq.log" not in server.vhost.exchanges


def test_queue_with_generated_name_survives_dump_and_load() -> None:
    server = fresh()
    server.vhost.queues.declare("", QueueDeclaration(durable=True))
    dumped = dump_definitions(server.state)
    assert dumped["queues"][0]["name"].startswith("amq.gen-")
    assert dump_definitions(loaded(dumped).state) == dumped


def test_queues_over_max_queues_survive_dump_and_load() -> None:
    server = fresh()
    for name in "ab":
        server.vhost.queues.declare(name, QueueDeclaration(durable=True))
    server.vhost.limits = VirtualHostLimits(max_queues=1)
    again = loaded(dump_definitions(server.state))
    assert list(again.vhost.queues) == ["a", "b"]
    assert again.vhost.limits.max_queues == 1


def test_definitions_exceeding_existing_queue_limit_are_refused_as_a_whole() -> None:
    server = fresh()
    server.vhost.queues.declare("a", QueueDeclaration(durable=True))
    server.vhost.limits = VirtualHostLimits(max_queues=2)
    queues = [{"name": name, "vhost": "/"} for name in "abc"]
    with pytest.raises(DefinitionsError) as problem:
        load_definitions(server.state, {"queues": queues})
    assert str(problem.value) == (
        'Adding 2 queue(s) to virtual host "/" would exceed the limit of 2 queue(s).\n\n'
        "This virtual host currently has 1 queue(s) defined.\n\nImport aborted!"
    )
    assert list(server.vhost.queues) == ["a"]
    load_definitions(server.state, {"queues": queues[:2]})


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [{"name": "\ud800"}, {"name": "q", "arguments": {"x-dead-letter-exchange": ["a", {"\udfff": 1}]}}],
)
def test_text_with_unpaired_surrogate_is_refused(entry: dict[str, Any]) -> None:
    """RabbitMQ 4.3 refuses such text as well (measured)."""
    with pytest.raises(DefinitionsError, match="unpaired surrogate"):
        load_definitions(fresh().state, {"queues": [{"vhost": "/", **entry}]})


def test_queue_name_with_non_utf8_bytes_survives_dump_and_load() -> None:
    server = fresh()
    server.vhost.queues.declare("\udcff", QueueDeclaration(durable=True))
    assert list(loaded(dump_definitions(server.state)).vhost.queues) == ["\udcff"]


def test_definitions_file_nested_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text('{"queues": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(FakeAMQPError, match="nested too deep"):
        Broker(definitions=tmp_path / "deep.json")


# --- passwords -------------------------------------------------------------------------------------


def user_entry(**values: Any) -> dict[str, Any]:
    return {"users": [{"name": "app", **values}]}


def test_password_is_dumped_as_hash_that_still_authenticates_password() -> None:
    [dumped] = dump_definitions(loaded(user_entry(password="secret")).state)["users"]
    # As RabbitMQ has it: base64 of four bytes of salt and the digest of salt and password.
    octets = base64.b64decode(dumped["password_hash"])
    assert octets[4:] == hashlib.sha256(octets[:4] + b"secret").digest()
    assert dumped["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    assert "secret" not in json.dumps(dumped)
    again = loaded({"users": [dumped]})
    assert again.state.access.authenticate("app", "secret").name == "app"
    with pytest.raises(AuthenticationFailed):
        again.state.access.authenticate("app", dumped["password_hash"])
    assert dump_definitions(again.state)["users"] == [dumped]


def test_user_without_password_is_dumped_with_empty_hash_and_cannot_log_in() -> None:
    [dumped] = dump_definitions(loaded(user_entry()).state)["users"]
    assert (dumped["password_hash"], dumped["hashing_algorithm"]) == ("", "rabbit_password_hashing_sha256")
    again = loaded({"users": [dumped]})
    for password in ("", "app"):
        with pytest.raises(AuthenticationFailed):
            again.state.access.authenticate("app", password)


def test_user_with_both_password_and_hash_is_refused() -> None:
    [dumped] = dump_definitions(loaded(user_entry(password="secret")).state)["users"]
    with pytest.raises(DefinitionsError, match="'app' has a password and a password_hash; give one of them"):
        loaded({"users": [{**dumped, "password": "another"}]})


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_password_hash_of_each_algorithm_authenticates(algorithm: str) -> None:
    hashed = base64.b64encode(b"salt" + hashlib.new(algorithm, b"saltsecret").digest()).decode()
    entry = user_entry(password_hash=hashed, hashing_algorithm=f"rabbit_password_hashing_{algorithm}")
    server = loaded(entry)
    assert server.state.access.authenticate("app", "secret")
    assert dump_definitions(server.state)["users"][0]["password_hash"] == hashed


@pytest.mark.parametrize(
    ("hashed", "found"), [("not base64!", "text that is not base64"), ("c2FsdA==", "4 bytes")]
)
def test_malformed_password_hash_is_refused(hashed: str, found: str) -> None:
    with pytest.raises(
        DefinitionsError, match=f"password_hash of 'app' must be base64 of 36 bytes .* {found}"
    ):
        loaded(user_entry(password_hash=hashed))


def test_errors_about_users_do_not_contain_passwords() -> None:
    for wrong in ({"tag": 1}, {"tags": 1}, {"limits": {"max": 1}}, {"name": 5}, {"password": ["secret"]}):
        with pytest.raises(FakeAMQPError) as caught:
            loaded(user_entry(**{"password": "secret", "password_hash": "secret", **wrong}))
        assert "secret" not in str(caught.value)


# --- what is refused -------------------------------------------------------------------------------


def parameter(component: str, value: Any = None, name: str = "x") -> dict[str, Any]:
    return {"parameters": [{"component": component, "name": name, "vhost": "/", "value": value}]}


@pytest.mark.parametrize(
    ("definitions", "text"),
    [
        ({"polices": []}, "unknown key 'polices'; did you mean 'policies'"),
        ({"queues": [{"nmae": "q"}]}, "unknown key 'nmae'; did you mean 'name'"),
        ({"policies": [{"name": "p", "patern": "x", "definition": {}}]}, "'patern'; did you mean 'pattern'"),
        (
            {"policies": [{"name": "p", "pattern": "", "definition": {"max-lenght": 1}}]},
            "not recognised policy settings; did you mean 'max-length'",
        ),
        ({"policies": [{"name": "p", "pattern": "("  , "definition": {"expires": 1}}]}, "regular expression"),
        ({"policies": [{"name": "p", "pattern": "", "vhost": "v", "definition": {}}]}, "'v', which does not"),
        ({"vhosts": [{"name": "v", "metadata": {"tag": []}}]}, "metadata: unknown key 'tag'; .* 'tags'"),
        ({"vhosts": [{"name": "v", "default_queue_type": "clasic"}]}, "clasic is not a valid queue type"),
        ({"vhosts": [{"name": "v", "limits": {"max-queue": 1}}]}, "did you mean 'max-queues'"),
        ({"users": [{"name": "u", "limits": {"max-channel": 1}}]}, "did you mean 'max-channels'"),
        ({"users": [{"name": "u", "password_hash": "x", "hashing_algorithm": "md5"}]}, "algorithm 'md5'"),
        (parameter("shovel"), "fakeamqp has no shovels; take shovel 'x' out"),
        (parameter("federation-upstream"), "fakeamqp has no federation; take federation-upstream 'x' out"),
        (parameter("vhost-limit"), "component vhost-limit not found; did you mean 'vhost-limits'"),
        (parameter("policy"), "policies have a section of their own"),
        (parameter("vhost-limits", {"max-queues": "9"}), "max-queues should be a number"),
        (
            parameter("operator_policy", {"pattern": "", "priority": 0, "definition": {"max-age": "1h"}}),
            "an operator policy cannot set 'max-age', a policy can",
        ),
        ({"queues": [{"name": "q", "exclusive": True}]}, "an exclusive queue belongs to a connection"),
        ({"queues": [{"name": "q", "arguments": {"x-expires": 0}}]}, "x-expires"),
        ({"exchanges": [{"name": "x", "type": "topik"}]}, "unknown exchange type 'topik'"),
        ({"bindings": [{"source": "amq.topic", "destination": "q"}]}, "no queue 'q' in vhost '/'"),
        ({"bindings": [{"source": "", "destination": "q", "destination_type": "x"}]}, "not 'x'"),
        ({"permissions": [{"user": "x", "vhost": "/"}]}, "there is no user 'x'"),
        (
            {"users": [{"name": "u"}], "permissions": [{"user": "u", "vhost": "/", "read": "("}]},
            "permissions: user 'u' in virtual host '/' has a pattern that cannot be used: missing ",
        ),
        (
            {
                "users": [{"name": "u"}],
                "topic_permissions": [{"user": "u", "vhost": "/", "exchange": "x", "read": "a**"}],
            },
            "topic_permissions: user 'u' in virtual host '/' has a pattern that cannot be used: nothing",
        ),
        ({"queues": {"name": "q"}}, "queues must be a list"),
        ({"queues": ["q"]}, "expected an object, got 'q'"),
    ],
)  # fmt: skip
def test_invalid_definition_is_refused_with_error_that_names_it(
    definitions: dict[str, Any], text: str
) -> None:
    with pytest.raises(DefinitionsError, match=text):
        loaded(definitions)


# --- round trip ------------------------------------------------------------------------------------

names = st.text("abc.", min_size=1, max_size=4)
limits = st.dictionaries(st.sampled_from(["max-connections", "max-queues"]), st.integers(-1, 20), max_size=2)
plain = st.one_of(st.integers(-100, 100), st.booleans(), names)
definitions_of_policies = st.dictionaries(
    st.sampled_from(["max-length", "message-ttl", "expires"]), st.integers(1, 9), min_size=1
)  # fmt: skip


@st.composite
def topologies(draw: st.DrawFn) -> dict[str, Any]:
    """Definitions that make sense, of up to three virtual hosts."""
    hosts = ["/", *draw(st.lists(names, unique=True, max_size=2))]
    made: dict[str, Any] = {section: [] for section in ("exchanges", "queues", "bindings", "policies")}
    made["vhosts"] = [
        {
            "name": host,
            "limits": draw(limits),
            "metadata": {
                "description": draw(names),
                "tags": draw(st.lists(names, max_size=2)),
                "default_queue_type": "classic",
            },
        }
        for host in hosts
    ]
    made["users"] = [
        {"name": name, "password": name, "tags": [], "limits": {}}
        for name in draw(st.lists(names, unique=True, max_size=2))
    ]
    made["permissions"] = [
        {"user": user["name"], "vhost": host, "configure": "a", "write": "", "read": ".*"}
        for user in made["users"]
        for host in hosts
    ]
    made["parameters"] = []
    for host in hosts:
        exchanges = draw(st.lists(names, unique=True, max_size=3))
        queues = draw(st.lists(names, unique=True, max_size=3))
        for name in exchanges:
            made["exchanges"].append(
                {
                    "vhost": host,
                    "name": name,
                    "type": draw(st.sampled_from(["direct", "topic", "fanout", "headers"])),
                    "durable": draw(st.booleans()),
                    "auto_delete": draw(st.booleans()),
                    "internal": draw(st.booleans()),
                    "arguments": draw(st.just({}) | st.just({"alternate-exchange": "rest"})),
                }
            )
        for name in queues:
            made["queues"].append(
                {
                    "vhost": host,
                    "name": name,
                    "durable": True,
                    "auto_delete": draw(st.booleans()),
                    "arguments": draw(st.just({}) | st.just({"x-max-length": 5, "x-mine": "y"})),
                }
            )
        for source in exchanges:
            for kind, there in (("queue", queues), ("exchange", exchanges)):
                for name in draw(st.lists(st.sampled_from(there), max_size=2)) if there else ():
                    made["bindings"].append(
                        {
                            "source": source,
                            "vhost": host,
                            "destination": name,
                            "destination_type": kind,
                            "routing_key": draw(names),
                            "arguments": draw(st.dictionaries(names, plain, max_size=2)),
                        }
                    )
        for operator in (False, True):
            for name in draw(st.lists(names, unique=True, max_size=2)):
                value = {
                    "pattern": draw(st.sampled_from(["", "^a", "b|c"])),
                    "apply-to": draw(st.sampled_from(["all", "queues", "exchanges", "streams"])),
                    "priority": draw(st.integers(-2, 2)),
                    "definition": draw(definitions_of_policies),
                }
                if operator:
                    made["parameters"].append(
                        {"component": "operator_policy", "name": name, "vhost": host, "value": value}
                    )
                else:
                    made["policies"].append({"vhost": host, "name": name, **value})
    return made


@examples(60)
@given(made=topologies(), personality=st.sampled_from((*RABBITS, "spec")))
def test_dump_of_random_topology_loads_and_dumps_unchanged(made: dict[str, Any], personality: str) -> None:
    first = dump_definitions(loaded(made, personality).state)
    # Through JSON, as a file would be.
    again = loaded(json.loads(json.dumps(first)), personality)
    assert dump_definitions(again.state) == first
    for section in ("exchanges", "queues", "policies", "users", "vhosts", "permissions"):
        assert len(first[section]) == len(made[section])


def test_user_name_with_non_utf8_bytes_survives_dump_and_load() -> None:
    [dumped] = dump_definitions(loaded(user_entry(name="\udcff", password="secret")).state)["users"]
    assert dumped["name"] == "\udcff"
    assert loaded({"users": [dumped]}).state.access.authenticate("\udcff", "secret")


_LIMITED = [
    ("users", {"name": "N"}),
    ("vhosts", {"name": "N"}),
    ("permissions", {"user": "N", "vhost": "/"}),
    ("permissions", {"user": "guest", "vhost": "N"}),
    ("topic_permissions", {"user": "guest", "vhost": "/", "exchange": "N"}),
    ("policies", {"name": "N", "pattern": "", "definition": {"max-length": 1}}),
    ("parameters", {"component": "operator_policy", "name": "N", "value": {}}),
    ("global_parameters", {"name": "N", "value": 1}),
    ("exchanges", {"name": "N", "type": "direct"}),
    ("exchanges", {"name": "e", "type": "N"}),
    ("queues", {"name": "N"}),
    ("queues", {"name": "q", "vhost": "N"}),
    ("bindings", {"source": "N", "destination": "q"}),
    ("bindings", {"source": "amq.direct", "destination": "N"}),
    ("bindings", {"source": "amq.direct", "destination": "q", "routing_key": "N"}),
]


def test_name_longer_than_255_bytes_is_refused_with_error_that_names_its_entry() -> None:
    with cases() as case:
        for section, entry in _LIMITED:
            for name, count in (("x" * 256, 256), ("ä" * 128, 256), ("x" * 100_000, 100_000)):
                [key] = [key for key, value in entry.items() if value == "N"]
                with case(section, key, count):
                    with pytest.raises(DefinitionsError) as refused:
                        loaded({section: [{**entry, key: name}]})
                    text = str(refused.value)
                    assert text.startswith(
                        f"{section}: {key!r} must have at most 255 bytes in UTF-8, and '{name[:40]}"
                    )
                    assert f"has {count} in {{" in text
                    assert len(text) < 500


def test_names_of_255_bytes_load_with_policy_of_expensive_pattern() -> None:
    name = "a" * 255
    pattern = "^(?=.*(?=.*(?=.*(?=.*x))))"
    state = loaded(
        {
            "policies": [{"name": name, "pattern": pattern, "definition": {"max-length": 1}}],
            "queues": [{"name": name}],
            "exchanges": [{"name": name, "type": "topic"}],
            "bindings": [{"source": name, "destination": name, "routing_key": name}],
        }
    )
    assert state.vhost.queues[name].policy is None


# --- definitions with one wrong value: an error that names the field, and never Python's own -----------


FULL: dict[str, Any] = {
    "rabbit_version": "4.3.6",
    "rabbitmq_version": "4.3.6",
    "product_name": "RabbitMQ",
    "product_version": "4.3.6",
    "rabbitmq_definition_format": "cluster",
    "original_cluster_name": "rabbit@host",
    "explanation": "Definitions of cluster 'rabbit@host'",
    "users": [
        {
            "name": "app",
            "password_hash": "c2FsdLV3GvhqWhMvkVcy0qIN8vUSZMjzBPVTvgZTzJbtwaIX",
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": ["monitoring"],
            "limits": {"max-channels": 7, "max-connections": 5},
        },
        {
            "name": "old",
            "password": "secret",
            "tags": "monitoring, management",
            "limits": [["max-channels", 7]],
        },
    ],
    "vhosts": [
        {
            "name": "shop",
            "description": "Orders",
            "tags": ["a", "b"],
            "default_queue_type": "classic",
            "protected_from_deletion": False,
            "tracing": False,
            "limits": {"max-queues": 9, "max-connections": 20},
            "metadata": {
                "description": "Orders",
                "tags": ["a", "b"],
                "default_queue_type": "classic",
                "protected_from_deletion": False,
            },
        }
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
    "global_parameters": [
        {"name": "cluster_name", "value": "rabbit@host"},
        {"name": "mine", "value": {"a": [1, "b"]}},
    ],
    "policies": [
        {
            "vhost": "shop",
            "name": "retry",
            "pattern": "^orders",
            "apply-to": "queues",
            "priority": 1,
            "definition": {"max-length": 5, "message-ttl": 100, "dead-letter-exchange": "rest"},
        }
    ],
    "exchanges": [
        {
            "vhost": "shop",
            "name": "events",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "policy": "none",
            "arguments": {"alternate-exchange": "rest"},
        },
        {
            "vhost": "shop",
            "name": "rest",
            "type": "headers",
            "durable": True,
            "auto_delete": False,
            "arguments": {},
        },
    ],
    "queues": [
        {
            "vhost": "shop",
            "name": "orders",
            "type": "quorum",
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "policy": "retry",
            "arguments": {"x-queue-type": "quorum", "x-dead-letter-exchange": "rest", "x-delivery-limit": 3},
        },
        {
            "vhost": "shop",
            "name": "other",
            "durable": True,
            "auto_delete": False,
            "arguments": {"x-max-length": 3, "x-overflow": "reject-publish", "x-message-ttl": 60_000},
        },
    ],
    "bindings": [
        {
            "source": "events",
            "vhost": "shop",
            "destination": "orders",
            "destination_type": "queue",
            "routing_key": "order.#",
            "properties_key": "order.%23",
            "arguments": {"x": 1},
        },
        {
            "source": "rest",
            "vhost": "shop",
            "destination": "other",
            "destination_type": "queue",
            "routing_key": "",
            "arguments": {"x-match": "all", "a": 1},
        },
    ],
}
VALUES: tuple[Any, ...] = (None, True, 5, -1, 1.5, "text", "", [], [1], ["a"], [["a"]], {}, {"a": 1})
"""What takes the place of a value, where it is another one."""
SECTIONS = [name for name, value in FULL.items() if isinstance(value, list)]
FREE = ("arguments", "value", "definition")
"""Below these names are users' own keys, and values of any type."""


def mutations() -> Iterator[tuple[tuple[str | int, ...], Any, dict[str, Any]]]:
    """Each field with each other value: its path, the value, and the definitions with it."""
    for path, found in _paths(FULL):
        for value in VALUES:
            if json.dumps(value) != json.dumps(found):
                mutated = copy.deepcopy(FULL)
                place: Any = mutated
                for step in path[:-1]:
                    place = place[step]
                place[path[-1]] = value
                yield path, value, mutated


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if path:
        yield path, value
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in steps:
        yield from _paths(each, (*path, step))


def kind(value: Any) -> type:
    """The JSON type of a value."""
    return float if type(value) is int else type(value)


LENIENT = re.compile(
    r"(.*\.)?(tags|policy|properties_key|value) .*|arguments (None|\[\])|limits (None|\[\]|{})|"
    r"(metadata|password|password_hash|hashing_algorithm|(metadata\.)?default_queue_type|"
    r"(metadata\.)?protected_from_deletion) None"
)
"""Fields and values that load, though of another type: exports have them too, or nothing reads them."""


def test_definitions_with_one_wrong_value_load_or_error_names_field() -> None:
    refused = 0
    with cases() as case:
        for path, value, mutated in mutations():
            server = Server("rabbitmq-4.3")
            with case(".".join(map(str, path)), json.dumps(value)):
                try:
                    load_definitions(server.state, mutated)
                except FakeAMQPError as problem:
                    refused += 1
                    if kind(value) is not kind(_at(FULL, path)):
                        _check_text(str(problem), path)
                else:
                    _check_accepted(path, value)
    assert refused > 1000


EXPECTED = re.compile(r"must be|should be|expected|not a|cannot|known:|unknown|invalid (arg|type)|not found")


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    """It names the field, what is expected there, and what was found."""
    names = [step for step in path if isinstance(step, str)]
    assert names[-1] in text
    assert EXPECTED.search(text)


def _check_accepted(path: tuple[str | int, ...], value: Any) -> None:
    """A value of another type is accepted where that is right only."""
    if kind(value) is kind(_at(FULL, path)) or any(step in FREE for step in path[:-1]):
        return
    names = ".".join(step for step in path[2:] if isinstance(step, str))
    assert path[0] not in SECTIONS or not names or LENIENT.fullmatch(f"{names} {value!r}")


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def test_full_definitions_load_without_error() -> None:
    load_definitions(Server("rabbitmq-4.3").state, FULL)
