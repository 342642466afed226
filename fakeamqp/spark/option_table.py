"""The table of all options of the source and the sink. Parsing, errors and documentation are made from it.

Options with the meaning of an option of the Kafka source have its name. Options of the connection begin with
`amqp.`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fakeamqp.spark import values

READ, WRITE = "read", "write"
_BOTH = (READ, WRITE)


@dataclass(frozen=True)
class Option:
    """One option: its documented key, the field it fills, its parser, its meaning and its uses."""

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
        values.urls,
        "the broker: one or more `amqp://` or `amqps://` URLs, tried in order",
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
        values.timeout,
        "the timeout for opening a connection",
        10.0,
        _BOTH,
        "10s",
    ),
    Option("amqp.username", "username", values.text, "user; overrides the URL", uses=_BOTH),
    Option("amqp.password", "password", values.text, "password; overrides the URL", uses=_BOTH),
    Option(
        "amqp.passwordFile",
        "password_file",
        values.text,
        "file with the password or the OAuth 2.0 token; read for each connection",
        uses=_BOTH,
    ),
    Option(
        "amqp.passwordEnv",
        "password_env",
        values.text,
        "name of the environment variable with the password",
        uses=_BOTH,
    ),
    Option(
        "amqp.mechanism",
        "mechanism",
        values.choice("PLAIN", "EXTERNAL"),
        "how to log in: with a password, or with the certificate of `amqp.certFile`",
        "PLAIN",
        _BOTH,
    ),
    Option("amqp.virtualHost", "virtual_host", values.text, "virtual host; overrides the URL", uses=_BOTH),
    Option(
        "amqp.caFile",
        "ca_file",
        values.text,
        "PEM file of the certificate authorities for `amqps`",
        uses=_BOTH,
    ),
    Option("amqp.certFile", "cert_file", values.text, "PEM file of the client's certificate", uses=_BOTH),
    Option("amqp.keyFile", "key_file", values.text, "PEM file of the client's key", uses=_BOTH),
    Option(
        "amqp.verify",
        "verify",
        values.boolean,
        "whether to verify the certificate of an `amqps` broker",
        True,
        _BOTH,
        "true",
    ),
    Option(
        "reconnectTimeout",
        "reconnect_timeout",
        values.duration,
        "the time to retry a lost connection before the query fails, "
        "[but not every first one](#when-the-connection-is-lost)",
        60.0,
        _BOTH,
        "60s",
    ),
    Option(
        "queue",
        "queues",
        values.ranged_names,
        "one or more queues to read; they must exist. `orders-{0..3}` is four",
        (),
    ),
    Option(
        "shards",
        "shards",
        values.count(),
        "streaming: the number of queues that tasks of executors read, one queue each",
    ),
    Option(
        "shardExchange",
        "shard_exchange",
        values.short_text,
        "`shards`: the consistent-hash exchange to bind the queues to; missing queues are declared",
    ),
    Option(
        "stream", "streams", values.names, "one or more stream queues (`x-queue-type=stream`) to read", ()
    ),
    Option(
        "superStream",
        "super_streams",
        values.names,
        "one or more super streams; their partitions are streams to read",
        (),
    ),
    Option(
        "managementUrl",
        "management_url",
        values.http_url,
        "`superStream`: RabbitMQ's HTTP API, as `http://host:15672`, which knows the bindings to partitions; "
        "the login is that of `amqp.url` if the URL has none",
        shown_default="partitions are found by their names `NAME-0`, `NAME-1` and so on",
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
        "streams: start with the chunk of this time; milliseconds since 1970, ISO 8601, or JSON with a time "
        "for every stream",
    ),
    Option(
        "endingOffsets",
        "ending_offsets",
        values.text,
        'streams, batch: the end, exclusive: `latest`, or JSON such as `{"events": 99}`',
        "latest",
    ),
    Option(
        "endingTimestamp",
        "ending_timestamp",
        values.text,
        "streams, batch: end before the chunk of this time; as `startingTimestamp`",
    ),
    Option(
        "timestampTolerance",
        "timestamp_tolerance",
        values.duration,
        "streams, batch: the maximum difference between the property `timestamp` of a message and the time "
        "at which the broker stored it; filters on `timestamp` then narrow what is read",
        shown_default="they do not",
    ),
    Option(
        "maxMessagesPerTrigger",
        "max_messages",
        values.count(),
        "the maximum number of messages in a micro-batch",
        10_000,
    ),
    Option(
        "minOffsetsPerTrigger",
        "min_messages",
        values.count(),
        "streams: the number of unread messages that a micro-batch waits for, at most for `maxTriggerDelay`",
        0,
        shown_default="no waiting",
    ),
    Option(
        "maxTriggerDelay",
        "max_trigger_delay",
        values.duration,
        "streams: the maximum time between micro-batches if fewer messages wait than `minOffsetsPerTrigger`",
        900.0,
        shown_default="15m",
    ),
    Option(
        "maxBytesPerTrigger",
        "max_bytes",
        values.octets,
        "queues: the maximum bytes of bodies in a micro-batch, but at least one message",
        shown_default="256m",
    ),
    Option(
        "prefetch",
        "prefetch",
        values.count(1, 65535),
        "the maximum number of unacknowledged messages",
        shown_default="twice maxMessagesPerTrigger, at most 65535",
    ),
    Option(
        "prefetchBytes",
        "prefetch_bytes",
        values.octets,
        "the bytes of further messages in memory while `spoolMaxBytes` is reached; above them the prefetch "
        "count becomes smaller",
        64 << 20,
        shown_default="64m",
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
        values.folder,
        "folder for messages that are acknowledged and not processed yet; required by `ackMode=spool`",
    ),
    Option(
        "spoolSync",
        "spool_sync",
        values.choice("fsync", "none"),
        "whether segments are synced to the disk before messages are acknowledged",
        "fsync",
    ),
    Option(
        "spoolMaxBytes",
        "spool_max_bytes",
        values.octets,
        "the size of unprocessed messages in the spool, or in memory with another `ackMode`, above which "
        "messages stay in the queue",
        256 << 20,
        shown_default="256m",
    ),
    Option(
        "spoolFlushRows",
        "spool_flush_rows",
        values.count(),
        "the maximum number of messages in a segment",
        10_000,
    ),
    Option(
        "spoolFlushInterval",
        "spool_flush_interval",
        values.duration,
        "the maximum time before a message is written to a segment",
        0.1,
        shown_default="100ms",
    ),
    Option(
        "transport",
        "transport",
        values.choice("auto", "inline", "file"),
        "how messages reach executors: inside their tasks, or as files of a shared spool",
        "auto",
        shown_default="file on a local master, otherwise inline",
    ),
    Option(
        "dedupe",
        "dedupe",
        values.choice("message_id", "none"),
        "whether redelivered messages with a known message id are dropped",
        "message_id",
    ),
    Option(
        "minPartitions",
        "min_partitions",
        values.count(),
        "the minimum number of tasks for a large batch",
        shown_default="processors of the driver",
    ),
    Option(
        "columns",
        "columns",
        values.column_names,
        "the columns to read; fewer are faster, because Spark prunes no columns of Python sources",
        shown_default="see the table of columns",
    ),
    Option(
        "includeHeaders",
        "include_headers",
        values.boolean,
        "whether to add the column `headers`",
        True,
        shown_default="true",
    ),
    Option(
        "includeProperties",
        "include_properties",
        values.boolean,
        "whether to add the column `properties`",
        False,
        shown_default="false",
    ),
    Option(
        "headersFormat",
        "headers_format",
        values.choice("map", "json"),
        "`headers` as MAP<STRING, STRING>, or as a STRING of JSON, which keeps numbers and nested values",
        "map",
    ),
    Option(
        "failOnDataLoss",
        "fail_on_data_loss",
        values.boolean,
        "whether lost messages fail the query, or are logged and skipped",
        True,
        shown_default="true",
    ),
    Option(
        "allowDeliveryLimit",
        "allow_delivery_limit",
        values.boolean,
        "queues, batch: whether to read although the delivery limit of a quorum queue may destroy messages",
        False,
        shown_default="false",
    ),
    Option(
        "idleTimeout",
        "idle_timeout",
        values.duration,
        "the time to wait for ready messages, which another consumer may get",
        2.0,
        shown_default="2s",
    ),
    Option(
        "exchange",
        "exchange",
        values.short_text,
        "the exchange; empty is the default exchange",
        uses=(WRITE,),
        shown_default="see [Destinations](#destinations)",
    ),
    Option(
        "routingKey",
        "routing_key",
        values.short_text,
        "the routing key; for the default exchange, the name of a queue",
        uses=(WRITE,),
        shown_default="see [Destinations](#destinations)",
    ),
    Option(
        "exchangeColumn",
        "exchange_column",
        values.text,
        "the column with the exchange of each row; null means the option `exchange`",
        uses=(WRITE,),
        shown_default="see [Destinations](#destinations)",
    ),
    Option(
        "routingKeyColumn",
        "routing_key_column",
        values.text,
        "the column with the routing key of each row; null means the option `routingKey`",
        uses=(WRITE,),
        shown_default="see [Destinations](#destinations)",
    ),
    Option(
        "maxInFlight",
        "max_in_flight",
        values.count(),
        "the maximum number of unconfirmed messages of a task",
        1000,
        (WRITE,),
    ),
    Option(
        "confirmTimeout",
        "confirm_timeout",
        values.timeout,
        "the timeout for a confirm",
        30.0,
        (WRITE,),
        "30s",
    ),
    Option(
        "mandatory",
        "mandatory",
        values.boolean,
        "whether the broker returns messages that it cannot route",
        True,
        (WRITE,),
        "true",
    ),
    Option(
        "onReturn",
        "on_return",
        values.choice("fail", "drop"),
        "a returned message fails the task, or is logged and dropped",
        "fail",
        (WRITE,),
    ),
    Option(
        "ignoreUnknownColumns",
        "ignore_unknown_columns",
        values.boolean,
        "whether unknown columns are ignored",
        False,
        (WRITE,),
        "false",
    ),
    Option(
        "messageId",
        "message_id",
        values.choice("auto", "column", "deterministic"),
        "the source of message ids",
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
