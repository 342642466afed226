"""Every option of the source and of the sink: one table, of which parsing, errors and documentation are made.

Names follow the Kafka source's where the two mean the same; what goes to the connection begins with `amqp.`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fakeamqp.spark import values

__all__ = ["OPTIONS", "READ", "WRITE", "Option"]

READ, WRITE = "read", "write"
_BOTH = (READ, WRITE)


@dataclass(frozen=True)
class Option:
    """One option: its key as documented, the field it fills, what its text means and what it is for."""

    key: str
    field: str
    parse: Callable[[str], Any]
    meaning: str
    default: Any = None
    uses: tuple[str, ...] = (READ,)
    shown_default: str = ""


OPTIONS = (
    Option(
        "amqp.url",
        "urls",
        values.names,
        "where the broker is: `amqp://` or `amqps://` URLs, tried in their order",
        uses=_BOTH,
    ),
    Option(
        "amqp.heartbeat",
        "heartbeat",
        values.count(0, 65535),
        "heartbeat interval in seconds, 0 for none",
        uses=_BOTH,
        shown_default="the broker's",
    ),
    Option(
        "amqp.clientName",
        "client_name",
        values.text,
        "the connection's name in the broker's lists",
        "spark",
        _BOTH,
    ),
    Option(
        "amqp.connectionTimeout",
        "connect_timeout",
        values.duration,
        "how long opening a connection may take",
        10.0,
        _BOTH,
        "10s",
    ),
    Option("amqp.username", "username", values.text, "user, in place of the URL's", uses=_BOTH),
    Option("amqp.password", "password", values.text, "password, in place of the URL's", uses=_BOTH),
    Option(
        "amqp.virtualHost", "virtual_host", values.text, "virtual host, in place of the URL's", uses=_BOTH
    ),
    Option(
        "amqp.caFile",
        "ca_file",
        values.text,
        "PEM file of the authorities that an `amqps` broker may be signed by",
        uses=_BOTH,
    ),
    Option("amqp.certFile", "cert_file", values.text, "PEM file of the client's certificate", uses=_BOTH),
    Option("amqp.keyFile", "key_file", values.text, "PEM file of the client's key", uses=_BOTH),
    Option(
        "amqp.verify",
        "verify",
        values.boolean,
        "whether an `amqps` broker's certificate is checked",
        True,
        _BOTH,
        "true",
    ),
    Option("queue", "queues", values.names, "the queue to read, or several; it must exist", ()),
    Option(
        "stream", "streams", values.names, "the stream queue (`x-queue-type=stream`) to read, or several", ()
    ),
    Option(
        "startingOffsets",
        "starting_offsets",
        values.text,
        'streams: `earliest`, `latest`, or JSON such as `{"events": 17}`',
        "earliest",
    ),
    Option(
        "startingTimestamp",
        "starting_timestamp",
        values.text,
        "streams: start with the chunk of this time; milliseconds since 1970, or ISO 8601",
    ),
    Option(
        "endingOffsets",
        "ending_offsets",
        values.text,
        'streams, batch: where to end, exclusive: `latest`, or JSON such as `{"events": 99}`',
        "latest",
    ),
    Option("maxMessagesPerTrigger", "max_messages", values.count(), "most messages in a micro-batch", 10_000),
    Option(
        "maxBytesPerTrigger",
        "max_bytes",
        values.octets,
        "most bytes of bodies in a micro-batch, at least one message",
        shown_default="no limit",
    ),
    Option(
        "prefetch",
        "prefetch",
        values.count(1, 65535),
        "most messages on their way to Spark without an ack",
        shown_default="twice maxMessagesPerTrigger, at most 65535",
    ),
    Option(
        "ackMode",
        "ack_mode",
        values.choice("spool", "commit", "none"),
        "queues: when messages are acknowledged",
        "spool",
    ),
    Option(
        "spoolDir",
        "spool_folder",
        values.text,
        "folder for what was acknowledged and not processed yet; needed by `ackMode=spool`",
    ),
    Option(
        "spoolSync",
        "spool_sync",
        values.choice("fsync", "none"),
        "whether segments are on the disk before they are acknowledged",
        "fsync",
    ),
    Option(
        "spoolMaxBytes",
        "spool_max_bytes",
        values.octets,
        "how much the spool may hold unprocessed before messages are left in the queue",
        256 << 20,
        shown_default="256m",
    ),
    Option("spoolFlushRows", "spool_flush_rows", values.count(), "most messages of a segment", 10_000),
    Option(
        "spoolFlushInterval",
        "spool_flush_interval",
        values.duration,
        "how long a message may wait for its segment to be written",
        0.1,
        shown_default="100ms",
    ),
    Option(
        "transport",
        "transport",
        values.choice("inline", "file"),
        "how messages reach executors: inside their tasks, or as files of a shared spool",
        "inline",
    ),
    Option(
        "dedupe",
        "dedupe",
        values.choice("message_id", "none"),
        "whether messages that come again with a known message id are dropped",
        "message_id",
    ),
    Option(
        "minPartitions",
        "min_partitions",
        values.count(),
        "least number of tasks that a large batch is read by",
        shown_default="processors of the driver",
    ),
    Option(
        "columns",
        "columns",
        values.column_names,
        "the columns to read; fewer are faster, since Spark prunes none for Python sources",
        shown_default="see the table of columns",
    ),
    Option(
        "includeHeaders",
        "include_headers",
        values.boolean,
        "whether there is a column `headers`",
        True,
        shown_default="true",
    ),
    Option(
        "includeProperties",
        "include_properties",
        values.boolean,
        "whether there is a column `properties`",
        False,
        shown_default="false",
    ),
    Option(
        "headersFormat",
        "headers_format",
        values.choice("map", "json"),
        "`headers` as MAP<STRING, STRING>, or as a STRING of JSON that keeps types",
        "map",
    ),
    Option(
        "failOnDataLoss",
        "fail_on_data_loss",
        values.boolean,
        "whether messages that are gone fail the query, or are logged and skipped",
        True,
        shown_default="true",
    ),
    Option(
        "reconnectTimeout",
        "reconnect_timeout",
        values.duration,
        "how long a lost connection is tried again before the query fails",
        60.0,
        shown_default="60s",
    ),
    Option(
        "idleTimeout",
        "idle_timeout",
        values.duration,
        "how long to wait for messages that the queue counts and another consumer may have",
        2.0,
        shown_default="2s",
    ),
    Option(
        "exchange",
        "exchange",
        values.text,
        "exchange for rows without a column `exchange`; empty is the default exchange",
        "",
        (WRITE,),
        "``",
    ),
    Option(
        "routingKey",
        "routing_key",
        values.text,
        "routing key for rows without a column `routing_key`",
        "",
        (WRITE,),
        "``",
    ),
    Option(
        "maxInFlight",
        "max_in_flight",
        values.count(),
        "most messages of a task without a confirm",
        1000,
        (WRITE,),
    ),
    Option(
        "confirmTimeout",
        "confirm_timeout",
        values.duration,
        "how long a confirm may take",
        30.0,
        (WRITE,),
        "30s",
    ),
    Option(
        "mandatory",
        "mandatory",
        values.boolean,
        "whether a message that no queue gets comes back",
        True,
        (WRITE,),
        "true",
    ),
    Option(
        "onReturn",
        "on_return",
        values.choice("fail", "drop"),
        "what a returned message does: fail the task, or be logged",
        "fail",
        (WRITE,),
    ),
    Option(
        "ignoreUnknownColumns",
        "ignore_unknown_columns",
        values.boolean,
        "whether columns that the sink does not know are left out",
        False,
        (WRITE,),
        "false",
    ),
    Option(
        "messageId",
        "message_id",
        values.choice("auto", "column", "deterministic"),
        "where message ids come from",
        "auto",
        (WRITE,),
    ),
    Option(
        "persistent",
        "persistent",
        values.boolean,
        "delivery mode of rows without a column `delivery_mode`",
        True,
        (WRITE,),
        "true",
    ),
)
