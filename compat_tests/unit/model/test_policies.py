"""What policies say: validation in RabbitMQ's words, and which value holds where several speak."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.model.arguments.queue_arguments import QueueOptions, queue_options
from fakeamqp.model.patterns import MOST_STEPS, compiled
from fakeamqp.model.patterns.matching import Program
from fakeamqp.model.personality import PERSONALITIES, DeprecatedFeatures
from fakeamqp.model.policies import (
    Policy,
    PolicyError,
    effective_definition,
    effective_options,
    read_policy,
)
from fakeamqp.model.queues import QueueDeclaration

RABBITS = [each for each in PERSONALITIES.values() if each.name != "spec"]


def read(
    definition: Any,
    *,
    personality: str = "rabbitmq-4.2",
    operator: bool = False,
    deny: tuple[str, ...] = (),
    **fields: Any,
) -> Policy:
    chosen = PERSONALITIES[personality]
    value = {"pattern": "^q", "priority": 0, "definition": definition}
    value.update({name.replace("_", "-"): field for name, field in fields.items()})
    return read_policy(chosen, DeprecatedFeatures(chosen, deny=deny), "p", value, operator=operator)


def reason(definition: Any, **fields: Any) -> str:
    """RabbitMQ's text without what all of them begin with."""
    with pytest.raises(PolicyError) as refused:
        read(definition, **fields)
    assert refused.value.reason.startswith("Validation failed\n\n")
    return refused.value.reason.removeprefix("Validation failed\n\n").removesuffix("\n")


# --- fields ----------------------------------------------------------------------------------------


def test_policy_applies_to_all_by_default() -> None:
    policy = read({"max-length": 5})
    assert (policy.apply_to, policy.priority, policy.definition) == ("all", 0, {"max-length": 5})
    assert policy.value() == {
        "pattern": "^q",
        "apply-to": "all",
        "priority": 0,
        "definition": {"max-length": 5},
    }


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"priority": "5"}, 'priority should be a number, actually was <<"5">>'),
        ({"priority": True}, "priority should be a number, actually was true"),
        ({"pattern": None}, "pattern should be a binary but was undefined"),
        ({"pattern": 7}, "pattern should be a binary but was 7"),
        (
            {"pattern": "("},
            'pattern should be regular expression but is invalid: {"missing )",1}',
        ),
        ({"pattern": "x" * 1025}, "pattern must not exceed 1024 bytes"),
        ({"pattern": "\udcff" * 1025}, "pattern must not exceed 1024 bytes"),
        (
            {"apply_to": "foo"},
            "apply-to 'foo' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', "
            "'streams', 'exchanges', or 'all'",
        ),
        ({"zz": 1}, 'Unrecognised terms [{<<"zz">>,1}] in p'),
    ],
)
def test_policy_with_invalid_field_is_refused(fields: dict[str, Any], text: str) -> None:
    assert reason({"max-length": 5}, **fields) == text


def test_pattern_over_1024_bytes_is_accepted_by_version_4_0() -> None:
    assert read({"max-length": 5}, personality="rabbitmq-4.0", pattern="x" * 1025)


def test_policy_with_missing_field_is_refused_by_its_name() -> None:
    with pytest.raises(PolicyError) as refused:
        read_policy(
            PERSONALITIES["rabbitmq-4.2"],
            DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"]),
            "p",
            {"priority": 0, "definition": {"expires": 1}},
        )
    assert refused.value.reason == 'Validation failed\n\nKey "pattern" not found in p\n'


def test_policy_error_lists_all_problems_in_reverse_order() -> None:
    assert reason({}, priority="5", pattern=7, apply_to="no", zz=1).split("\n") == [
        'Unrecognised terms [{<<"zz">>,1}] in p',
        "no policy provided",
        "apply-to 'no' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', "
        "'streams', 'exchanges', or 'all'",
        "pattern should be a binary but was 7",
        'priority should be a number, actually was <<"5">>',
    ]


# --- definitions -----------------------------------------------------------------------------------

BAD_VALUES = [
    ("alternate-exchange", 1, "1 is not a valid alternate exchange name"),
    ("consumer-timeout", -1, "-1 is not a valid consumer timeout"),
    ("dead-letter-exchange", 5, "5 is not a valid dead letter exchange name"),
    ("dead-letter-routing-key", False, "false is not a valid dead letter routing key"),
    ("dead-letter-routing-key", "k" * 256, "the routing key is longer than 255 bytes"),
    ("dead-letter-strategy", "often", '<<"often">> is not a valid dead letter strategy'),
    ("delivery-limit", "3", '<<"3">> is not a valid delivery limit'),
    ("expires", 0, "0 is not a valid queue expiry"),
    ("initial-cluster-size", -1, "-1 is not a valid cluster size"),
    ("max-age", "7", '<<"7">> is not a valid max age'),
    ("max-age", 7, "7 is not a valid max age"),
    ("max-in-memory-bytes", -1, "-1 is not a valid maximum memory in bytes"),
    ("max-in-memory-length", "1", '<<"1">> is not a valid maximum memory in bytes'),
    ("max-length", "5", '<<"5">> is not a valid maximum length'),
    ("max-length", 1.5, "1.5 is not a valid maximum length"),
    ("max-length", True, "true is not a valid maximum length"),
    ("max-length-bytes", -1, "-1 is not a valid maximum length in bytes"),
    ("message-ttl", -1, "-1 is not a valid message TTL"),
    ("overflow", "drop-tail", '<<"drop-tail">> is not a valid overflow value'),
    ("queue-leader-locator", "here", '<<"here">> is not a valid queue leader locator value'),
    ("queue-master-locator", "here", '<<"here">> is not a valid master locator'),
    ("queue-mode", "fast", '<<"fast">> is not a valid queue-mode value'),
    ("queue-version", 3, "3 is not a valid queue-version value"),
    ("queue-version", True, "true is not a valid queue-version value"),
    ("stream-filter-size-bytes", 15, "15 is not a valid filter size. Valid range is 16-255"),
    ("stream-max-segment-size-bytes", 3_000_000_001, "3000000001 is not a valid segment size"),
    ("target-group-size", 0, "0 is not a valid qq target count value"),
]


@pytest.mark.parametrize(("key", "value", "text"), BAD_VALUES)
def test_policy_with_invalid_value_is_refused(key: str, value: Any, text: str) -> None:
    assert reason({key: value}) == text


def test_every_policy_key_has_tested_invalid_value() -> None:
    assert {key for key, _, _ in BAD_VALUES} == set(PERSONALITIES["rabbitmq-4.2"].policy_keys)


GOOD_VALUES = {
    "alternate-exchange": "ae",
    "consumer-disconnected-timeout": 5,
    "consumer-timeout": 0,
    "dead-letter-exchange": "dlx",
    "dead-letter-routing-key": "",
    "dead-letter-strategy": "at-least-once",
    "delayed-retry-max": 9,
    "delayed-retry-min": 5,
    "delayed-retry-type": "all",
    "delivery-limit": 0,
    "expires": 1,
    "ha-mode": "exactly",
    "ha-params": 2,
    "ha-promote-on-failure": "always",
    "ha-promote-on-shutdown": "when-synced",
    "ha-sync-batch-size": 1,
    "ha-sync-mode": "automatic",
    "initial-cluster-size": 1,
    "max-age": "7D",
    "max-in-memory-bytes": 0,
    "max-in-memory-length": 0,
    "max-length": 0,
    "max-length-bytes": 0,
    "message-ttl": 0,
    "overflow": "reject-publish-dlx",
    "queue-leader-locator": "balanced",
    "queue-master-locator": "client-local",
    "queue-mode": "lazy",
    "queue-version": 2,
    "stream-filter-size-bytes": 16,
    "stream-max-segment-size-bytes": 500,
    "target-group-size": 1,
}


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize("personality", RABBITS, ids=lambda each: each.name)
def test_policy_accepts_exactly_the_keys_of_its_version(personality: Any, operator: bool) -> None:
    known = personality.operator_policy_keys if operator else personality.policy_keys
    permitted = DeprecatedFeatures(
        personality, permit=["queue_master_locator"] if personality.name == "rabbitmq-4.3" else ()
    )
    value = {"pattern": "", "priority": 0, "definition": {key: GOOD_VALUES[key] for key in known}}
    assert read_policy(personality, permitted, "p", value, operator=operator)
    for key in set(GOOD_VALUES) - set(known):
        wrong = {**value, "definition": {key: GOOD_VALUES[key]}}
        with pytest.raises(PolicyError, match="are not recognised policy settings"):
            read_policy(personality, permitted, "p", wrong, operator=operator)


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ({}, "no policy provided"),
        (None, "parse error while reading policy definition: null. Validator: policy_validator."),
        (["a"], 'definition must be a dictionary: [<<"a">>]'),
        (
            {"x": [1, {"y": "é"}], "max-length": 1, "b": ""},
            '[{<<"b">>,<<>>},{<<"x">>,[1,#{<<"y">> => <<"é"/utf8>>}]}] are not recognised policy settings',
        ),
        ({"x": 1, "max-length": "1"}, '<<"1">> is not a valid maximum length'),
    ],
)
def test_malformed_policy_definition_is_refused(definition: Any, text: str) -> None:
    assert reason(definition) == text


@pytest.mark.parametrize("text", ["mesage-ttl", "message_ttl", "max-lenght"])
def test_misspelled_policy_key_is_refused_with_nearest_match(text: str) -> None:
    near = "max-length" if text.startswith("max") else "message-ttl"
    with pytest.raises(PolicyError, match=f"; did you mean '{near}'"):
        read({text: 5})


def test_policy_key_in_operator_policy_is_refused_as_policy_only() -> None:
    with pytest.raises(
        PolicyError, match="an operator policy cannot set 'dead-letter-exchange', a policy can"
    ):
        read({"dead-letter-exchange": "x"}, operator=True)


@pytest.mark.parametrize(("limit", "legal"), [(-1, False), (0, True)])
def test_negative_delivery_limit_is_refused_only_by_version_3_13(limit: int, legal: bool) -> None:
    assert read({"delivery-limit": limit})
    if legal:
        assert read({"delivery-limit": limit}, personality="rabbitmq-3.13")
    else:
        old = {"personality": "rabbitmq-3.13"}
        assert reason({"delivery-limit": limit}, **old) == "-1 is not a valid delivery limit"


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (
            {"delayed-retry-type": "some"},
            '<<"some">> is not a valid delayed retry type. Must be one of: all, failed, returned, disabled',
        ),
        (
            {"delayed-retry-min": 0},
            "0 is not a valid delayed retry minimum delay. Must be a positive integer",
        ),
        (
            {"delayed-retry-max": 0},
            "0 is not a valid delayed retry maximum delay. Must be a positive integer",
        ),
        ({"delayed-retry-type": "all"}, "delayed-retry-min is required when delayed-retry-type is all"),
        (
            {"delayed-retry-max": 1, "delayed-retry-min": 2},
            "delayed-retry-max (1) must not be smaller than delayed-retry-min (2)",
        ),
        ({"consumer-disconnected-timeout": -1}, "-1 is not a valid consumer disconnected timeout"),
        (
            {"queue-master-locator": "balanced"},
            "use of deprecated queue-master-locator argument is not permitted",
        ),
    ],
)
def test_invalid_definition_is_refused_with_text_of_version_4_3(
    definition: dict[str, Any], text: str
) -> None:
    assert reason(definition, personality="rabbitmq-4.3") == text


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (
            {"ha-sync-mode": "manual"},
            "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown",
        ),
        ({"ha-mode": "most"}, '<<"most">> is not a valid ha-mode value'),
        ({"ha-mode": "all", "ha-params": 1}, 'ha-mode="all" does not take parameters'),
        ({"ha-mode": "exactly", "ha-params": "2"}, 'ha-mode="exactly" takes an integer, <<"2">> given'),
        ({"ha-mode": "nodes", "ha-params": []}, 'ha-mode="nodes" list must be non-empty'),
        (
            {"ha-mode": "nodes", "ha-params": ["a", 1]},
            'ha-mode="nodes" takes a list of strings, [1] was not a string',
        ),
        (
            {"ha-mode": "all", "ha-sync-mode": "never"},
            'ha-sync-mode must be "manual" or "automatic", got <<"never">>',
        ),
        ({"queue-master-locator": "here"}, '<<"here">> invalid queue-master-locator value'),
    ],
)
def test_invalid_definition_is_refused_with_text_of_version_3_13(
    definition: dict[str, Any], text: str
) -> None:
    assert reason(definition, personality="rabbitmq-3.13") == text


def test_mirroring_policy_is_refused_when_feature_is_denied() -> None:
    denied = {"personality": "rabbitmq-3.13", "deny": ("classic_queue_mirroring",)}
    assert reason({"ha-mode": "all"}, **denied).startswith("Feature `classic_queue_mirroring` is deprecated.")


# --- matching --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("apply_to", "classic", "quorum", "stream", "exchange"),
    [
        ("all", True, True, True, True),
        ("queues", True, True, True, False),
        ("classic_queues", True, False, False, False),
        ("quorum_queues", False, True, False, False),
        ("streams", False, False, True, False),
        ("exchanges", False, False, False, True),
    ],
)
def test_policy_applies_only_to_kinds_of_its_apply_to(
    apply_to: str, classic: bool, quorum: bool, stream: bool, exchange: bool
) -> None:
    policy = read({"max-length": 1}, apply_to=apply_to, pattern="a")
    kinds = {"classic": classic, "quorum": quorum, "stream": stream}
    assert {kind: policy.applies_to(kind) for kind in kinds} == kinds
    assert policy.applies_to("exchange") is exchange
    assert compiled(policy.pattern).search("xax")
    assert not compiled(policy.pattern).search("xx")


# --- policy and operator policy --------------------------------------------------------------------


def both(key: str, ours: Any, theirs: Any) -> Any:
    return effective_definition(Policy("p", "", {key: ours}), Policy("o", "", {key: theirs}))[key]


@pytest.mark.parametrize(
    ("key", "ours", "theirs", "holds"),
    [
        *((key, 5, 9, 5) for key in ("message-ttl", "expires", "max-length", "max-length-bytes")),
        *((key, 9, 5, 5) for key in ("message-ttl", "expires", "max-length", "max-length-bytes")),
        ("max-in-memory-length", 9, 5, 5),
        ("max-in-memory-bytes", 5, 9, 5),
        ("delivery-limit", 5, 9, 5),
        ("delivery-limit", 9, 5, 5),
        ("delivery-limit", -1, 9, 9),
        ("delivery-limit", 9, -1, 9),
        ("target-group-size", 3, 5, 5),
        ("target-group-size", 5, 3, 5),
        ("overflow", "drop-head", "reject-publish", "reject-publish"),
        ("queue-version", 2, 1, 1),
        ("delayed-retry-type", "all", "failed", "failed"),
        ("delayed-retry-min", 5, 9, 9),
        ("delayed-retry-max", 5, 9, 5),
    ],
)
def test_policy_and_operator_policy_merge_by_rule_of_key(
    key: str, ours: Any, theirs: Any, holds: Any
) -> None:
    assert both(key, ours, theirs) == holds


def test_merged_definition_has_keys_of_policy_and_operator_policy() -> None:
    ours = Policy("p", "", {"message-ttl": 100, "max-length": 5})
    theirs = Policy("o", "", {"max-length": 9, "expires": 500_000})
    merged = effective_definition(ours, theirs)
    assert list(merged.items()) == [("expires", 500_000), ("max-length", 5), ("message-ttl", 100)]
    assert effective_definition(ours, None) == ours.definition
    assert effective_definition(None, theirs) == theirs.definition
    assert effective_definition(None, None) == {}


# --- policies and arguments ------------------------------------------------------------------------


def options(
    kind: str,
    arguments: dict[str, Any],
    definition: dict[str, Any],
    personality: Any = PERSONALITIES["rabbitmq-4.2"],
) -> QueueOptions:
    declared = queue_options(kind, "q", "/", arguments, personality)
    return effective_options(personality, kind, declared, arguments, definition)


HOLDS = [
    # queue type, key, policy's value, argument, option, alone, with the argument
    ("classic", "expires", 2000, 5000, "expires", 2.0, 2.0),
    ("classic", "expires", 5000, 2000, "expires", 5.0, 2.0),
    ("classic", "message-ttl", 2000, 5000, "message_ttl", 2.0, 2.0),
    ("classic", "message-ttl", 5000, 2000, "message_ttl", 5.0, 2.0),
    ("classic", "max-length", 2, 5, "max_length", 2, 2),
    ("classic", "max-length", 5, 2, "max_length", 5, 2),
    ("classic", "max-length-bytes", 5, 2, "max_length_bytes", 5, 2),
    ("classic", "dead-letter-exchange", "p", "a", "dead_letter_exchange", "p", "a"),
    ("classic", "overflow", "reject-publish", "drop-head", "overflow", "reject-publish", "drop-head"),
    ("classic", "consumer-timeout", 5000, 2000, "consumer_timeout", 5.0, 2.0),
    ("classic", "consumer-timeout", 5000, "soon", "consumer_timeout", 5.0, 5.0),
    ("quorum", "expires", 5000, 2000, "expires", 5.0, 2.0),
    ("quorum", "message-ttl", 5000, 2000, "message_ttl", 5.0, 2.0),
    ("quorum", "max-length", 5, 2, "max_length", 5, 2),
    ("quorum", "max-length-bytes", 2, 5, "max_length_bytes", 2, 2),
    ("quorum", "dead-letter-exchange", "p", "a", "dead_letter_exchange", "p", "a"),
    (
        "quorum", "dead-letter-strategy", "at-least-once", "at-most-once",
        "dead_letter_strategy", "at-least-once", "at-most-once",
    ),
    ("quorum", "overflow", "reject-publish", "drop-head", "overflow", "reject-publish", "reject-publish"),
    ("quorum", "overflow", "reject-publish-dlx", "reject-publish", "overflow", "drop-head", "drop-head"),
    ("quorum", "consumer-timeout", 5000, 2000, "consumer_timeout", 5.0, 2.0),
    ("stream", "max-length-bytes", 5, 2, "max_length_bytes", 5, 5),
    ("stream", "max-age", "2h", "1h", "max_age", 7200.0, 7200.0),
    ("stream", "stream-max-segment-size-bytes", 600, 500, "max_segment_size", 600, 600),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "key", "policy", "argument", "option", "alone", "together"), HOLDS)
def test_policy_and_queue_argument_merge_by_rule_of_queue_type(
    kind: str, key: str, policy: Any, argument: Any, option: str, alone: Any, together: Any
) -> None:
    assert getattr(options(kind, {}, {key: policy}), option) == alone
    assert getattr(options(kind, {f"x-{key}": argument}, {key: policy}), option) == together


@pytest.mark.parametrize(("policy", "argument", "holds"), [(5, 2, 2), (2, 5, 2), (-1, 2, 2), (2, -1, 2)])
def test_stricter_delivery_limit_of_policy_and_argument_applies(
    policy: int, argument: int, holds: int
) -> None:
    declared = QueueOptions(delivery_limit=argument)
    arguments = {"x-delivery-limit": argument}
    found = effective_options(
        PERSONALITIES["rabbitmq-4.2"], "quorum", declared, arguments, {"delivery-limit": policy}
    )
    assert found.delivery_limit == holds
    found = effective_options(
        PERSONALITIES["rabbitmq-4.2"], "quorum", QueueOptions(), {}, {"delivery-limit": policy}
    )
    assert found.delivery_limit == policy


def test_dead_letter_routing_key_argument_overrides_policy() -> None:
    both = {"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "a"}
    for kind in ("classic", "quorum"):
        assert options(kind, both, {"dead-letter-routing-key": "p"}).dead_letter_routing_key == "a"
        assert options(kind, {}, {"dead-letter-routing-key": "p"}).dead_letter_routing_key == "p"


def test_expires_of_policy_overrides_argument_of_quorum_queue_in_3_13_only() -> None:
    both = ("quorum", {"x-expires": 2000}, {"expires": 5000})
    assert options(*both, PERSONALITIES["rabbitmq-3.13"]).expires == 5.0
    assert options(*both, PERSONALITIES["rabbitmq-4.2"]).expires == 2.0
    assert options("classic", *both[1:], PERSONALITIES["rabbitmq-3.13"]).expires == 2.0


def test_policy_key_not_supported_by_queue_type_has_no_effect() -> None:
    assert options("quorum", {}, {"queue-version": 2, "alternate-exchange": "x"}) == QueueOptions()
    assert options("stream", {}, {"message-ttl": 1}) == QueueOptions()


def test_repr_of_queue_options_shows_only_set_options() -> None:
    assert repr(QueueOptions()) == "QueueOptions()"
    shown = repr(options("classic", {"x-max-length": 9}, {"max-length": 5, "message-ttl": 60_000}))
    assert shown == "QueueOptions(message_ttl=60.0, max_length=5)"


# --- a policy over many queues is matched in steps, each with a bound of work --------------------------


def test_each_step_of_setting_policy_searches_one_queue_name_within_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server()
    for number in range(20):
        server.vhost.queues.declare(f"{number:0200}!", QueueDeclaration(durable=True))
    searches: list[int] = []
    run = Program.run

    def counting(program: Program, text: str) -> tuple[bool, int]:
        found = run(program, text)
        searches.append(found[1])
        return found

    monkeypatch.setattr(Program, "run", counting)
    value = {"pattern": "^((.{0,99}){0,99}){0,9}$x", "definition": {"max-length": 1}, "priority": 0}
    most = 0
    for _ in server.vhost.policies.setting("slow", value):
        most = max(most, len(searches))
        assert max(searches, default=0) < 1.1 * MOST_STEPS
        searches.clear()
    assert most == 1
    assert all(queue.policy is None for queue in server.vhost.queues.values())
