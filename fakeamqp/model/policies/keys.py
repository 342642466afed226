"""What the definition of a policy may say: a table of keys, their legal values, and RabbitMQ's refusals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.erlang import pairs_term, term
from fakeamqp.model.errors import InternalError, ModelError
from fakeamqp.model.parameters import hint
from fakeamqp.model.queues.options import ArgumentReader

if TYPE_CHECKING:
    from fakeamqp.model.personality import DeprecatedFeatures, Personality

__all__ = ["definition_problem", "seconds_of_age"]

_LARGEST_SEGMENT = 3_000_000_000


def definition_problem(
    personality: Personality, features: DeprecatedFeatures, definition: Any, *, operator: bool
) -> tuple[str, str] | None:
    """What is wrong with a definition: RabbitMQ's text and a hint, which may be empty. None if nothing is.

    Values are checked before unknown keys are reported, and the first bad value is the only one named
    (RabbitMQ: measured).
    """
    if not isinstance(definition, Mapping):
        if isinstance(definition, list):
            return f"definition must be a dictionary: {term(definition)}", ""
        shown = term(definition)
        return f"parse error while reading policy definition: {shown}. Validator: policy_validator.", ""
    if not definition:
        return "no policy provided", ""
    known = personality.operator_policy_keys if operator else personality.policy_keys
    for key in sorted(definition):
        if key in known:
            problem = _problem(personality, features, key, definition[key])
            if problem is not None:
                return problem, ""
    problem = _mirroring_problem(features, known, definition) or _delayed_retry_problem(known, definition)
    if problem is not None:
        return problem, ""
    unknown = [(key, definition[key]) for key in sorted(definition) if key not in known]
    if unknown:
        text = f"{pairs_term(unknown)} are not recognised policy settings"
        if operator and unknown[0][0] in personality.policy_keys:
            return text, f"; an operator policy cannot set {unknown[0][0]!r}, a policy can"
        return text, hint(unknown[0][0], known)
    return None


def _problem(personality: Personality, features: DeprecatedFeatures, key: str, value: Any) -> str | None:
    if key == "queue-master-locator":
        return _master_locator_problem(personality, features, value)
    if key == "delivery-limit" and not personality.negative_delivery_limit:
        legal: Callable[[Any], bool] = _natural
        refusal = "is not a valid delivery limit"
    elif key in _KEYS:
        legal, refusal = _KEYS[key]
    else:
        return None
    return None if legal(value) else f"{term(value)} {refusal}"


def seconds_of_age(value: Any) -> float | None:
    """A number with a unit, such as 7D, in seconds; None where it is no such thing."""
    try:
        return ArgumentReader("queue", "", "", {"max-age": value}).age("max-age")
    except ModelError:
        return None


def _whole(value: Any) -> bool:
    return type(value) is int


def _natural(value: Any) -> bool:
    return _whole(value) and value >= 0


def _positive(value: Any) -> bool:
    return _whole(value) and value > 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _one_of(*legal: Any) -> Callable[[Any], bool]:
    return lambda value: any(type(value) is type(each) and value == each for each in legal)


_LOCATORS = ("client-local", "balanced", "random", "least-leaders")

_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "alternate-exchange": (_text, "is not a valid alternate exchange name"),
    "consumer-disconnected-timeout": (_natural, "is not a valid consumer disconnected timeout"),
    "consumer-timeout": (_natural, "is not a valid consumer timeout"),
    "dead-letter-exchange": (_text, "is not a valid dead letter exchange name"),
    "dead-letter-routing-key": (_text, "is not a valid dead letter routing key"),
    "dead-letter-strategy": (
        _one_of("at-most-once", "at-least-once"),
        "is not a valid dead letter strategy",
    ),
    "delayed-retry-max": (
        _positive,
        "is not a valid delayed retry maximum delay. Must be a positive integer",
    ),
    "delayed-retry-min": (
        _positive,
        "is not a valid delayed retry minimum delay. Must be a positive integer",
    ),
    "delayed-retry-type": (
        _one_of("all", "failed", "returned", "disabled"),
        "is not a valid delayed retry type. Must be one of: all, failed, returned, disabled",
    ),
    "delivery-limit": (_whole, "is not a valid delivery limit"),
    "expires": (_positive, "is not a valid queue expiry"),
    "initial-cluster-size": (_natural, "is not a valid cluster size"),
    "max-age": (lambda value: seconds_of_age(value) is not None, "is not a valid max age"),
    "max-in-memory-bytes": (_natural, "is not a valid maximum memory in bytes"),
    "max-in-memory-length": (_natural, "is not a valid maximum memory in bytes"),
    "max-length": (_natural, "is not a valid maximum length"),
    "max-length-bytes": (_natural, "is not a valid maximum length in bytes"),
    "message-ttl": (_natural, "is not a valid message TTL"),
    "overflow": (
        _one_of("drop-head", "reject-publish", "reject-publish-dlx"),
        "is not a valid overflow value",
    ),
    "queue-leader-locator": (_one_of(*_LOCATORS), "is not a valid queue leader locator value"),
    "queue-mode": (_one_of("default", "lazy"), "is not a valid queue-mode value"),
    "queue-version": (_one_of(1, 2), "is not a valid queue-version value"),
    "stream-filter-size-bytes": (
        lambda value: _whole(value) and 16 <= value <= 255,
        "is not a valid filter size. Valid range is 16-255",
    ),
    "stream-max-segment-size-bytes": (
        lambda value: _natural(value) and value <= _LARGEST_SEGMENT,
        "is not a valid segment size",
    ),
    "target-group-size": (_positive, "is not a valid qq target count value"),
}
"""By key, whether a value is legal, and how RabbitMQ's text about an illegal one goes on."""


def _master_locator_problem(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """`queue-master-locator` is a deprecated feature, and a matter of classic queue mirroring before that."""
    if not features.permitted("queue_master_locator"):
        return "use of deprecated queue-master-locator argument is not permitted"
    if "ha-mode" in personality.policy_keys:
        legal = _one_of("client-local", "min-masters", "random")(value)
        return None if legal else f"{term(value)} invalid queue-master-locator value"
    return None if _one_of(*_LOCATORS)(value) else f"{term(value)} is not a valid master locator"


def _delayed_retry_problem(known: Collection[str], definition: Mapping[str, Any]) -> str | None:
    """Keys of delayed retries go together (RabbitMQ: since 4.3)."""
    if "delayed-retry-type" not in known:
        return None
    kind = definition.get("delayed-retry-type", "disabled")
    least = definition.get("delayed-retry-min")
    most = definition.get("delayed-retry-max")
    if kind != "disabled" and least is None:
        return f"delayed-retry-min is required when delayed-retry-type is {kind}"
    if least is not None and most is not None and most < least:
        return f"delayed-retry-max ({most}) must not be smaller than delayed-retry-min ({least})"
    return None


def _mirroring_problem(
    features: DeprecatedFeatures, known: Collection[str], definition: Mapping[str, Any]
) -> str | None:
    """Keys of classic queue mirroring go together (RabbitMQ: until 3.13)."""
    given = {key: value for key, value in definition.items() if key.startswith("ha-") and key in known}
    if not given:
        return None
    try:
        features.require("classic_queue_mirroring")
    except InternalError as denied:
        return denied.text
    mode = given.get("ha-mode")
    if mode is None:
        return "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
    if mode not in ("all", "exactly", "nodes"):
        return f"{term(mode)} is not a valid ha-mode value"
    return _mirrors_problem(mode, given.get("ha-params")) or next(
        (
            f"{key} {refusal} {term(given[key])}".rstrip()
            for key, (legal, refusal) in _MIRRORING_KEYS.items()
            if key in given and not legal(given[key])
        ),
        None,
    )


def _mirrors_problem(mode: str, parameters: Any) -> str | None:
    if mode == "all":
        return None if parameters is None else 'ha-mode="all" does not take parameters'
    if mode == "exactly":
        shown = term(parameters)
        return None if _positive(parameters) else f'ha-mode="exactly" takes an integer, {shown} given'
    if not isinstance(parameters, list):
        return f'ha-mode="nodes" takes a list, {term(parameters)} given'
    if not parameters:
        return 'ha-mode="nodes" list must be non-empty'
    wrong = [each for each in parameters if not isinstance(each, str)]
    return f'ha-mode="nodes" takes a list of strings, {term(wrong)} was not a string' if wrong else None


_MIRRORING_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "ha-sync-mode": (_one_of("automatic", "manual"), 'must be "manual" or "automatic", got'),
    "ha-sync-batch-size": (_positive, "takes an integer greater than 0, got"),
    "ha-promote-on-shutdown": (_one_of("always", "when-synced"), 'must be "always" or "when-synced", got'),
    "ha-promote-on-failure": (_one_of("always", "when-synced"), 'must be "always" or "when-synced", got'),
}
