"""Reads the options of the source and of the sink from text, and checks them against each other."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options.option import Option, Use, options_of
from fakeamqp.spark.options.other_names import hint
from fakeamqp.spark.options.table import ConnectionOptions, ReadOptions, WriteOptions

# Options of Spark itself that reach a source or sink along with ours.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname", "outputmode", "mergeschema", "provider"})

# What Spark adds to the options of CREATE TABLE: its owner, and each option once more with this prefix.
_TABLES_OWNER = "owner"
_TABLES_PREFIX = "option."
_NO_TABLES = (
    "tables of the catalog are not supported, because Spark does not pass their options on: use CREATE "
    "TEMPORARY VIEW, or read and write with options"
)

TRANSPORT = "FAKEAMQP_SPARK_TRANSPORT"
"""The environment variable with the default of the option `transport`, which `local_session` sets."""

# A batch that travels inside its tasks is in memory at once.
_MAX_BYTES = 256 << 20

_CONNECTION = options_of(ConnectionOptions)
OF_SOURCE: Mapping[str, Option] = {**_CONNECTION, **options_of(ReadOptions)}
"""The options of the source, by their names in lower case."""
OF_SINK: Mapping[str, Option] = {**_CONNECTION, **options_of(WriteOptions)}
"""The options of the sink, by their names in lower case."""


def read_options(given: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """The options of a reader.

    Raises:
        OptionError: if one is unknown, missing or malformed, or does not go with another one.
    """
    said, values = _parse(given, OF_SOURCE)
    found = ReadOptions(**values)
    chosen = sum(map(bool, (found.queues, found.streams, found.super_streams, found.stream_pattern)))
    if chosen != 1:
        raise OptionError(
            "set the option 'queue' for classic and quorum queues, 'stream' or 'streamPattern' for stream "
            "queues, or 'superStream' for partitioned ones" + (", only one of them" if chosen else "")
        )
    for name in said.values():
        option = OF_SOURCE[name.lower()]
        if problem := _misused(option.use, found, streaming):
            raise OptionError(f"option {name!r} {problem}")
        if option.needs and option.needs not in said:
            raise OptionError(f"option {name!r} needs the option {option.needs!r}")
    if streaming and found.queues and found.ack_mode == "spool" and not found.spool_folder:
        raise OptionError(
            "option 'spoolDir' is missing: a folder that outlives the query, beside its checkpoint, for what "
            "was acknowledged and not processed yet; or say ackMode=commit or none, which promise less"
        )
    return replace(
        found,
        queues=_shards(found) if found.shards else found.queues,
        prefetch=found.prefetch or min(2 * found.max_messages, 65535),
        max_bytes=_MAX_BYTES if found.queues and found.max_bytes is None else found.max_bytes,
        transport=found.transport or _transport(found),
        min_partitions=found.min_partitions or os.cpu_count() or 1,
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a writer.

    Raises:
        OptionError: if one is unknown, missing or malformed.
    """
    return WriteOptions(**_parse(given, OF_SINK)[1])


def unknown(name: str, known: Mapping[str, Option]) -> OptionError:
    """The error for a name that none of the known options has."""
    return OptionError(f"there is no option {name!r}{hint(name, known.values())}")


def _misused(use: Use, found: ReadOptions, streaming: bool) -> str:
    """Why an option does not apply to a read; "" if it does."""
    if found.shards and not use.shards:
        return "does not go with 'shards'"
    if use.source and bool(found.queues) != (use.source == "queue"):
        return f"is for {use.source!r}" + (f": {use.why}" if use.why else "")
    if use.batch and streaming:
        return "is for batch reads (spark.read), not for streaming queries"
    if use.spool and found.queues and found.ack_mode != "spool":
        return f"is for ackMode=spool, not {found.ack_mode}"
    return ""


def _transport(found: ReadOptions) -> str:
    """The default of the option `transport`. Messages in memory can only travel inside tasks."""
    files = found.ack_mode == "spool" and os.environ.get(TRANSPORT) == "file"
    return "file" if files else "inline"


def _shards(found: ReadOptions) -> tuple[str, ...]:
    """The queues of shards."""
    queues, shards = found.queues, found.shards or 0
    if len(queues) == 1 and shards > 1:
        queues = tuple(f"{queues[0]}-{number}" for number in range(shards))
    if len(queues) != shards:
        raise OptionError(
            f"option 'shards' is {shards}, and option 'queue' names {len(queues)}: name all of them, or one, "
            "to whose name -0, -1 and so on are added"
        )
    return queues


def _parse(given: Mapping[str, str], known: Mapping[str, Option]) -> tuple[dict[str, str], dict[str, Any]]:
    """The given names by the keys of their options, and the values of fields, with the connection."""
    given = {name: value for name, value in given.items() if name.lower() not in _SPARKS_OWN}
    if any(name.lower() == _TABLES_OWNER or name.lower().startswith(_TABLES_PREFIX) for name in given):
        raise OptionError(_NO_TABLES)
    said: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, value in given.items():
        option = _known(name, known)
        [spelled] = (each for each in option.names if each.lower() == name.lower())
        if option.key in said:
            raise OptionError(f"options {said[option.key]!r} and {spelled!r} are the same: set only one")
        said[option.key] = spelled
        try:
            values[option.field] = option.parse(value)
        except ValueError as expected:
            shown = "***" if option.secret else repr(value)
            raise OptionError(f"option {spelled!r} is {shown}; it has to be {expected}") from None
    if "amqp.url" not in said:
        raise OptionError(
            "option 'amqp.url' is missing: where the broker is, as amqp://user:password@host:port/"
            + ("" if given else f"; {_NO_TABLES}")
        )
    of_connection = {each.field for each in _CONNECTION.values()}
    connection = ConnectionOptions(**{key: values.pop(key) for key in of_connection & values.keys()})
    _check_login(said, connection)
    return said, {**values, "connection": connection}


def _check_login(said: Collection[str], connection: ConnectionOptions) -> None:
    given = [key for key in ("amqp.password", "amqp.passwordFile", "amqp.passwordEnv") if key in said]
    if len(given) > 1:
        raise OptionError(f"options {' and '.join(map(repr, given))}: set only one of them")
    if connection.mechanism != "EXTERNAL":
        return
    if given:
        raise OptionError(f"option {given[0]!r} is for amqp.mechanism=PLAIN: EXTERNAL has a certificate")
    if not connection.cert_file or not all(url.startswith("amqps:") for url in connection.urls):
        raise OptionError(
            "amqp.mechanism=EXTERNAL logs in with the certificate of the client: it needs amqps:// URLs and "
            "the option 'amqp.certFile'"
        )


def _known(name: str, known: Mapping[str, Option]) -> Option:
    if name.lower() in known:
        return known[name.lower()]
    reads = known is OF_SOURCE
    if name.lower() == "path":
        call, keys = (
            ("load()", "queue' or 'stream") if reads else ("save() and start()", "exchange' and 'routingKey")
        )
        raise OptionError(f"{call} takes no path here; say the option '{keys}'")
    if option := (OF_SINK if reads else OF_SOURCE).get(name.lower()):
        use = "writing, not for reading" if reads else "reading, not for writing"
        raise OptionError(f"option {option.key!r} is for {use}{hint(option.key, known.values())}")
    raise unknown(name, known)
