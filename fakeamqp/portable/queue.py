"""Portable queues: queues that a test reads and changes over AMQP alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from fakeamqp.blocking import blocking
from fakeamqp.broker import NO_JSON, payload_of
from fakeamqp.errors import WaitTimeout, near_match, nearest
from fakeamqp.inspect.errors import BadExpectation, Count, CountRange
from fakeamqp.inspect.messages import ContentView, content_of
from fakeamqp.lazy import raise_if_renamed
from fakeamqp.model.messages.message import plain_properties
from fakeamqp.portable.routes import BadQueue, NoAnswer, RequestRefused
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_OVERHEAD, content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.replay.peer import RecordedReply, ReplyAssembler

if TYPE_CHECKING:
    from typing_extensions import Never, Unpack

    from fakeamqp.model.messages.message import MessageProperties
    from fakeamqp.portable.routes import BrokerRoute, InProcessLine, SocketLine
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

T = TypeVar("T")
QueueType: TypeAlias = Literal["classic", "quorum", "stream"]

_ELSEWHERE = ("unacked", "total", "count")
"""Numbers of `amqp_broker.queue(...)` that AMQP does not have, and a usual mistake."""
_MISSING = 404
_LOCKED = 405
_LONGEST_NAME = 255
_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "declare": ((bool,), "True or False"),
    "name": ((str,), "a text"),
    "durable": ((bool,), "True or False"),
    "auto_delete": ((bool,), "True or False"),
    "type": ((str, NoneType), "a text"),
    "arguments": ((Mapping, NoneType), 'a mapping, such as {"x-max-length": 10}'),
    "exchange": ((str, NoneType), "the name of an exchange"),
    "routing_key": ((str, NoneType), "a text"),
    "virtual_host": ((str, NoneType), "the name of a virtual host"),
}
"""Arguments of `amqp_queue`: their types, and these in words."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ReceivedMessage(ContentView):
    """A message that was taken from a queue.

    Args:
        redelivered: whether an earlier delivery failed.
    """

    redelivered: bool = False

    def __repr__(self) -> str:
        return f"<message {self.said()}{' redelivered' if self.redelivered else ''}>"


class PortableQueue:
    """A queue, on a broker of the test or on a real one. Each number is read at the moment of its access.

    Reading raises RequestRefused if the queue does not exist, or is exclusive to a connection of the app.

    Its requests are those of a client of its own, so what happens to the connections of the app does not
    matter. In a coroutine, await `wait_for.aio(...)` and `get.aio(...)`.

    Attributes:
        name: the name of the queue.
    """

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

    def __init__(self, requests: PortableRequests, name: str) -> None:
        self._requests = requests
        self.name = name

    @property
    def virtual_host(self) -> str:
        """The name of the virtual host of the queue."""
        return self._requests.virtual_host

    @property
    def exists(self) -> bool:
        """Whether the queue exists, also if it is exclusive to a connection of the app."""
        try:
            return self._counts() is not None
        except RequestRefused as refused:
            if refused.code != _LOCKED:
                raise
            return True

    @property
    def ready(self) -> int:
        """The number of messages ready for delivery."""
        return self._seen()["ready"]

    @property
    def consumers(self) -> int:
        """The number of consumers."""
        return self._seen()["consumers"]

    @blocking
    def wait_for(
        self,
        /,
        *misplaced: Never,
        ready: Count | None = None,
        consumers: Count | None = None,
        timeout: float = 5.0,
        **misspelled: Never,
    ) -> PortableQueue:
        """Wait until the queue exists and has the numbers given, at the same time.

        Args:
            misplaced: numbers are given by name.
            ready: the number of ready messages: exactly so many, or (at least, at most).
            consumers: the number of consumers.
            timeout: in real seconds.
            misspelled: other names are errors.

        Returns:
            This queue.

        Raises:
            WaitTimeout: the queue did not get there in time; the text shows what was seen.
            BadExpectation: a name does not exist, AMQP does not tell this number, or a number is no number
                or range.
            RequestRefused: the queue is exclusive to a connection of the app.
        """
        watch = _Watch(self, misplaced, misspelled, ready=ready, consumers=consumers)
        if not self._requests.route.wait_until(watch.holds, timeout):
            raise WaitTimeout(watch.text(timeout, "wait_for.aio"))
        return self

    @wait_for.coroutine
    async def _wait_for_coroutine(
        self,
        /,
        *misplaced: Never,
        ready: Count | None = None,
        consumers: Count | None = None,
        timeout: float = 5.0,
        **misspelled: Never,
    ) -> PortableQueue:
        watch = _Watch(self, misplaced, misspelled, ready=ready, consumers=consumers)
        if not await self._requests.route.wait_until_async(watch.holds, timeout):
            raise WaitTimeout(watch.text(timeout, ""))
        return self

    @blocking
    def get(self, timeout: float = 5.0) -> ReceivedMessage:
        """Take the next message from the queue, and wait for one if there is none, or no queue yet.

        The message is acknowledged by this.

        Args:
            timeout: in real seconds.

        Raises:
            WaitTimeout: no message came in time; the text shows what was seen.
            RequestRefused: the queue is exclusive to a connection of the app.
        """
        taken: list[ReceivedMessage] = []
        if not self._requests.route.wait_until(lambda: self._takes(taken), timeout):
            raise WaitTimeout(self._nothing_came(timeout, "get.aio"))
        return taken[0]

    @get.coroutine
    async def _get_coroutine(self, timeout: float = 5.0) -> ReceivedMessage:
        taken: list[ReceivedMessage] = []
        if not await self._requests.route.wait_until_async(lambda: self._takes(taken), timeout):
            raise WaitTimeout(self._nothing_came(timeout, ""))
        return taken[0]

    def get_all(self) -> list[ReceivedMessage]:
        """Take all ready messages from the queue, without a wait: often after `wait_for(ready=...)`.

        Raises:
            RequestRefused: the queue does not exist, or is exclusive to a connection of the app.
        """
        taken: list[ReceivedMessage] = []
        while self._take(taken):
            pass
        return taken

    def publish(
        self,
        body: bytes | bytearray | memoryview | str | None = None,
        *,
        json: Any = NO_JSON,
        headers: Mapping[str, Any] | None = None,
        **properties: Unpack[MessageProperties],
    ) -> None:
        """Publish a message to the queue, and wait until the broker has confirmed it.

        Args:
            body: bytes, or text to be encoded as UTF-8.
            json: instead of `body`: a value to be encoded as JSON, with the content type "application/json"
                unless `content_type` is given.
            headers: of the message.
            properties: `content_type`, `delivery_mode`, `expiration`, `priority`, ...

        Raises:
            BadBody: the body is neither bytes nor text, or not exactly one of `body` and `json` is given.
            RequestRefused: the queue does not exist, or does not take the message.
            UnknownProperty: a property is misspelled.
            FieldError: a value does not fit its field.
        """
        octets = payload_of("queue.publish", body, json)
        if json is not NO_JSON:
            properties.setdefault("content_type", "application/json")
        made = plain_properties(headers=headers, **properties)
        self._requests.publish(self.name, BasicProperties(**vars(made)), octets)

    def bind(
        self, exchange: str, routing_key: str = "", arguments: Mapping[str, Any] | None = None
    ) -> PortableQueue:
        """Bind the queue to an exchange that exists.

        Returns:
            This queue.

        Raises:
            RequestRefused: the exchange does not exist.
        """
        self._requests.ask(
            m.QueueBind(
                queue=self.name,
                exchange=exchange,
                routing_key=routing_key,
                arguments=dict(arguments or {}),
            )
        )
        return self

    def purge(self) -> int:
        """Drop the ready messages; those that clients hold stay.

        Returns:
            The number of messages dropped.

        Raises:
            RequestRefused: the queue does not exist, or is a stream.
        """
        purged: Any = self._requests.ask(m.QueuePurge(queue=self.name)).method
        return int(purged.message_count)

    def delete(self) -> None:
        """Delete the queue, if it exists, even if it has messages and consumers."""
        self._if_exists(lambda: self._requests.ask(m.QueueDelete(queue=self.name)))

    def _seen(self) -> dict[str, int]:
        answer: Any = self._requests.ask(m.QueueDeclare(queue=self.name, passive=True)).method
        return {"ready": answer.message_count, "consumers": answer.consumer_count}

    def _counts(self) -> dict[str, int] | None:
        """The numbers; None if the queue does not exist."""
        return self._if_exists(self._seen)

    def _take(self, taken: list[ReceivedMessage]) -> bool:
        reply = self._requests.ask(m.BasicGet(queue=self.name, no_ack=True))
        method = reply.method
        if not isinstance(method, m.BasicGetOk):
            return False
        got: Any = SimpleNamespace(
            body=b"".join(reply.body),
            exchange=method.exchange,
            routing_key=method.routing_key,
            properties=reply.properties,
            content_class="basic",
        )
        taken.append(ReceivedMessage(**content_of(got), redelivered=bool(method.redelivered)))
        return True

    def _takes(self, taken: list[ReceivedMessage]) -> bool:
        """As `_take`; a queue that does not exist yet has no message."""
        return bool(self._if_exists(lambda: self._take(taken)))

    def _if_exists(self, ask: Callable[[], T]) -> T | None:
        """What `ask` returns; None if the queue does not exist."""
        try:
            return ask()
        except RequestRefused as refused:
            if refused.code != _MISSING:
                raise
            return None

    def _nothing_came(self, timeout: float, awaitable: str) -> str:
        seen = _said(self._counts())
        route = self._requests.route
        return (
            f"waited {route.span(timeout)} for a message in queue {self.name!r}, but {seen}"
            f"{route.hint(awaitable)}"
        )

    def __repr__(self) -> str:
        return f"<queue {self.name!r}>"


class _Watch:
    """The numbers that `wait_for` waits for, and those that it read last."""

    def __init__(
        self,
        queue: PortableQueue,
        misplaced: tuple[object, ...],
        misspelled: Mapping[str, object],
        **wanted: Count | None,
    ) -> None:
        for value in misplaced:
            raise BadExpectation(
                f"wait_for({value!r}): which number? Give it by name, such as ready={value!r}"
            )
        for name in misspelled:
            if name in _ELSEWHERE:
                raise BadExpectation(
                    f"wait_for({name}=...): a broker tells only the numbers of ready messages and of "
                    "consumers over AMQP, ready=... and consumers=...; a test of fakeamqp alone sees more "
                    "with amqp_broker.queue(name).wait_for(...)"
                )
            near = nearest(name, ("ready", "consumers", "timeout"))
            hint = f"did you mean {near[0]!r}?" if near else "there are ready and consumers"
            raise BadExpectation(f"wait_for knows no number {name!r}; {hint}")
        self._queue = queue
        self._wanted = {
            name: CountRange.of(count, name) for name, count in wanted.items() if count is not None
        }
        self._seen: dict[str, int] | None = None

    def holds(self) -> bool:
        """Whether the queue has the numbers now."""
        self._seen = seen = self._queue._counts()
        return seen is not None and all(each.holds(seen[name]) for name, each in self._wanted.items())

    def text(self, timeout: float, awaitable: str) -> str:
        """The text of the error."""
        wanted = ", ".join(f"{each} {name}" for name, each in self._wanted.items())
        asked = f"have {wanted}" if wanted else "exist"
        route = self._queue._requests.route
        waited = f"waited {route.span(timeout)} for queue {self._queue.name!r}"
        return f"{waited} to {asked}, but {_said(self._seen)}{route.hint(awaitable)}"


def check(**given: Any) -> None:
    """Check arguments of `amqp_queue`, all of them by name.

    Raises:
        BadQueue: one is invalid, or contradicts another one.
    """
    for name, value in given.items():
        types, expected = _TYPES[name]
        if not isinstance(value, types):
            raise BadQueue(f"amqp_queue({name}={value!r}): {name} must be {expected}")
        usual = {"durable": True, "auto_delete": False}.get(name)
        if not given["declare"] and name not in ("name", "declare", "virtual_host") and value != usual:
            raise BadQueue(
                f"amqp_queue({name}={value!r}, declare=False): the app declares the queue; leave out {name}"
            )
    size = len(given["name"].encode())
    if not 0 < size <= _LONGEST_NAME:
        raise BadQueue(f"amqp_queue: the name of a queue has 1 to {_LONGEST_NAME} bytes, and this has {size}")
    kind, known = given["type"], get_args(QueueType)
    if kind is not None and kind not in known:
        raise BadQueue(f"amqp_queue(type={kind!r}): there is no such type{near_match(kind, known)}")
    if kind is not None and (given["arguments"] or {}).get("x-queue-type", kind) != kind:
        raise BadQueue(f"amqp_queue(type={kind!r}) contradicts x-queue-type in its arguments")
    if given["routing_key"] is not None and given["exchange"] is None:
        raise BadQueue(
            f"amqp_queue(routing_key={given['routing_key']!r}): a binding needs an exchange as well, "
            "exchange=...; without one, publish with the name of the queue as the routing key"
        )


def declared(
    requests: PortableRequests,
    name: str,
    *,
    durable: bool = True,
    auto_delete: bool = False,
    type: QueueType | None = None,
    arguments: Mapping[str, Any] | None = None,
    exchange: str | None = None,
    routing_key: str | None = None,
) -> PortableQueue:
    """Declare a queue, and bind it if an exchange is given. The arguments are those of `amqp_queue`, checked.

    Raises:
        RequestRefused: the broker refuses an argument, or the exchange does not exist.
    """
    queue = PortableQueue(requests, name)
    table = dict(arguments or {})
    if type is not None:
        table["x-queue-type"] = type
    requests.ask(m.QueueDeclare(queue=name, durable=durable, auto_delete=auto_delete, arguments=table))
    if exchange is not None:
        try:
            queue.bind(exchange, routing_key or "")
        except BaseException:
            queue.delete()
            raise
    return queue


def _said(seen: Mapping[str, int] | None) -> str:
    if seen is None:
        return "it does not exist"
    return f"it has {seen['ready']} ready and {seen['consumers']} consumers"


_CHANNEL = 1
_FRAME_MAX = 131_072


class PortableRequests:
    """One client of a broker, on one connection, which the first request opens, and another one after a loss.

    Calls from several threads wait for each other.

    Args:
        route: the way to the broker.
        virtual_host: the one to open; None opens that of the URL.
    """

    def __init__(self, route: BrokerRoute, virtual_host: str | None = None) -> None:
        self.route = route
        self.virtual_host: str = virtual_host or route.login.virtual_host or "/"
        self._line: InProcessLine | SocketLine | None = None
        self._channel_open = False
        self._confirms = False

    def open(self) -> None:
        """Open the connection, if there is none.

        Raises:
            RequestRefused, NoAnswer, NoBroker: see `ask`.
        """
        with self.route.lock:
            self._make_ready()

    def ask(self, method: Method) -> RecordedReply:
        """Send a method and return its answer.

        Raises:
            RequestRefused: the broker closes the channel or the connection instead.
            NoAnswer: there is no answer, or no broker in this process.
            NoBroker: there is no broker at the URL.
        """
        with self.route.lock:
            self._make_ready()
            return self._exchange(_CHANNEL, method)

    def publish(self, queue: str, properties: BasicProperties, body: bytes) -> None:
        """Publish to a queue, and wait for the confirm.

        Raises:
            RequestRefused: the broker does not confirm the message, or there is no such queue.
            NoAnswer, NoBroker: see `ask`.
        """
        with self.route.lock:
            self._make_ready()
            if not self._confirms:
                self._exchange(_CHANNEL, m.ConfirmSelect())
                self._confirms = True
            limit = _FRAME_MAX - FRAME_OVERHEAD
            method = m.BasicPublish(routing_key=queue, mandatory=True)
            content = content_frames(_CHANNEL, m.BasicPublish.CLASS_ID, properties.encode(), body, limit)
            self._send(b"".join((method_frame(_CHANNEL, method.encode()), *content)))
            returned: Method | None = None
            while not isinstance(answer := self._next(method).method, (m.BasicAck, m.BasicNack)):
                returned = answer
            if returned is not None:
                raise RequestRefused(f"there is no queue {queue!r} to publish to", 312)
            if isinstance(answer, m.BasicNack):
                raise RequestRefused(
                    f"the broker has refused a message for queue {queue!r}: the queue is full"
                )

    def close(self) -> None:
        """Close the connection, if there is one."""
        with self.route.lock:
            if self._line is None:
                return
            try:
                if not self._line.ended:
                    self._exchange(0, m.ConnectionClose(reply_code=200, reply_text="the test has ended"))
            except (NoAnswer, RequestRefused):
                pass  # It is closed.
            finally:
                self._drop()

    # --- the connection -------------------------------------------------------------------------------

    def _make_ready(self) -> None:
        if self._line is not None and self._line.ended:
            self._drop()
        if self._line is None:
            self._open()
        if not self._channel_open:
            self._exchange(_CHANNEL, m.ChannelOpen())
            self._channel_open, self._confirms = True, False

    def _open(self) -> None:
        self._line = self.route.connect()
        self._assembler = ReplyAssembler()
        self._replies: deque[RecordedReply] = deque()
        self._channel_open = False
        login = self.route.login
        start_ok = m.ConnectionStartOk(
            client_properties={
                "product": "fakeamqp",
                "connection_name": "amqp_queue",
                "capabilities": {"authentication_failure_close": True},
            },
            mechanism="PLAIN",
            response=f"\0{login.user}\0{login.password}".encode(),
            locale="en_US",
        )
        try:
            self._send(PROTOCOL_HEADER)
            self._next(m.ConnectionStartOk())
            tune = self._exchange(0, start_ok).method
            assert isinstance(tune, m.ConnectionTune)
            frame_max = min(tune.frame_max or _FRAME_MAX, _FRAME_MAX)
            tune_ok = m.ConnectionTuneOk(channel_max=tune.channel_max, frame_max=frame_max, heartbeat=0)
            self._send(method_frame(0, tune_ok.encode()))
            self._exchange(0, m.ConnectionOpen(virtual_host=self.virtual_host))
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        line, self._line = self._line, None
        self._channel_open = False
        if line is not None:
            line.close()

    # --- frames ---------------------------------------------------------------------------------------

    def _exchange(self, channel: int, method: Method) -> RecordedReply:
        self._send(method_frame(channel, method.encode()))
        return self._next(method)

    def _send(self, octets: bytes) -> None:
        assert self._line is not None
        try:
            self._line.send(octets)
        except NoAnswer:
            self._drop()
            raise

    def _next(self, asked: Method) -> RecordedReply:
        """Receive the next answer; a close is an error."""
        while not self._replies:
            self._receive(asked)
        reply = self._replies.popleft()
        method = reply.method
        if isinstance(method, m.ChannelClose):
            self._channel_open = False
            self._send(method_frame(reply.channel, m.ChannelCloseOk().encode()))
        elif isinstance(method, m.ConnectionClose):
            self._send(method_frame(0, m.ConnectionCloseOk().encode()))
            self._drop()
        else:
            return reply
        raise RequestRefused(
            f"the broker refuses {asked.NAME}: {method.reply_code} {method.reply_text}", method.reply_code
        )

    def _receive(self, asked: Method) -> None:
        assert self._line is not None
        try:
            octets = self._line.receive()
        except NoAnswer as problem:
            self._drop()
            raise NoAnswer(f"{asked.NAME}: {problem}") from None
        if not octets:
            self._drop()
            raise NoAnswer(f"the broker has ended the connection instead of an answer to {asked.NAME}")
        self._replies.extend(self._assembler.read(octets))
