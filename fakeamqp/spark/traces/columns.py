"""The columns of the view `trace`, and their places in a recording.

One row is one event. JSON Lines have the fields of a method under `fields` and the facts of a model event
under `facts`; Parquet files of the recorder have both as JSON in a column `fields`. The schemas here name the
parts that are read.
"""

from __future__ import annotations

from typing import NamedTuple


class TraceColumn(NamedTuple):
    """A column of the view: its type in Spark and its meaning."""

    type: str
    meaning: str


COLUMNS: dict[str, TraceColumn] = {
    "run": TraceColumn("STRING", "the file of the recording; numbers, times and names hold within a run"),
    "number": TraceColumn("BIGINT", "the position of the event in its run, from 0"),
    "time": TraceColumn("DOUBLE", "seconds on the broker's clock since the trace began"),
    "connection": TraceColumn("STRING", "the connection's name"),
    "alias": TraceColumn("STRING", "its short name, unique in the run; '' without a connection"),
    "kind": TraceColumn("STRING", "'frame', 'connection' or 'model'"),
    "name": TraceColumn("STRING", "the name of the method or event"),
    "direction": TraceColumn("STRING", "of a frame: 'received' by the broker, or 'sent' by it"),
    "channel": TraceColumn("INT", "its number"),
    "session": TraceColumn(
        "INT", "the count of openings of the channel, from 1; 0 if the opening is not in the trace"
    ),
    "size": TraceColumn("BIGINT", "of a frame: bytes of payload"),
    "virtual_host": TraceColumn("STRING", "that of the queue, the exchange or the connection"),
    "exchange": TraceColumn("STRING", "of a method or a message"),
    "routing_key": TraceColumn("STRING", "of a method or a message"),
    "queue": TraceColumn("STRING", "its name"),
    "consumer_tag": TraceColumn("STRING", "of a consumer; null for a get"),
    "delivery_tag": TraceColumn("BIGINT", "of a delivery, a settlement or a confirm"),
    "multiple": TraceColumn("BOOLEAN", "of basic.ack and basic.nack"),
    "requeue": TraceColumn("BOOLEAN", "of basic.nack, basic.reject and basic.recover"),
    "redelivered": TraceColumn("BOOLEAN", "of a delivery"),
    "no_ack": TraceColumn("BOOLEAN", "of basic.get, basic.consume and 'consumer added'"),
    "no_wait": TraceColumn("BOOLEAN", "of a method"),
    "prefetch": TraceColumn("INT", "the prefetch count of basic.qos, or of a consumer; 0 is no limit"),
    "shared": TraceColumn(
        "BOOLEAN", "`global` of basic.qos; of a consumer: whether a limit of the channel applies to it"
    ),
    "message": TraceColumn("BIGINT", "of a model event: the number of the message, the same in all queues"),
    "message_id": TraceColumn("STRING", "the property"),
    "priority": TraceColumn("INT", "the property"),
    "body_size": TraceColumn("BIGINT", "bytes of the whole body"),
    "reply_code": TraceColumn("INT", "of a close or a return"),
    "text": TraceColumn("STRING", "the event in one line"),
}
"""By name, in their order."""

FIELDS = """consumer_tag STRING, delivery_tag BIGINT, multiple BOOLEAN, requeue BOOLEAN, redelivered BOOLEAN,
    no_ack BOOLEAN, no_wait BOOLEAN, `global` BOOLEAN, prefetch_count INT, queue STRING, exchange STRING,
    routing_key STRING, reply_code INT, virtual_host STRING"""
"""The schema of a method's fields, as far as they are read."""

FACTS = """queue STRING, consumer STRING, channel INT, delivery_tag BIGINT, redelivered BOOLEAN,
    exchange STRING, routing_key STRING, code INT, virtual_host STRING, no_ack BOOLEAN, prefetch INT,
    shares_prefetch BOOLEAN,
    message STRUCT<message: STRUCT<number: BIGINT, exchange: STRING, routing_key: STRING, size: BIGINT,
    properties: STRUCT<message_id: STRING, priority: INT>>>"""
"""The schema of an event's facts, as far as they are read."""

LINES = f"""run STRING, number BIGINT, time DOUBLE, connection STRING, alias STRING, kind STRING, name STRING,
    direction STRING, channel INT, size BIGINT, body_size BIGINT,
    properties STRUCT<message_id: STRING, priority: INT>, text STRING,
    fields STRUCT<{FIELDS}>, facts STRUCT<{FACTS}>,
    format STRING, version INT, damage STRING"""
"""The schema of a line. `damage` is the text of a damaged line; only the first line has `format`."""
