"""The options of the source and of the sink, read from text and checked against each other.

Names follow the Kafka source's where the two mean the same. Keys are case-insensitive, as everywhere in
Spark; what goes to the connection begins with `amqp.`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.option_table import OPTIONS, READ, WRITE, Option


@dataclass(frozen=True)
class ConnectionOptions:
    """The options of a connection. `urls` are tried in order."""

    urls: tuple[str, ...] = field(repr=False)
    heartbeat: int | None
    client_name: str
    connect_timeout: float
    username: str | None
    password: str | None = field(repr=False)
    password_file: str | None
    password_env: str | None = field(repr=False)  # It may be the password, by mistake.
    mechanism: str
    virtual_host: str | None
    ca_file: str | None
    cert_file: str | None
    key_file: str | None
    verify: bool


@dataclass(frozen=True)
class ReadOptions:
    """The options of a reader. Times in seconds, sizes in bytes.

    One of `queues`, `streams` and `super_streams` is not empty. The partitions of super streams are streams,
    which the broker knows. `ack_mode` is `spool`, `commit` or `none`.
    """

    connection: ConnectionOptions
    queues: tuple[str, ...]
    shards: int | None
    shard_exchange: str | None
    streams: tuple[str, ...]
    super_streams: tuple[str, ...]
    management_url: str | None = field(repr=False)
    starting_offsets: str
    starting_timestamp: str | None
    ending_offsets: str
    ending_timestamp: str | None
    timestamp_tolerance: float | None
    max_messages: int
    min_messages: int
    max_trigger_delay: float
    max_bytes: int | None
    prefetch: int
    prefetch_bytes: int
    ack_mode: str
    spool_folder: str | None
    spool_sync: bool
    spool_max_bytes: int
    spool_flush_rows: int
    spool_flush_interval: float
    transport: str
    dedupe: bool
    min_partitions: int
    columns: tuple[str, ...] | None
    include_headers: bool
    include_properties: bool
    headers_format: str
    fail_on_data_loss: bool
    allow_delivery_limit: bool
    reconnect_timeout: float
    idle_timeout: float


@dataclass(frozen=True)
class WriteOptions:
    """The options of a writer. Times in seconds, sizes in bytes."""

    connection: ConnectionOptions
    exchange: str | None
    routing_key: str | None
    exchange_column: str | None
    routing_key_column: str | None
    reconnect_timeout: float
    max_in_flight: int
    confirm_timeout: float
    mandatory: bool
    on_return: str
    ignore_unknown_columns: bool
    message_id: str
    persistent: bool


def _processors() -> int:
    import os

    return max(os.cpu_count() or 1, 1)


# Options of Spark itself that reach a source or sink along with ours.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname", "outputmode", "mergeschema", "provider"})

# What Spark adds to the options of CREATE TABLE: its owner, and each option once more with this prefix.
_TABLES_OWNER = "owner"
_TABLES_PREFIX = "option."
_NO_TABLES = (
    "tables of the catalog are not supported, because Spark does not pass their options on: use CREATE "
    "TEMPORARY VIEW, or read and write with options"
)

# A batch that travels inside its tasks is in memory at once.
_MAX_BYTES = 256 << 20

# Fields whose text may hold a password.
_SECRETS = frozenset({"management_url", "password", "urls"})

_BY_KEY = {option.key.lower(): option for option in OPTIONS}
_ONLY_STREAMS = (
    "startingOffsets",
    "startingTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "timestampTolerance",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
)
_ONLY_BATCH = (
    "endingOffsets",
    "endingTimestamp",
    "timestampTolerance",
    "allowDeliveryLimit",
)
_ONLY_QUEUES = {
    "ackMode": "reading a stream removes no messages",
    "allowDeliveryLimit": "reading a stream returns no messages",
}
_ONLY_SPOOL = (
    "spoolDir",
    "spoolSync",
    "spoolFlushRows",
    "spoolFlushInterval",
    "transport",
    "dedupe",
)

_NOT_SHARDS = (
    "allowDeliveryLimit",
    "maxBytesPerTrigger",
    "minPartitions",
    "prefetch",
    "prefetchBytes",
    "spoolFlushInterval",
    "spoolFlushRows",
    "spoolMaxBytes",
    "stream",
    "superStream",
    "transport",
)


def read_options(given: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """The options of a reader.

    Raises:
        OptionError: if one is unknown, missing or malformed, or does not go with another one.
    """
    said, found = _parse(given, READ)
    chosen = sum(map(bool, (found.queues, found.streams, found.super_streams)))
    if chosen != 1:
        raise OptionError(
            "set the option 'queue' for classic and quorum queues, 'stream' for stream queues, or "
            "'superStream' for partitioned ones" + (", only one of them" if chosen else "")
        )
    if found.queues:
        for key in said.intersection(map(str.lower, _ONLY_STREAMS)):
            raise OptionError(
                f"option {_BY_KEY[key].key!r} is for 'stream': a queue has no offsets to start from, "
                "because acknowledged messages are deleted"
            )
    else:
        for key, reason in _ONLY_QUEUES.items():
            if key.lower() in said:
                raise OptionError(f"option {key!r} is for 'queue': {reason}")
    if streaming:
        for key in said.intersection(map(str.lower, _ONLY_BATCH)):
            raise OptionError(
                f"option {_BY_KEY[key].key!r} is for batch reads (spark.read), not for streaming queries"
            )
    if found.management_url is not None and not found.super_streams:
        raise OptionError("option 'managementUrl' is for 'superStream', whose partitions it finds")
    if streaming and found.queues and found.ack_mode == "spool" and not found.spool_folder:
        raise OptionError(
            "option 'spoolDir' is missing: a folder that outlives the query, beside its checkpoint, for what "
            "was acknowledged and not processed yet; or say ackMode=commit or none, which promise less"
        )
    if found.ack_mode != "spool":
        for key in said.intersection(map(str.lower, _ONLY_SPOOL)):
            raise OptionError(f"option {_BY_KEY[key].key!r} is for ackMode=spool, not {found.ack_mode}")
    _check_shards(said, found)
    if found.prefetch is None:
        found.prefetch = min(2 * found.max_messages, 65535)
    if found.max_bytes is None and found.queues:
        found.max_bytes = _MAX_BYTES
    if found.min_partitions is None:
        found.min_partitions = _processors()
    found.spool_sync = found.spool_sync == "fsync"
    found.dedupe = found.dedupe == "message_id"
    return ReadOptions(**_only(found, ReadOptions))


def _check_shards(said: set[str], found: SimpleNamespace) -> None:
    """The queues of shards; and what does not go with them."""
    if found.shards is None:
        if found.shard_exchange is not None:
            raise OptionError("option 'shardExchange' is for 'shards', which says how many queues there are")
        return
    for key in said.intersection(map(str.lower, _NOT_SHARDS)):
        raise OptionError(f"option {_BY_KEY[key].key!r} does not go with 'shards'")
    if found.ack_mode != "spool":
        raise OptionError(f"option 'shards' is for ackMode=spool, not {found.ack_mode}")
    if len(found.queues) == 1 and found.shards > 1:
        found.queues = tuple(f"{found.queues[0]}-{number}" for number in range(found.shards))
    if len(found.queues) != found.shards:
        raise OptionError(
            f"option 'shards' is {found.shards}, and option 'queue' names {len(found.queues)}: name all of "
            "them, or one, to whose name -0, -1 and so on are added"
        )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a writer.

    Raises:
        OptionError: if one is unknown, missing or malformed.
    """
    return WriteOptions(**_only(_parse(given, WRITE)[1], WriteOptions))


def _parse(given: Mapping[str, str], use: str) -> tuple[set[str], SimpleNamespace]:
    """The given keys in lower case, and a value for every field."""
    said = {key.lower() for key in given} - _SPARKS_OWN
    if any(key == _TABLES_OWNER or key.startswith(_TABLES_PREFIX) for key in said):
        raise OptionError(_NO_TABLES)
    found = SimpleNamespace(**{option.field: option.default for option in OPTIONS})
    for key, value in given.items():
        if key.lower() in _SPARKS_OWN:
            continue
        option = _known(key, use)
        try:
            setattr(found, option.field, option.parse(value))
        except ValueError as expected:
            shown = "***" if option.field in _SECRETS else repr(value)
            raise OptionError(f"option {option.key!r} is {shown}; it has to be {expected}") from None
    if not found.urls:
        raise OptionError(
            "option 'amqp.url' is missing: where the broker is, as amqp://user:password@host:port/"
            + ("" if said else f"; {_NO_TABLES}")
        )
    _check_login(found)
    found.connection = ConnectionOptions(**_only(found, ConnectionOptions))
    return said, found


def _check_login(found: SimpleNamespace) -> None:
    passwords = {
        "amqp.password": found.password,
        "amqp.passwordFile": found.password_file,
        "amqp.passwordEnv": found.password_env,
    }
    given = [key for key, value in passwords.items() if value is not None]
    if len(given) > 1:
        raise OptionError(f"options {' and '.join(map(repr, given))}: set only one of them")
    if found.mechanism != "EXTERNAL":
        return
    if given:
        raise OptionError(f"option {given[0]!r} is for amqp.mechanism=PLAIN: EXTERNAL has a certificate")
    if not found.cert_file or not all(url.startswith("amqps:") for url in found.urls):
        raise OptionError(
            "amqp.mechanism=EXTERNAL logs in with the certificate of the client: it needs amqps:// URLs and "
            "the option 'amqp.certFile'"
        )


def _known(key: str, use: str) -> Option:
    option = _BY_KEY.get(key.lower())
    known = [each.key for each in OPTIONS if use in each.uses]
    if option is None:
        if key.lower() == "path":
            what = "load()" if use == READ else "save() and start()"
            name = "queue' or 'stream" if use == READ else "exchange' and 'routingKey"
            raise OptionError(f"{what} takes no path here; say the option '{name}'")
        raise OptionError(f"there is no option {key!r}{_nearest(key, known)}")
    if use not in option.uses:
        raise OptionError(
            f"option {option.key!r} is for {'writing' if use == READ else 'reading'}, not for "
            f"{'reading' if use == READ else 'writing'}{_nearest(key, known)}"
        )
    return option


def _nearest(key: str, known: list[str]) -> str:
    """The nearest key, compared without regard to case."""
    spelled = {each.lower(): each for each in known}
    hint = near_match(key.lower(), spelled, most=0)
    for lower, each in spelled.items():
        hint = hint.replace(repr(lower), repr(each))
    return hint


def _only(found: SimpleNamespace, into: type) -> dict[str, Any]:
    return {field.name: getattr(found, field.name) for field in fields(into) if hasattr(found, field.name)}
