"""The policy keys of classic queue mirroring (RabbitMQ: until 3.13). They have no effect on a single node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.model.arguments.policy_values import is_one_of, is_positive
from fakeamqp.model.arguments.rows import PolicyKey
from fakeamqp.model.arguments.versions import EVERY, ONLY_3_13, SINCE_3_13, UNTIL_3_13, Versions
from fakeamqp.model.erlang import term
from fakeamqp.model.errors import InternalError

if TYPE_CHECKING:
    from fakeamqp.model.personality import DeprecatedFeatures

__all__ = ["MIRRORING_KEYS", "MIRRORING_MODE", "mirroring_problem"]

MIRRORING_MODE: Final = "ha-mode"
_PARAMETERS: Final = "ha-params"


def _always(value: Any) -> bool:
    return True


@dataclass(frozen=True)
class MirroringKey(PolicyKey):
    """The row of one key. `legal` and `refusal` apply once the mode is right: see `mirroring_problem`."""

    versions: Versions = UNTIL_3_13
    legal: Callable[[Any], bool] = _always
    refusal: str = ""


_QUORUM_AND_STREAM = {"quorum": EVERY, "stream": EVERY}
_PROMOTE = is_one_of("always", "when-synced")
_PROMOTE_REFUSAL = 'must be "always" or "when-synced", got'

MIRRORING_KEYS = {
    MIRRORING_MODE: MirroringKey(operator=ONLY_3_13, foreign=_QUORUM_AND_STREAM),
    _PARAMETERS: MirroringKey(operator=ONLY_3_13, foreign=_QUORUM_AND_STREAM),
    "ha-sync-mode": MirroringKey(
        operator=ONLY_3_13,
        foreign=_QUORUM_AND_STREAM,
        legal=is_one_of("automatic", "manual"),
        refusal='must be "manual" or "automatic", got',
    ),
    "ha-sync-batch-size": MirroringKey(
        foreign={"stream": SINCE_3_13}, legal=is_positive, refusal="takes an integer greater than 0, got"
    ),
    "ha-promote-on-shutdown": MirroringKey(
        foreign=_QUORUM_AND_STREAM, legal=_PROMOTE, refusal=_PROMOTE_REFUSAL
    ),
    "ha-promote-on-failure": MirroringKey(
        foreign=_QUORUM_AND_STREAM, legal=_PROMOTE, refusal=_PROMOTE_REFUSAL
    ),
}
"""One row for each key, in the order in which RabbitMQ checks them together."""


def mirroring_problem(
    features: DeprecatedFeatures, known: Collection[str], definition: Mapping[str, Any]
) -> str | None:
    """What is wrong with the keys of mirroring in a definition, in RabbitMQ's words; None if nothing is."""
    given = {key: value for key, value in definition.items() if key in MIRRORING_KEYS and key in known}
    if not given:
        return None
    try:
        features.require("classic_queue_mirroring")
    except InternalError as denied:
        return denied.text
    mode = given.get(MIRRORING_MODE)
    if mode is None:
        return "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
    if mode not in ("all", "exactly", "nodes"):
        return f"{term(mode)} is not a valid ha-mode value"
    return _parameters_problem(mode, given.get(_PARAMETERS)) or next(
        (
            f"{key} {row.refusal} {term(given[key])}".rstrip()
            for key, row in MIRRORING_KEYS.items()
            if key in given and not row.legal(given[key])
        ),
        None,
    )


def _parameters_problem(mode: str, parameters: Any) -> str | None:
    if mode == "all":
        return None if parameters is None else 'ha-mode="all" does not take parameters'
    if mode == "exactly":
        shown = term(parameters)
        return None if is_positive(parameters) else f'ha-mode="exactly" takes an integer, {shown} given'
    if not isinstance(parameters, list):
        return f'ha-mode="nodes" takes a list, {term(parameters)} given'
    if not parameters:
        return 'ha-mode="nodes" list must be non-empty'
    wrong = [each for each in parameters if not isinstance(each, str)]
    return f'ha-mode="nodes" takes a list of strings, {term(wrong)} was not a string' if wrong else None
