"""Names that other software has for options, and the end of an error about an unknown one.

Names of Kafka's source that are accepted are aliases in `table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fakeamqp.spark.options.option import Option

_NO_GROUPS = "there are no consumer groups: Spark's checkpoint has the position, and every query reads all"

KAFKA: dict[str, tuple[tuple[str, ...], str]] = {
    "assign": (("stream",), "a stream has no partitions, and those of a super stream are streams"),
    "kafka.bootstrap.servers": (("amqp.url",), "one or more URLs such as `amqp://user:password@host:5672/`"),
    "kafkaConsumer.pollTimeoutMs": (
        ("amqp.connectionTimeout",),
        "a task whose stream gives no message for this time connects again",
    ),
    "fetchOffset.numRetries": (("reconnectTimeout",), "it limits the time of all tries, not their number"),
    "fetchOffset.retryIntervalMs": (("reconnectTimeout",), "the pauses between tries cannot be set"),
    "maxRecordsPerPartition": (("minPartitions",), "the number of tasks can be set, not their size"),
    "groupIdPrefix": ((), _NO_GROUPS),
    "kafka.group.id": ((), _NO_GROUPS),
    "topic": (("exchange", "routingKey"), "a routing key alone is the name of a queue or stream"),
    "kafka.partitioner.class": (
        ("exchange",),
        "an exchange of the type `x-consistent-hash` divides messages",
    ),
    "kafka.*": ((), "it is a setting of Kafka's client; those of the connection here begin with `amqp.`"),
}
"""What to set in place of options of Spark's connector for Kafka, which may be nothing, and why."""

_WORDS = {
    "amqp.url": "address addresses broker brokers brokerurl host hostname hosts port server servers tls uri",
    "amqp.username": "login user",
    "amqp.password": "pass passwd pwd",
    "amqp.virtualHost": "vhost",
    "amqp.connectionTimeout": "timeout",
    "amqp.caFile": "cacertfile truststore",
    "amqp.certFile": "keystore",
    "queue": "exchange exchangename queuename queuenames queues routingkey",
    "stream": "streams topic topics",
    "managementUrl": "management managementport",
    "maxMessagesPerTrigger": "batchsize maxrateperpartition",
    "ackMode": "autoack noack",
    "prefetch": "prefetchcount qos",
    "exchange": "exchangename stream superstream",
    "routingKey": "queue queuename stream topics",
    "persistent": "deliverymode",
}
"""The words of RabbitMQ's clients and of other connectors, by our keys: in lower case, only letters."""


def hint(given: str, options: Iterable[Option]) -> str:
    """The end of an error about a name that none of the options has: what to set instead.

    A name is near to another one if they differ in few letters, other than those of `min` and `max`.
    """
    import difflib  # Imported only for errors.

    word = _letters(given)
    known = {_letters(name): name for option in options for name in option.names}
    same = [name for letters, name in known.items() if letters in (word, f"amqp{word}")]
    if meant := same or [name for name in known.values() if word in _WORDS.get(name, "").split()]:
        return f"; set {' or '.join(map(repr, meant))}"
    kafka = {name.lower(): entry for name, entry in KAFKA.items()}
    if entry := kafka.get(given.lower()) or (kafka["kafka.*"] if word.startswith("kafka") else None):
        instead = " or ".join(repr(name) for name in entry[0] if name in known.values())
        return (f"; set {instead}" if instead else "") + f": {entry[1]}".replace("`", "'")
    alike = [letters for letters in known if {letters[:3], word[:3]} != {"min", "max"}]
    near = difflib.get_close_matches(word, alike, n=1, cutoff=0.8)
    longer = [letters for letters in known if len(word) > 3 and letters.startswith(word)]
    if near or len(longer) == 1:
        return f"; did you mean {known[(near or longer)[0]]!r}?"
    return ""


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())
