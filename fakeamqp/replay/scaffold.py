"""Writes a pytest file from a recording: its topology, the messages, and what the queues hold then.

The counts of the queues are those of a broker in this process that gets the same topology and the same
messages, so the file passes as it is. A person edits it to what the test is about.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple

from fakeamqp.broker import Broker
from fakeamqp.errors import FakeAMQPError, printable
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.replay.peer import RecordedReply, ReplyAssembler
from fakeamqp.replay.target import PROTOCOL, ReplayError
from fakeamqp.trace import FrameEvent, Trace

_MADE_UP = "amq.gen-"
_REPLY_TO = "amq.rabbitmq.reply-to"
_MOST_PUBLISHES = 30
"""Messages of one connection that are written."""
_LONG_BODY = 200
"""Bytes of a body above which only the beginning is written."""
_WIDTH = 88
_OF_TIME = ("x-message-ttl", "x-expires")
_NOT_KEPT = ("user_id", "cluster_id")
"""The broker would refuse the user of another connection."""
_LONGEST_NAME = 36
"""Characters of a test's name behind its beginning: its line fits."""
_LARGEST_DECIMAL = 2**31


def scaffold(trace: Trace, source: str = "a recording") -> str:
    """The text of a pytest file that declares, publishes and expects what a recording has.

    It has a test for each connection that published, uses pika and the fixtures of fakeamqp, and is formatted
    as ruff formats it. `source` is the name of the recording.

    Raises:
        ReplayError: no client of 0-9-1 published anything.
    """
    conversation = _Conversation(trace)
    tests = [_test(conversation, *each) for each in conversation.publishes.items() if each[1]]
    if not tests:
        raise ReplayError(f"no test can be written: no client of AMQP {PROTOCOL} published in {source}")
    topology = [f"    {line}" for call in _declarations(conversation) for line in _lines(call, 4)]
    body = "\n\n\n".join(_distinct(tests))
    timed = any(
        name in (queue.arguments or {}) for queue in conversation.queues.values() for name in _OF_TIME
    ) or any("expiration" in each.properties for some in conversation.publishes.values() for each in some)
    parts = [
        f'"""What clients did in {_plain(source)}, written by `fakeamqp scaffold` to be edited."""',
        "",
        *(["from decimal import Decimal", ""] if "Decimal(" in "\n".join((*topology, body)) else []),
        *(["import pika"] if "pika." in body else []),
        "import pytest",
        "",
        # Nothing expires meanwhile.
        *(['pytestmark = pytest.mark.amqp(clock="virtual")', ""] if timed else []),
        "",
        "@pytest.fixture",
        "def channel(pika_channel):",
        '    """A channel, once the recorded exchanges, queues and bindings are there."""',
        *topology,
        "    return pika_channel",
        "",
        "",
        body,
        "",
    ]
    return "\n".join(parts)


# --- what was said ----------------------------------------------------------------------------------------


class _Publish(NamedTuple):
    exchange: str
    routing_key: str
    body: bytes
    size: int
    mandatory: bool
    properties: dict[str, Any]


class _Conversation:
    """The topology that clients declared, in order, and what each connection published."""

    def __init__(self, trace: Trace) -> None:
        self.exchanges: dict[str, m.ExchangeDeclare | None] = {}
        """None stands for one that is used and not declared."""
        self.queues: dict[str, m.QueueDeclare] = {}
        self.bindings: dict[tuple[Any, ...], m.QueueBind | m.ExchangeBind] = {}
        self.publishes: dict[str, list[_Publish]] = defaultdict(list)
        """By the short name of the connection."""
        self.more: Counter[str] = Counter()
        """Messages of a connection that are not among these."""
        self.found: dict[str, dict[tuple[str, str], None]] = {}
        """Queues that were not declared, and the exchanges and routing keys of what came from there."""
        self._names: dict[str, str] = {}
        """Names instead of those that the broker made up."""
        self._asked: dict[tuple[str, int], deque[Any]] = defaultdict(deque)
        self._latest: dict[tuple[str, int], str] = {}
        """The queue that a channel declared last: an empty name stands for it."""
        self._consumers: dict[tuple[tuple[str, int], str], str] = {}
        said: dict[tuple[str, str], ReplyAssembler] = defaultdict(ReplyAssembler)
        for event in trace.events:
            if isinstance(event, FrameEvent) and event.protocol == PROTOCOL:
                reader = said[event.alias, event.direction]
                for each in reader.feed(event.type, event.channel, event.payload):
                    if event.direction == "received":
                        self._ask(event.alias, each)
                    else:
                        self._answer(event.alias, each)

    def _name(self, name: str) -> str:
        if name.startswith(_MADE_UP):
            return self._names.setdefault(name, f"generated-{len(self._names) + 1}")
        return name

    def _ask(self, alias: str, said: RecordedReply) -> None:
        method, place = said.method, (alias, said.channel)
        if isinstance(method, m.BasicPublish):
            self._publish(alias, method, said)
        elif isinstance(method, m.ChannelOpen):
            self._asked.pop(place, None)
        elif method is not None and getattr(method, "no_wait", False):
            self._done(place, method, None)
        elif method is not None and method.RESPONSES:
            self._asked[place].append(method)

    def _answer(self, alias: str, said: RecordedReply) -> None:
        method, place = said.method, (alias, said.channel)
        if method is None:
            return
        for asked in self._asked[place]:
            if method.NAME in asked.RESPONSES:
                self._asked[place].remove(asked)
                self._done(place, asked, method)
                break
        if isinstance(method, m.BasicDeliver):
            queue = self._consumers.get((place, method.consumer_tag), "")
            if queue in self.found:
                self.found[queue][method.exchange, method.routing_key] = None

    def _done(self, place: tuple[str, int], asked: Any, answer: Any) -> None:
        """The broker has accepted a request."""
        if isinstance(asked, m.ExchangeDeclare):
            if not asked.exchange.startswith("amq.") and not asked.passive:
                self.exchanges.setdefault(asked.exchange, asked)
        elif isinstance(asked, m.QueueDeclare):
            queue = self._latest[place] = self._name(asked.queue if answer is None else answer.queue)
            if not asked.passive:
                self.queues.setdefault(queue, asked)
        elif isinstance(asked, m.QueueBind):
            queue = self._queue(place, asked.queue)
            key = (asked.exchange, queue, asked.routing_key, repr(asked.arguments))
            asked.queue, asked.routing_key = queue, self._name(asked.routing_key)
            self._use(asked.exchange)
            self.bindings.setdefault(key, asked)
        elif isinstance(asked, m.ExchangeBind):
            self._use(asked.source)
            self._use(asked.destination)
            self.bindings.setdefault((asked.source, 0, asked.destination, asked.routing_key), asked)
        elif isinstance(asked, m.BasicConsume):
            queue = self._queue(place, asked.queue)
            tag = asked.consumer_tag if answer is None else answer.consumer_tag
            self._consumers[place, tag] = queue
            self._find(queue)
        elif isinstance(asked, m.BasicGet):
            queue = self._queue(place, asked.queue)
            self._find(queue)
            if isinstance(answer, m.BasicGetOk) and queue in self.found:
                self.found[queue][answer.exchange, answer.routing_key] = None

    def _queue(self, place: tuple[str, int], name: str) -> str:
        return self._name(name) or self._latest.get(place, "")

    def _find(self, queue: str) -> None:
        if queue not in self.queues and not queue.startswith(_REPLY_TO):
            self.found.setdefault(queue, {})

    def _use(self, exchange: str) -> None:
        if exchange and not exchange.startswith("amq."):
            self.exchanges.setdefault(exchange, None)

    def _publish(self, alias: str, method: m.BasicPublish, said: RecordedReply) -> None:
        properties = {
            name: self._name(value) if isinstance(value, str) else _for_pika(value)
            for name, value in ((each, getattr(said.properties, each, None)) for each, _ in _layout(said))
            if value is not None and name not in _NOT_KEPT
        }
        if str(properties.get("reply_to", "")).startswith(_REPLY_TO):
            del properties["reply_to"]
        # An answer over direct reply-to needs the client that waits for it.
        written = self.publishes[alias]
        if method.routing_key.startswith(_REPLY_TO) or len(written) == _MOST_PUBLISHES:
            self.more[alias] += 1
            return
        self._use(method.exchange)
        written.append(
            _Publish(
                method.exchange,
                self._name(method.routing_key),
                b"".join(said.body),
                said.body_size,
                method.mandatory,
                properties,
            )
        )


def _layout(said: RecordedReply) -> Iterable[Any]:
    return () if said.properties is None else said.properties.LAYOUT


# --- the file -----------------------------------------------------------------------------------------------


class _Call(NamedTuple):
    """A call to write: its function, and its arguments as source code or as what is written as such."""

    function: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    comment: str = ""


def _declarations(conversation: _Conversation) -> Iterator[_Call]:
    for name, exchange in conversation.exchanges.items():
        if exchange is None:
            guess = "It was there already: its type is a guess."
            yield _Call("pika_channel.exchange_declare", (name, "topic"), {}, guess)
            continue
        options = _options(exchange, "durable", "auto_delete", "internal", "arguments")
        yield _Call("pika_channel.exchange_declare", (name, exchange.type), options)
    for name, queue in conversation.queues.items():
        options = _options(queue, "durable", "exclusive", "auto_delete", "arguments")
        yield _Call("pika_channel.queue_declare", (name,), options)
    for name in _found(conversation):
        yield _Call("pika_channel.queue_declare", (name,), {}, "It was there already.")
    for binding in conversation.bindings.values():
        options = _options(binding, "arguments")
        if isinstance(binding, m.QueueBind):
            where: tuple[str, ...] = (binding.queue, binding.exchange, binding.routing_key)
            yield _Call("pika_channel.queue_bind", where, options)
        else:
            where = (binding.destination, binding.source, binding.routing_key)
            yield _Call("pika_channel.exchange_bind", where, options)
    for name in _found(conversation):
        for exchange_name, key in conversation.found[name]:
            if exchange_name:
                seen = "Messages with this routing key came from there."
                yield _Call("pika_channel.queue_bind", (name, exchange_name, key), {}, seen)


def _found(conversation: _Conversation) -> list[str]:
    return [name for name in conversation.found if name not in conversation.queues]


def _options(method: Any, *names: str) -> dict[str, Any]:
    return {name: _for_pika(value) for name in names if (value := getattr(method, name, None))}


def _for_pika(value: Any) -> Any:
    """The value, with decimals or whole numbers for floats, which pika cannot send."""
    if isinstance(value, Mapping):
        return {name: _for_pika(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_for_pika(item) for item in value]
    if isinstance(value, float) and isfinite(value):
        exact = Decimal(str(value)).normalize()
        digits = abs(int(exact.scaleb(-min(0, int(exact.as_tuple().exponent)))))
        return exact if digits < _LARGEST_DECIMAL else round(value)
    return 0 if isinstance(value, float) else value


def _test(conversation: _Conversation, alias: str, publishes: list[_Publish]) -> tuple[str, list[str]]:
    """The name of a test and the lines of its body."""
    ready, published = _outcome(conversation, publishes)
    names = [_identifier(queue) for queue in ready]
    while len(name := "_and_".join(names)) > _LONGEST_NAME and len(names) > 1:
        names.pop()
    lines = [f'"""What connection {alias} of the recording published."""']
    for each in published:
        options: dict[str, Any] = {"mandatory": True} if each.mandatory else {}
        arguments: tuple[Any, ...] = (each.exchange, each.routing_key, _body(each))
        if each.properties:
            arguments += (_Call("pika.BasicProperties", (), each.properties),)
        lines += _lines(_Call("channel.basic_publish", arguments, options), 4)
    if more := conversation.more[alias] + len(publishes) - len(published):
        lines.append(f"# {more} left out: refused, or answers to amq.rabbitmq.reply-to, or too many.")
    lines.append("")
    for (exchange, key), count in Counter((each.exchange, each.routing_key) for each in published).items():
        expected = {"exchange": exchange, "routing_key": key, "count": count}
        lines += _lines(_Call("amqp_broker.expect_published", (), expected), 4)
    for queue, count in ready.items():
        lines.append(f"amqp_broker.queue({_literal(queue)}).wait_for(ready={count})")
    return name[:_LONGEST_NAME].rstrip("_") or "no_queue", lines


def _distinct(tests: list[tuple[str, list[str]]]) -> Iterator[str]:
    """The tests, each with a name of its own."""
    taken: Counter[str] = Counter()
    for name, lines in tests:
        taken[name] += 1
        number = f"_{taken[name]}" if taken[name] > 1 else ""
        body = "\n".join(f"    {line}" if line else "" for line in lines)
        yield f"def test_messages_reach_{name}{number}(amqp_broker, channel):\n{body}"


def _outcome(conversation: _Conversation, publishes: list[_Publish]) -> tuple[dict[str, int], list[_Publish]]:
    """How many messages are in each queue in the end, and those messages that the broker accepts."""
    exchanges = [
        {
            "name": name,
            "vhost": "/",
            "type": "topic" if each is None else each.type,
            "durable": True,
            "auto_delete": False,
            "internal": each is not None and each.internal,
            "arguments": {} if each is None else _for_pika(each.arguments),
        }
        for name, each in conversation.exchanges.items()
    ]
    queues: list[dict[str, Any]] = [
        {
            "name": name,
            "vhost": "/",
            "durable": True,
            "auto_delete": False,
            "arguments": _options(conversation.queues.get(name), "arguments").get("arguments", {}),
        }
        for name in (*conversation.queues, *_found(conversation))
    ]
    bindings = []
    for call in _declarations(conversation):
        if call.function.endswith("_bind"):
            destination, source, key = call.arguments
            kind = "queue" if "queue_bind" in call.function else "exchange"
            arguments = call.keywords.get("arguments", {})
            bindings.append(
                {
                    "source": source,
                    "vhost": "/",
                    "destination": destination,
                    "destination_type": kind,
                    "routing_key": key,
                    "arguments": arguments,
                }
            )
    with Broker(clock="virtual", trace=0) as broker:
        broker.load_definitions({"exchanges": exchanges, "queues": queues, "bindings": bindings})
        accepted = []
        for each in publishes:
            try:
                broker.publish(
                    each.body.ljust(each.size, b"*"),
                    exchange=each.exchange,
                    routing_key=each.routing_key,
                    **each.properties,
                )
            except FakeAMQPError:  # It was refused in the recording, too, or acts on what is not there.
                continue
            accepted.append(each)
        broker.wait_until_idle()
        counts = {each["name"]: broker.queue(each["name"]).ready for each in queues}
    return {name: count for name, count in counts.items() if count}, accepted


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() or "a_queue"


def _plain(text: str) -> str:
    return printable(text).replace("\\", "/").replace('"', "'")


# --- source code --------------------------------------------------------------------------------------------


def _body(publish: _Publish) -> Any:
    if publish.size <= _LONG_BODY and len(publish.body) == publish.size:
        return publish.body
    beginning = publish.body[:40]
    return _Call(f"{_literal(beginning)}.ljust", (publish.size, b"*"), {})


def _literal(value: Any) -> str:
    """Source code of a plain value, in double quotes unless others need fewer escapes."""
    if isinstance(value, (str, bytes)):
        text = repr(value)
        prefix = "b" if isinstance(value, bytes) else ""
        inner = text[len(prefix) + 1 : -1]
        if not text.endswith("'"):
            return text
        plain = inner.replace("\\'", "'")
        if plain.count('"') > plain.count("'"):
            return text
        return prefix + '"' + plain.replace('"', '\\"') + '"'
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, Decimal):
        return f'Decimal("{value}")'
    return repr(value)


def _one_line(value: Any) -> str:
    if isinstance(value, _Call):
        arguments = [
            *map(_one_line, value.arguments),
            *(f"{name}={_one_line(each)}" for name, each in value.keywords.items()),
        ]
        return f"{value.function}({', '.join(arguments)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(key)}: {_one_line(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_one_line, value)) + "]"
    return _literal(value)


def _lines(value: Any, indent: int, before: str = "", after: str = "") -> list[str]:
    """The lines of a value behind `before`: one, or if that is too long one for each of its parts."""
    comment = [f"# {value.comment}"] if isinstance(value, _Call) and value.comment else []
    line = before + _one_line(value) + after
    if indent + len(line) <= _WIDTH:
        return [*comment, line]
    if isinstance(value, _Call):
        opening, closing = f"{value.function}(", ")"
        parts = [
            *(("", each) for each in value.arguments),
            *((f"{name}=", each) for name, each in value.keywords.items()),
        ]
    elif isinstance(value, Mapping):
        opening, closing = "{", "}"
        parts = [(f"{_literal(key)}: ", each) for key, each in value.items()]
    elif isinstance(value, (list, tuple)):
        opening, closing = "[", "]"
        parts = [("", each) for each in value]
    else:
        return [line]
    if not parts:
        return [*comment, line]
    inner = [f"    {each}" for name, part in parts for each in _lines(part, indent + 4, name, ",")]
    return [*comment, before + opening, *inner, closing + after]
