"""The delivery limit of quorum queues, where a read counts against it.

Before RabbitMQ 4.3 a quorum queue counts every return of a message, however it is returned, and drops or
dead-letters the message above its delivery limit (measured on 4.0.5: `basic.nack`, `basic.reject`,
`basic.recover`, and the end of the channel or connection all count). A batch read returns all messages. From
4.3 on `basic.nack` is not counted.

A passive declaration tells neither the type of a queue nor its arguments. A declaration with other
arguments does, in the text of its refusal. A limit that a policy sets stays unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.connection import Link, quiet
from fakeamqp.spark.errors import ConnectionLost, PublishError
from fakeamqp.spark.property_lists import without_header
from fakeamqp.spark.sink.frames import Frames

if TYPE_CHECKING:
    from pika.channel import Channel

DEFAULT_LIMIT = 20
_SINCE_DEFAULT, _SINCE_UNCOUNTED = (4, 0), (4, 3)

_LIMIT, _COUNT = "x-delivery-limit", b"x-delivery-count"
_LONGEST_NUMBER = 8
# A limit that no queue has, so that a declaration with it always differs.
_NO_LIMIT_OF_ANY = 2**31 - 19
_REFUSAL = re.compile(
    r"inequivalent arg '(?P<name>[^']+)'.* but current is (?:the value )?(?:none|'(?P<value>[^']*)')"
)


def limit_of_reads(link: Link, queue: str) -> int | None:
    """How often the messages of a queue may be read and returned; None if reads do not count.

    The queue exists. The limit of the arguments, or the default one: a policy may set a lower one. A user
    who may not configure the queue gets the default one too.
    """
    if not (0, 0) < link.broker_version < _SINCE_UNCOUNTED:
        return None
    arguments: dict[str, Any] = {"x-queue-type": "quorum", _LIMIT: _NO_LIMIT_OF_ANY}
    has_default = link.broker_version >= _SINCE_DEFAULT
    default = DEFAULT_LIMIT if has_default else None
    while (refusal := _refusal(link, queue, arguments)) is not None:
        found = _REFUSAL.search(refusal)
        if found is None:
            return default if "ACCESS_REFUSED" in refusal else None
        name, value = found["name"], found["value"]
        if name == _LIMIT:
            if value is None:
                return default
            return int(value) if int(value) >= 0 else None if has_default else 0
        if name in arguments or not name.startswith("x-"):
            return None  # No quorum queue.
        # The broker names the first difference only, so the next declaration has the queue's value.
        arguments[name] = _argument(value)
    return None


def reserve(limit: int) -> int:
    """How many of the counted returns are left for reads that are refused: each looks at one message."""
    return limit // 4


def delivery_count(properties: bytes) -> int:
    """How often a quorum queue has counted the return of a message, by its encoded properties."""
    count, _ = without_header(properties, _COUNT)
    return int.from_bytes(count, "big") if count is not None and len(count) <= _LONGEST_NUMBER else 0


def save(link: Link, queue: str, tag: int, properties: bytes, body: bytes, channel: Channel) -> bool:
    """Publish a message again that the queue would drop when it is returned, and acknowledge it.

    It is at the end of the queue then, with a count of 0.

    Returns:
        False if the broker did not confirm it; it is not acknowledged then.
    """
    outcome: list[bool] = []
    _, properties = without_header(properties, _COUNT)
    try:
        out = link.channel()
        link.call(out.confirm_delivery, lambda frame: outcome.append(frame.method.NAME == "Basic.Ack"))
        out.add_on_return_callback(lambda *_: outcome.append(False))
        frames = Frames(out.channel_number, link.frame_max, mandatory=True)
        link.send(b"".join(frames.of([("", queue, properties, body)], 1)))
        link.wait_for(lambda: bool(outcome), 10.0, "confirm a message")
        if outcome[0]:
            channel.basic_ack(tag)
            link.call(channel.queue_declare, queue, passive=True)
        return outcome[0]
    except (ConnectionLost, PublishError):
        return False


def _argument(text: str | None) -> Any:
    """The value of an argument of a queue, by the text of a refusal."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text and re.fullmatch(r"-?[0-9]+", text) else text


def _refusal(link: Link, queue: str, arguments: dict[str, Any]) -> str | None:
    """The broker's answer to a declaration with these arguments; None if it accepts it."""
    channel = link.channel()
    try:
        with quiet():
            link.call(channel.queue_declare, queue, durable=True, arguments=arguments)
    except ConnectionLost as error:
        if channel.connection.is_open:
            link.lost = None  # Only the channel of this question was closed.
        return str(error)
    # The queue was deleted meanwhile, and this has declared it.
    link.call(channel.queue_delete, queue, if_unused=True, if_empty=True)
    return None
