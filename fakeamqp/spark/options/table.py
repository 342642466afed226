"""All options of the source and of the sink. Parsing, errors and documentation are made from these classes.

An option with the meaning of one of Spark's source for Kafka has its name, or accepts it as an alias. Options
of the connection begin with `amqp.`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fakeamqp.spark.options.option import Use, option
from fakeamqp.spark.options.values import (
    boolean,
    by_stream,
    choice,
    column_names,
    duration,
    folder,
    http_url,
    names,
    pattern,
    ranged_names,
    short_text,
    size,
    switch,
    texts,
    timeout,
    urls,
    whole,
)

_NO_SHARDS = Use(shards=False)
_QUEUE = Use("queue")
_MEMORY = Use("queue", shards=False)
_SPOOL = Use(spool=True)
_SEGMENTS = Use(spool=True, shards=False)
_SIZES = Use("queue", shards=False, why="the size of a stream's messages is not known before they are read")
_STREAM = Use("stream")
_START = Use("stream", why="a queue has no offsets, because acknowledged messages are deleted")
_END = replace(_START, batch=True)
_ACKS = Use("queue", why="reading a stream removes no messages and returns none")
_LIMIT = replace(_ACKS, shards=False, batch=True)


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions:
    """The options of a connection. `urls` are tried in order."""

    urls: tuple[str, ...] = option("amqp.url", urls, unset=(), shown="required", secret=True)
    """The broker: one or more `amqp://` or `amqps://` URLs, tried in order."""
    heartbeat: int | None = option("amqp.heartbeat", whole(0, 65535), shown="the broker's")
    """Heartbeat interval in seconds, 0 for none."""
    client_name: str = option("amqp.clientName", str, default="spark")
    """The connection's name in the broker's lists."""
    connect_timeout: float = option("amqp.connectionTimeout", timeout, default="10s")
    """The timeout for opening a connection."""
    username: str | None = option("amqp.username", str)
    """User; overrides the URL."""
    password: str | None = option("amqp.password", str, secret=True)
    """Password; overrides the URL."""
    password_file: str | None = option("amqp.passwordFile", str)
    """File with the password or the OAuth 2.0 token; read for each connection."""
    password_env: str | None = option("amqp.passwordEnv", str, secret=True)  # It may be the password.
    """Name of the environment variable with the password."""
    mechanism: str = option("amqp.mechanism", choice("PLAIN", "EXTERNAL"), default="PLAIN")
    """How to log in: `PLAIN` with a password, or `EXTERNAL` with the certificate of `amqp.certFile`."""
    virtual_host: str | None = option("amqp.virtualHost", str)
    """Virtual host; overrides the URL."""
    ca_file: str | None = option("amqp.caFile", str, shown="the system's")
    """PEM file of the certificate authorities for `amqps`."""
    cert_file: str | None = option("amqp.certFile", str)
    """PEM file of the client's certificate."""
    key_file: str | None = option("amqp.keyFile", str)
    """PEM file of the client's key."""
    verify: bool = option("amqp.verify", boolean, default="true")
    """Whether to verify the certificate of an `amqps` broker."""


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options of a reader as well as a writer."""

    connection: ConnectionOptions
    reconnect_timeout: float = option("reconnectTimeout", duration, default="60s")
    """The time to retry a lost connection before the query fails,
    [but not every first one](spark-operations.md#when-the-connection-is-lost)."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions(CommonOptions):
    """The options of a reader. Times in seconds, sizes in bytes.

    One of `queues`, `streams`, `stream_pattern` and `super_streams` is not empty. The broker knows the
    streams of the last two.
    """

    queues: tuple[str, ...] = option("queue", ranged_names, unset=())
    """One or more queues to read; they must exist. `orders-{0..3}` is four."""
    streams: tuple[str, ...] = option("stream", names, unset=(), alias="subscribe", use=_NO_SHARDS)
    """One or more stream queues (`x-queue-type=stream`) to read."""
    stream_pattern: str | None = option(
        "streamPattern", pattern, alias="subscribePattern", needs="managementUrl", use=_NO_SHARDS
    )
    """The streams to read: those whose whole name matches this regular expression of Python."""
    super_streams: tuple[str, ...] = option("superStream", names, unset=(), use=_NO_SHARDS)
    """One or more super streams; their partitions are streams to read."""
    management_url: str | None = option("managementUrl", http_url, secret=True)
    """RabbitMQ's HTTP API, as `http://host:15672`, for facts that AMQP lacks: the names of streams for
    `streamPattern`; types and delivery limits of queues; the bindings of a `superStream`, whose partitions
    are otherwise the streams `NAME-0`, `NAME-1` and so on. The login is that of `amqp.url` if the URL has
    none."""
    shards: int | None = option("shards", whole(), use=replace(_QUEUE, spool=True))
    """Streaming queries: the number of queues that tasks of executors read, one queue each."""
    shard_exchange: str | None = option("shardExchange", short_text, needs="shards")
    """The consistent-hash exchange to bind the queues to; missing queues are declared."""
    consumer_priority: int | None = option("consumerPriority", whole(-(2**31), 2**31 - 1), use=_QUEUE)
    """The consumer's argument `x-priority`: the broker prefers consumers with a higher one."""
    stream_filter: tuple[str, ...] = option("streamFilter", texts, unset=(), use=_STREAM)
    """The consumer's argument `x-stream-filter`, one or more values: the broker leaves out chunks in which no
    message has one of them as `x-stream-filter-value`. Spark gets the other messages of a chunk, too."""
    stream_match_unfiltered: bool = option(
        "streamMatchUnfiltered", boolean, default="false", needs="streamFilter", use=_STREAM
    )
    """Whether the filter matches messages without a value, too: `x-stream-match-unfiltered`."""
    starting_offsets: str = option("startingOffsets", by_stream, default="earliest", use=_START)
    """The start of a batch read or of a new query: `earliest`, `latest`, or JSON such as `{"events": 17}`."""
    starting_timestamp: str | None = option(
        "startingTimestamp", by_stream, alias="startingOffsetsByTimestamp", use=_START
    )
    """The start by time, with the chunk of this time: milliseconds since 1970, ISO 8601, or JSON with a time
    for every stream."""
    starting_offsets_by_timestamp_strategy: str = option(
        "startingOffsetsByTimestampStrategy", choice("error", "latest"), default="error", use=_START
    )
    """The effect of a stream without a message as new as `startingTimestamp`: an `error`, or reading from its
    end (`latest`)."""
    ending_offsets: str = option("endingOffsets", by_stream, default="latest", use=_END)
    """The end, exclusive: `latest`, or JSON such as `{"events": 99}`."""
    ending_timestamp: str | None = option(
        "endingTimestamp", by_stream, alias="endingOffsetsByTimestamp", use=_END
    )
    """The end by time, before the chunk of this time; as `startingTimestamp`."""
    filter_pushdown: bool = option(
        "filterPushdown", boolean, default="false", use=replace(_STREAM, batch=True)
    )
    """Whether filters on `offset`, `queue` and `timestamp` narrow the ranges to read. Spark's setting
    `spark.sql.python.filterPushdown.enabled` has to be on, too."""
    timestamp_tolerance: float | None = option(
        "timestampTolerance", duration, use=replace(_STREAM, batch=True)
    )
    """The maximum difference between the property `timestamp` of a message and the time at which the broker
    stored it. Without it, filters on `timestamp` narrow nothing."""
    max_messages: int = option(
        "maxMessagesPerTrigger", whole(), default="10000", alias="maxOffsetsPerTrigger"
    )
    """The maximum number of messages in a micro-batch."""
    min_messages: int = option("minOffsetsPerTrigger", whole(), unset=0, shown="no waiting", use=_STREAM)
    """The number of unread messages that a micro-batch waits for, at most for `maxTriggerDelay`."""
    max_trigger_delay: float = option("maxTriggerDelay", duration, default="15m", use=_STREAM)
    """The maximum time between micro-batches if fewer messages wait than `minOffsetsPerTrigger`."""
    max_bytes: int | None = option("maxBytesPerTrigger", size, shown="`256m`", use=_SIZES)
    """The maximum bytes of bodies in a micro-batch, but at least one message."""
    prefetch: int = option(
        "prefetch",
        whole(1, 65535),
        unset=0,
        shown="twice `maxMessagesPerTrigger`, at most 65535",
        use=_NO_SHARDS,
    )
    """The maximum number of unacknowledged messages."""
    prefetch_bytes: int = option("prefetchBytes", size, default="64m", use=_MEMORY)
    """The bytes of further messages in memory while `spoolMaxBytes` is reached; above them the prefetch count
    becomes smaller."""
    ack_mode: str = option("ackMode", choice("spool", "commit", "none"), default="spool", use=_ACKS)
    """When messages are acknowledged: once they are on the disk (`spool`), once Spark has processed their
    batch (`commit`), or before Spark gets them (`none`)."""
    spool_folder: str | None = option("spoolDir", folder, use=_SPOOL)
    """Folder for messages that are acknowledged and not processed yet; streaming queries require it."""
    spool_sync: bool = option("spoolSync", switch("fsync", "none"), default="fsync", use=_SPOOL)
    """Whether segments are synced to the disk before messages are acknowledged: `fsync` or `none`."""
    spool_max_bytes: int = option("spoolMaxBytes", size, default="256m", use=_MEMORY)
    """The size of unprocessed messages in the spool, or in memory with another `ackMode`, above which
    messages stay in the queue."""
    spool_flush_rows: int = option("spoolFlushRows", whole(), default="10000", use=_SEGMENTS)
    """The maximum number of messages in a segment."""
    spool_flush_interval: float = option("spoolFlushInterval", duration, default="100ms", use=_SEGMENTS)
    """The maximum time before a message is written to a segment."""
    transport: str = option(
        "transport",
        choice("inline", "file"),
        unset="",
        shown="`inline`; `file` in a local session of `local_session` or the fixtures",
        use=_SEGMENTS,
    )
    """How messages reach executors: in their tasks (`inline`), or as a `file` of the `spoolDir`, which they
    see under the same path."""
    dedupe: str = option("dedupe", choice("content", "message_id", "none"), default="content", use=_SPOOL)
    """Which redelivered messages are dropped because the spool has them: those with the same message id, body
    and properties (`content`), those with the same message id (`message_id`), or `none`."""
    min_partitions: int = option(
        "minPartitions", whole(), unset=0, shown="processors of the driver", use=_NO_SHARDS
    )
    """The minimum number of tasks for a large batch."""
    columns: tuple[str, ...] | None = option("columns", column_names, shown="all but `properties`")
    """The columns to read; fewer are faster, because Spark prunes no columns of Python sources."""
    include_headers: bool = option("includeHeaders", boolean, default="true")
    """Whether to add the column `headers`."""
    include_properties: bool = option("includeProperties", boolean, default="false")
    """Whether to add the column `properties`."""
    headers_format: str = option("headersFormat", choice("map", "json"), default="map")
    """`headers` as MAP<STRING, STRING> (`map`), or as a STRING of JSON (`json`), which keeps numbers and
    nested values."""
    fail_on_data_loss: bool = option("failOnDataLoss", boolean, default="true")
    """Whether lost messages fail the query, or are logged and skipped."""
    allow_delivery_limit: bool = option("allowDeliveryLimit", boolean, default="false", use=_LIMIT)
    """Whether to read a quorum queue of RabbitMQ before 4.3, where every read counts for the delivery limit
    of the queue, which may drop messages."""
    idle_timeout: float = option("idleTimeout", duration, default="2s")
    """The time to wait for ready messages, which another consumer may get."""


@dataclass(frozen=True, kw_only=True)
class WriteOptions(CommonOptions):
    """The options of a writer. Times in seconds, sizes in bytes."""

    exchange: str | None = option("exchange", short_text, shown="[of the row](spark-sink.md#destinations)")
    """The exchange; empty is the default exchange."""
    routing_key: str | None = option(
        "routingKey", short_text, shown="[of the row](spark-sink.md#destinations)"
    )
    """The routing key; for the default exchange, the name of a queue."""
    exchange_column: str | None = option("exchangeColumn", str)
    """The column with the exchange of each row; null means the option `exchange`."""
    routing_key_column: str | None = option("routingKeyColumn", str)
    """The column with the routing key of each row; null means the option `routingKey`."""
    max_in_flight: int = option("maxInFlight", whole(), default="1000")
    """The maximum number of unconfirmed messages of a task."""
    confirm_timeout: float = option("confirmTimeout", timeout, default="30s")
    """The timeout for a confirm."""
    mandatory: bool = option("mandatory", boolean, default="true")
    """Whether the broker returns messages that it cannot route."""
    on_return: str = option("onReturn", choice("fail", "drop"), default="fail")
    """A returned message fails the task (`fail`), or is logged and dropped (`drop`)."""
    ignore_unknown_columns: bool = option("ignoreUnknownColumns", boolean, default="false")
    """Whether unknown columns are ignored."""
    message_id: str = option("messageId", choice("auto", "column", "deterministic"), default="auto")
    """[The source of message ids](spark-sink.md#where-message-ids-come-from): `auto`, `column` or
    `deterministic`."""
    persistent: bool = option("persistent", boolean, default="true")
    """Delivery mode of rows without a column `delivery_mode`."""
