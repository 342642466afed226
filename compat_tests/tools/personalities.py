"""What is generated from the rows of the choices, by `python -m compat_tests.tools.personalities`.

That is the tables of docs/personalities.md, and the types of the choices as keyword arguments.

`WORDS` describes choices for the tables; a choice that is not in it is described by its docstring.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from compat_tests.tools import tables
from fakeamqp.model.personality import FEATURES, PERSONALITIES, Personality, keywords as keyword_types
from fakeamqp.model.personality.variants import field_texts

__all__ = ["KEYWORDS", "PAGE", "choices_table", "keywords", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "personalities.md"
KEYWORDS = Path(keyword_types.__file__)
VERSIONS = [each for each in PERSONALITIES.values() if each.product == "RabbitMQ"]

_MIB = 1024 * 1024
_SOURCE = re.compile(r" \(RabbitMQ: [^)]*\)")

WORDS = {
    "absent_queue_types": "values of `x-queue-type` that are ignored",
    "bindings_sorted_by": "bindings of an `x-modulus-hash` exchange are counted by",
    "body_overrun": "a body longer than announced",
    "channels_time_out": "the acknowledgement timeout closes the channel",
    "checks_utf8": "short strings of methods must be UTF-8",
    "classic_failures": "classic queues: outcomes that are counted, so that dead letters stay redelivered",
    "commit_to_deleted": "a commit of a message for a queue that was deleted since",
    "compares_ages": "`x-max-age` is compared in milliseconds",
    "crashes_on_ages": "an age that does not begin with a digit closes the connection",
    "crashes_on_locators": "`x-queue-master-locator` with an unknown strategy closes the connection",
    "definitions_name_format": "definitions contain their format",
    "definitions_repeat_queue_type": "definitions repeat `default_queue_type` outside the metadata",
    "duplicates_match_in_turn": "headers exchanges compare fields of one name in their order",
    "has_log_exchange": "the virtual host `/` has the exchange `amq.rabbitmq.log`",
    "hashes_empty_headers": "`x-consistent-hash` takes empty tables and arrays",
    "header_for_others": "answer to a protocol header of no known protocol",
    "keeps_claimed_deaths": "`x-death` of a published message keeps entries that are incomplete",
    "largest_content": "largest body a content header may announce",
    "largest_hash_weight": "largest weight in an `x-consistent-hash` exchange",
    "largest_message": "largest message",
    "longest_pattern": "longest pattern of a policy, in bytes",
    "most_topic_wildcards": "words `#` in a topic binding",
    "most_uncommitted_publishes": "most publishes of a transaction",
    "names_default_queue_type": "new virtual hosts name classic as their default queue type",
    "negative_delivery_limit": "a policy's `delivery-limit` may be negative",
    "new_secret_is_checked": "`connection.update-secret` checks permissions again",
    "numbers_match_by_value": "in a headers exchange 1 matches 1.0",
    "passive_declare_needs_permission": "a passive declare needs some permission",
    "policy_decides_expiry": "queue types for which a policy's `expires` overrides a shorter argument",
    "prints_utf8": "malformed bytes are printed as UTF-8; otherwise as Latin-1",
    "publish_checks": "checks of a publish",
    "quorum.back_without_limit": "quorum queues without a limit: outcomes that move a message to the end",
    "quorum.carries_failures": "quorum queues: dead letters keep their count of failures",
    "quorum.consumers_time_out": "quorum queues: the acknowledgement timeout requeues; the consumer waits",
    "quorum.counts_on_get": "quorum queues: `basic.get` shows an `x-delivery-count` of 0",
    "quorum.counts_properties": "quorum queues: limits in bytes count properties as well",
    "quorum.delivery_limit": "quorum queues: delivery limit by default",
    "quorum.failures": "quorum queues: outcomes that count as failures",
    "quorum.invalid_limit_is_none": "quorum queues: a delivery limit that is not a number is ignored",
    "quorum.limit_counts": "quorum queues: the delivery limit counts",
    "quorum.losses_by_age": "quorum queues: a closed channel's deliveries return by consumer age, not tag",
    "quorum.negative_limit_is_none": "quorum queues: a negative delivery limit means no limit; otherwise 0",
    "quorum.priorities": "quorum queues: priorities",
    "quorum.purges_all": "quorum queues: a purge also removes waiting retries and held dead letters",
    "quorum.returns_activate": "quorum queues: a returned message may make another consumer the active one",
    "quorum.shows_acquisitions": "quorum queues: `x-acquired-count`, and `x-delivery-count` of failures",
    "quorum.single_active_by_priority": "quorum queues: the single active consumer is chosen by priority",
    "refusals_name_permission": "the text of a refusal names the missing permission",
    "refuses_binding_replies": "binding a direct reply address is refused with 403; otherwise 404",
    "refuses_bogus_replies": "declaring a bogus direct reply address ends the connection with 541",
    "remembers_queue_type": "a queue declared without `x-queue-type` shows it afterwards",
    "replies_are_routed": "a mandatory direct reply that is delivered is not returned as well",
    "replies_count_tags": "direct replies have delivery tags of their own",
    "restart_keeps_unbound_exchanges": "a restart keeps auto-delete exchanges whose last binding it takes",
    "returns_late_replies": "a mandatory direct reply to a consumer that is gone is returned",
    "rewrites_expirations": "consumers get expirations as plain numbers: 500 for 0500",
    "rewrites_headers": "consumers get headers sorted by name, without duplicates",
    "smallest_frame_max": "smallest frame_max",
    "sorts_deaths": "`x-death`: entries after the first are sorted, `original-expiration` is last",
    "streams_annotate": "streams keep tables in headers called `x-`, and return bytes as text",
    "streams_refuse_rejects": "`basic.reject` and `basic.nack` of a stream's delivery are 540",
    "takes_cancel_ok": "`basic.cancel-ok` from a client cancels a consumer; an unknown one is 541",
    "takes_deaths_from_clients": "`x-death` of a published message is the beginning of its history",
    "tells_last_death": "dead letters have `x-last-death-*`",
    "timestamps_match_in_milliseconds": "headers exchanges see a message's timestamps in milliseconds",
    "transient_exchanges_survive": "a restart keeps transient exchanges",
    "unknown_exchange_type": "an unknown exchange type",
    "validates_consumer_timeout": "a bad `x-consumer-timeout` is refused; otherwise it is ignored",
}

_LEFT_OUT = (
    "name",
    "version",
    "deprecated_features",  # It has a table of its own.
    # Texts:
    "channel_limit_text",
    "fills_in_queue_type",
    "single_active_get_refusal",
    "stream_consumer_terms",
    "stream_filter_size_refusal",
)

_NOTHING = {
    "body_overrun": "taken",
    "classic_failures": "none",
    "largest_content": "no limit",
    "largest_hash_weight": "no limit",
    "longest_pattern": "no limit",
    "most_topic_wildcards": "any number",
    "policy_decides_expiry": "none",
    "quorum.back_without_limit": "none",
    "quorum.delivery_limit": "none",
}

Row = tuple[str, str, list[str]]


def with_tables(page: str) -> str:
    """The page with its tables as they should be. Raises ValueError where it has no place for them."""
    return tables.with_tables(page, {"features": _features, "choices": choices_table})


def _features() -> str:
    rows = []
    for name, what in FEATURES.items():
        phases = [each.deprecated_features.get(name, "not known") for each in VERSIONS]
        rows.append([f"`{name}`: {what}", *phases])
    return tables.table(["Deprecated feature", *_numbers()], rows)


def choices_table(versions: Iterable[Personality] = VERSIONS) -> str:
    """A row for each choice in which these personalities differ."""
    records = list(versions)
    rows = [
        [what[:1].upper() + what[1:], f"`{setting}`", *shown]
        for what, setting, shown in _differences("", records, _texts(type(records[0])))
        if setting not in _LEFT_OUT
    ]
    return tables.table(["Behaviour", "Choice", *_numbers()], rows)


def _numbers() -> list[str]:
    return [each.name.removeprefix("rabbitmq-") for each in VERSIONS]


def _differences(prefix: str, records: list[Any], docs: Mapping[str, str]) -> Iterator[Row]:
    for field in fields(records[0]):
        values = [getattr(each, field.name) for each in records]
        if all(value == values[0] for value in values):
            continue
        name = prefix + field.name
        if is_dataclass(values[0]):
            yield from _differences(f"{name}.", values, _texts(type(values[0])))
        elif field.name in _OWN_ROWS:
            yield from _OWN_ROWS[field.name](name, values)
        elif isinstance(values[0], tuple) and any(set(value) != set(values[0]) for value in values):
            yield from _members(name, WORDS.get(name), values)
        else:
            what = WORDS.get(name) or docs.get(field.name, "")
            yield what, name, [_shown(name, value) for value in values]


def _members(name: str, what: str | None, values: list[tuple[Any, ...]]) -> Iterator[Row]:
    """A row for the members that not all have, those together that the same have."""
    if what is not None:
        yield what, name, [_shown(name, value) for value in values]
        return
    having = _grouped(
        (member, [_shown("", member in value) for value in values])
        for member in dict.fromkeys(member for value in values for member in value)
    )
    for shown, members in having.items():
        yield f"{name.rpartition('.')[2].replace('_', ' ')}: {_list(members)}", name, list(shown)


def _grouped(pairs: Iterable[tuple[str, list[str]]]) -> dict[tuple[str, ...], list[str]]:
    """What has the same in all columns together, where the columns differ."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for what, shown in pairs:
        if len(set(shown)) > 1:
            groups.setdefault(tuple(shown), []).append(what)
    return groups


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _arguments(name: str, values: list[Mapping[str, tuple[str, ...]]]) -> Iterator[Row]:
    """What becomes of arguments on each queue type, where that differs."""
    arguments = dict.fromkeys(each for value in values for known in value.values() for each in known)
    kinds: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for kind in values[0]:
        groups = _grouped((each, [_fate(value, kind, each) for value in values]) for each in arguments)
        for fates, found in groups.items():
            kinds.setdefault((fates, _list(found)), []).append(kind)
    for (fates, found), where in kinds.items():
        verb = "consumers of" if name == "consumer_arguments" else "declarations of"
        yield f"{found} in {verb} {' and '.join(where)} queues", name, list(fates)


def _fate(known: Mapping[str, tuple[str, ...]], kind: str, argument: str) -> str:
    if argument in known[kind]:
        return "known"
    return "refused" if any(argument in others for others in known.values()) else "ignored"


def _values(name: str, values: list[Mapping[str, tuple[Any, ...]]]) -> Iterator[Row]:
    """The legal values of each argument, where they differ."""
    for argument in dict.fromkeys(each for value in values for each in value):
        legal = [value.get(argument, ()) for value in values]
        if any(each != legal[0] for each in legal):
            yield f"values of `{argument}`", name, [_shown(name, each) if each else "any" for each in legal]


def _by_type(name: str, values: list[Mapping[str, tuple[str, ...]]]) -> Iterator[Row]:
    for kind in values[0]:
        members = dict.fromkeys(each for value in values for each in value[kind])
        having = _grouped((each, [_shown("", each in value[kind]) for value in values]) for each in members)
        for shown, keys in having.items():
            yield f"a policy with {_list(keys)} skips {kind} queues", name, list(shown)


_OWN_ROWS: dict[str, Callable[[str, list[Any]], Iterator[Row]]] = {
    "queue_arguments": _arguments,
    "consumer_arguments": _arguments,
    "argument_values": _values,
    "foreign_policy_keys": _by_type,
}


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not value and name in _NOTHING:
        return _NOTHING[name]
    if isinstance(value, int) and value and value % _MIB == 0:
        return f"{value // _MIB} MiB"
    if isinstance(value, bytes):
        return f"`{value[:4].decode()} {' '.join(map(str, value[4:]))}`"
    if isinstance(value, tuple):
        return ", ".join(_shown("", each) for each in value)
    if isinstance(value, str):
        return f"`{value}`" if re.search(r"[<{']", value) else value or '""'
    return "none" if value is None else str(value)


def _texts(record: type) -> dict[str, str]:
    """The text below each choice of a record, without its source and its full stop."""
    return {name: _SOURCE.sub("", text.rstrip(".")) for name, text in field_texts(record).items()}


_CLASS = '''\
class PersonalityChoices(TypedDict, total=False):
    """The choices of a personality that `Personality.with_` takes; `Personality` documents each."""

'''


def keywords(module: str, record: type[Personality] = Personality) -> str:
    """The module of the types of keyword arguments, as it should be for the choices of a record."""
    types = "".join(f"    {each.name}: {each.type}\n" for each in fields(record)).replace("'", '"')
    return module.partition(_CLASS)[0] + _CLASS + types


def main() -> None:
    """Write both anew."""
    PAGE.write_text(with_tables(PAGE.read_text()))
    KEYWORDS.write_text(keywords(KEYWORDS.read_text()))


if __name__ == "__main__":
    main()
