"""The columns of the view `trace`, and where a recording has them.

One row is one event. JSON Lines keep what a method says under `fields` and what an event of the model says
under `facts`; Parquet files of the recorder have both as JSON in a column `fields`. Either way the schemas
here name what is read of it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COLUMNS", "FACTS", "FIELDS", "LINES", "Column"]


class Column(NamedTuple):
    """A column of the view, its type in Spark, and what it says."""

    type: str
    says: str


COLUMNS: dict[str, Column] = {
    "run": Column("STRING", "the file of the recording; numbers, times and names hold within a run"),
    "number": Column("BIGINT", "the place of the event in its run, from 0"),
    "time": Column("DOUBLE", "seconds on the broker's clock since the trace began"),
    "connection": Column("STRING", "the connection's name"),
    "alias": Column("STRING", "its short name, which no other connection of the run has; '' for none"),
    "kind": Column("STRING", "'frame', 'connection' or 'model'"),
    "name": Column("STRING", "the method, or what happened"),
    "direction": Column("STRING", "of a frame: 'received' by the broker, or 'sent' by it"),
    "channel": Column("INT", "its number"),
    "session": Column("INT", "which opening of that channel it is, from 1; 0 where none is in the trace"),
    "size": Column("BIGINT", "of a frame: bytes of payload"),
    "virtual_host": Column("STRING", "that of the queue, the exchange or the connection"),
    "exchange": Column("STRING", "of a method or a message"),
    "routing_key": Column("STRING", "of a method or a message"),
    "queue": Column("STRING", "its name"),
    "consumer_tag": Column("STRING", "of a consumer; null for a get"),
    "delivery_tag": Column("BIGINT", "of a delivery, a settlement or a confirm"),
    "multiple": Column("BOOLEAN", "of basic.ack and basic.nack"),
    "requeue": Column("BOOLEAN", "of basic.nack, basic.reject and basic.recover"),
    "redelivered": Column("BOOLEAN", "of a delivery"),
    "no_ack": Column("BOOLEAN", "of basic.get, basic.consume and 'consumer added'"),
    "no_wait": Column("BOOLEAN", "of a method"),
    "prefetch": Column("INT", "messages in advance: of basic.qos, or a consumer's own; 0 is no limit"),
    "shared": Column(
        "BOOLEAN", "`global` of basic.qos; of a consumer: whether a limit of the channel binds it"
    ),
    "message": Column("BIGINT", "of the model: the number of the message, the same wherever it goes"),
    "message_id": Column("STRING", "the property"),
    "priority": Column("INT", "the property"),
    "body_size": Column("BIGINT", "bytes of the whole body"),
    "reply_code": Column("INT", "of a close or a return"),
    "text": Column("STRING", "the event in one line"),
}
"""By name, in their order."""

FIELDS = """consumer_tag STRING, delivery_tag BIGINT, multiple BOOLEAN, requeue BOOLEAN, redelivered BOOLEAN,
    no_ack BOOLEAN, no_wait BOOLEAN, `global` BOOLEAN, prefetch_count INT, queue STRING, exchange STRING,
    routing_key STRING, reply_code INT, virtual_host STRING"""
"""What is read of a method's fields."""

FACTS = """queue STRING, consumer STRING, channel INT, delivery_tag BIGINT, redelivered BOOLEAN,
    exchange STRING, routing_key STRING, code INT, virtual_host STRING, no_ack BOOLEAN, prefetch INT,
    shares_prefetch BOOLEAN,
    message STRUCT<message: STRUCT<number: BIGINT, exchange: STRING, routing_key: STRING, size: BIGINT,
    properties: STRUCT<message_id: STRING, priority: INT>>>"""
"""What is read of an event's facts."""

LINES = f"""run STRING, number BIGINT, time DOUBLE, connection STRING, alias STRING, kind STRING, name STRING,
    direction STRING, channel INT, size BIGINT, body_size BIGINT,
    properties STRUCT<message_id: STRING, priority: INT>, text STRING,
    fields STRUCT<{FIELDS}>, facts STRUCT<{FACTS}>,
    format STRING, version INT, damage STRING"""
"""What is read of a line. `damage` is a line that is none, `format` is only in the first."""
