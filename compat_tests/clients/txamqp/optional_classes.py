"""Twisted's tests of ours: the client on the classes access, file, stream, dtx and tunnel of AMQP 0-9.

Its methods are made of the definitions that it reads, so each goes out as these say, and what comes back is
read as they say. `trial_run` runs these; pytest does not look in here.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.protocol import Factory

from txamqp import spec
from txamqp.client import TwistedDelegate
from txamqp.connection import Body, Frame, Header, Method
from txamqp.content import Content
from txamqp.protocol import AMQClient
from txamqp.queue import TimeoutDeferredQueue
from txamqp.testlib import TestBase

SECONDS = 20

Steps = Generator[Deferred, Any, None]
"""What a test waits for."""


class Receiver(TwistedDelegate):
    """Keeps what the broker sends without being asked, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.received = TimeoutDeferredQueue()

    def keep(self, channel: Any, message: Any) -> None:
        self.received.put(message)

    file_open = file_deliver = file_return_ = stream_deliver = stream_return_ = basic_deliver = keep


class OnBroker(TestBase):
    """A connection with an open channel, 1."""

    @inlineCallbacks
    def connect(self) -> Steps:
        def client() -> AMQClient:
            return AMQClient(Receiver(), self.vhost, spec.load(self.spec))

        endpoint = TCP4ClientEndpoint(reactor, self.host, self.port)
        opened = yield endpoint.connect(Factory.forProtocol(client))
        self.connectors.append(opened.transport.connector)
        yield opened.authenticate(self.user, self.password)
        return opened

    @inlineCallbacks
    def open(self, number: int, client: Any = None) -> Steps:
        channel = yield (client or self.client).channel(number)
        yield channel.channel_open()
        return channel

    @inlineCallbacks
    def received(self, name: str, client: Any = None) -> Steps:
        """What the broker has sent next."""
        message = yield (client or self.client).delegate.received.get(timeout=SECONDS)
        method = message.method
        self.assertEqual(name, f"{method.klass.name}.{method.name}")
        return message

    @inlineCallbacks
    def count(self, queue: str) -> Steps:
        """How many messages are in a queue. By then the broker has done what was sent before."""
        declared = yield self.channel.queue_declare(queue=queue, passive=True)
        return declared.message_count


class AccessTests(OnBroker):
    @inlineCallbacks
    def test_work_with_tickets(self) -> Steps:
        channel = self.channel
        asked = {"passive": True, "active": True, "write": True, "read": True}
        granted = yield channel.access_request(realm="/data", **asked)
        ticket = granted.ticket
        self.assertTrue(0 < ticket < 1 << 16)
        yield channel.exchange_declare(ticket=ticket, exchange="e", type="direct")
        yield channel.queue_declare(ticket=ticket, queue="q")
        yield channel.queue_bind(ticket=ticket, queue="q", exchange="e", routing_key="k")
        channel.basic_publish(ticket=ticket, exchange="e", routing_key="k", content=Content("body"))
        yield channel.basic_consume(ticket=ticket, queue="q", consumer_tag="c", no_ack=True)
        delivered = yield self.received("basic.deliver")
        self.assertEqual("body", delivered.content.body)
        purged = yield channel.queue_purge(ticket=ticket, queue="q")
        self.assertEqual(0, purged.message_count)
        yield channel.queue_delete(ticket=ticket, queue="q")
        yield channel.exchange_delete(ticket=ticket, exchange="e")


class StructuredContentTests(OnBroker):
    """A content can have others inside. The client sends and reads them, and has no other use for them."""

    @inlineCallbacks
    def test_contents_in_contents(self) -> Steps:
        channel = self.channel
        deep = Content("deep", properties={"content-type": "a/b"})
        children = [Content("first", [deep]), Content("", properties={"priority": 1})]
        outer = Content("outer" * 10_000, children, {"headers": {"number": 5}})
        yield channel.queue_declare(queue="q", exclusive=True)
        channel.basic_publish(routing_key="q", content=outer)
        channel.basic_publish(routing_key="q", content=outer)
        got = yield channel.basic_get(queue="q", no_ack=True)
        self.same(outer, got.content)
        yield channel.basic_consume(queue="q", no_ack=True)
        delivered = yield self.received("basic.deliver")
        self.same(outer, delivered.content)

    def same(self, one: Content, other: Content) -> None:
        self.assertEqual((one.body, one.properties), (other.body, other.properties))
        self.assertEqual(len(one.children), len(other.children))
        for first, second in zip(one.children, other.children, strict=True):
            self.same(first, second)


class FileTests(OnBroker):
    PROPERTIES = {  # noqa: RUF012
        "content-type": "text/plain",
        "content-encoding": "none",
        "headers": {"text": "word", "number": 5},
        "priority": 6,
        "reply-to": "answers",
        "message-id": "id",
        "filename": "file.txt",
        "timestamp": 1 << 33,
        "cluster-id": "cluster",
    }

    @inlineCallbacks
    def stage(self, identifier: str, octets: str, channel: Any = None) -> Steps:
        channel = channel or self.channel
        opened = yield channel.file_open(identifier=identifier, content_size=len(octets))
        self.assertEqual(0, opened.staged_size)
        channel.file_stage(content=Content(octets, properties=self.PROPERTIES))

    @inlineCallbacks
    def fetch(self, tag: str, held: int = 0) -> Steps:
        """Have the next file staged here, as far as it is not held, and delivered."""
        opened = yield self.received("file.open")
        staged = yield self.channel.file_open_ok(staged_size=held)
        self.assertEqual(opened.content_size, held + len(staged.content.body))
        delivered = yield self.received("file.deliver")
        self.assertEqual((tag, opened.identifier), (delivered.consumer_tag, delivered.identifier))
        return opened, staged.content, delivered

    @inlineCallbacks
    def test_staged_both_ways(self) -> Steps:
        channel = self.channel
        yield channel.queue_declare(queue="files", exclusive=True)
        yield channel.queue_bind(queue="files", exchange="amq.direct", routing_key="k")
        octets = "0123456789" * 20_000  # More than a frame.
        yield self.stage("first", octets)
        channel.file_publish(exchange="amq.direct", routing_key="k", identifier="first")
        count = yield self.count("files")
        self.assertEqual(1, count)
        yield channel.file_qos(prefetch_count=1)
        consuming = yield channel.file_consume(queue="files")
        opened, content, delivered = yield self.fetch(consuming.consumer_tag)
        self.assertEqual(len(octets), opened.content_size)
        self.assertEqual((octets, self.PROPERTIES), (content.body, content.properties))
        told = (delivered.redelivered, delivered.exchange, delivered.routing_key)
        self.assertEqual((False, "amq.direct", "k"), told)
        channel.file_ack(delivery_tag=delivered.delivery_tag)
        cancelled = yield channel.file_cancel(consumer_tag=consuming.consumer_tag)
        self.assertEqual(consuming.consumer_tag, cancelled.consumer_tag)
        deleted = yield channel.queue_delete(queue="files")
        self.assertEqual(0, deleted.message_count)

    @inlineCallbacks
    def test_the_client_goes_on_where_it_was(self) -> Steps:
        """A connection breaks off in the midst of a stage, another one sends the rest."""
        lost = yield self.connect()
        channel = yield self.open(1, lost)
        yield channel.file_open(identifier="broken", content_size=10)
        stage = lost.spec.classes.byname["file"].methods.byname["stage"]
        for payload in (Method(stage), Header(stage.klass, 0, 10, priority=6), Body("0123")):
            lost.send_frame(Frame(1, payload))
        lost.transport.loseWriteConnection()
        yield lost.disconnected.wait()

        channel = self.channel
        opened = yield channel.file_open(identifier="broken", content_size=10)
        self.assertEqual(4, opened.staged_size)
        channel.file_stage(content=Content("456789"))
        yield channel.queue_declare(queue="files", exclusive=True)
        channel.file_publish(routing_key="files", identifier="broken")
        yield channel.file_consume(queue="files", consumer_tag="c")
        _, content, _ = yield self.fetch("c")
        self.assertEqual("0123456789", content.body)

    @inlineCallbacks
    def test_the_broker_goes_on_where_the_client_was(self) -> Steps:
        """What the client has of a file already is not sent again."""
        channel = self.channel
        yield channel.queue_declare(queue="files", exclusive=True)
        yield self.stage("first", "0123456789")
        channel.file_publish(routing_key="files", identifier="first")
        yield channel.file_consume(queue="files", consumer_tag="c")
        first, content, delivered = yield self.fetch("c")
        self.assertEqual("0123456789", content.body)
        channel.file_reject(delivery_tag=delivered.delivery_tag, requeue=True)
        yield channel.file_cancel(consumer_tag="c")
        yield channel.channel_close()

        self.channel = channel = yield self.open(2)
        yield channel.file_consume(queue="files", consumer_tag="d")
        again, content, delivered = yield self.fetch("d", held=7)
        self.assertEqual((first.identifier, "789"), (again.identifier, content.body))
        self.assertTrue(delivered.redelivered)

    @inlineCallbacks
    def test_return(self) -> Steps:
        channel = self.channel
        yield channel.queue_declare(queue="files", exclusive=True)
        for key, flags, code in (
            ("nobody", {"mandatory": True}, 312),
            ("files", {"immediate": True}, 313),
        ):
            yield self.stage(key, "octets")
            channel.file_publish(routing_key=key, identifier=key, **flags)
            returned = yield self.received("file.return")
            self.assertEqual((code, "", key), (returned.reply_code, returned.exchange, returned.routing_key))
            self.assertEqual(
                ("octets", self.PROPERTIES), (returned.content.body, returned.content.properties)
            )


class StreamTests(OnBroker):
    PROPERTIES = {  # noqa: RUF012
        "content-type": "audio",
        "content-encoding": "none",
        "headers": {"number": 5},
        "priority": 6,
        "timestamp": 1 << 33,
    }

    @inlineCallbacks
    def test_publish_and_deliver(self) -> Steps:
        channel = self.channel
        yield channel.queue_declare(queue="streams", exclusive=True)
        yield channel.queue_bind(queue="streams", exchange="amq.topic", routing_key="a.*")
        yield channel.stream_qos(prefetch_size=0, prefetch_count=10, consume_rate=1_000_000)
        consuming = yield channel.stream_consume(queue="streams")
        octets = "0123456789" * 20_000
        content = Content(octets, properties=self.PROPERTIES)
        channel.stream_publish(exchange="amq.topic", routing_key="a.b", content=content)
        delivered = yield self.received("stream.deliver")
        told = (delivered.consumer_tag, delivered.exchange, delivered.queue)
        self.assertEqual((consuming.consumer_tag, "amq.topic", "streams"), told)
        self.assertTrue(delivered.delivery_tag)
        content = delivered.content
        self.assertEqual((octets, self.PROPERTIES), (content.body, content.properties))
        count = yield self.count("streams")
        self.assertEqual(0, count)
        cancelled = yield channel.stream_cancel(consumer_tag=consuming.consumer_tag)
        self.assertEqual(consuming.consumer_tag, cancelled.consumer_tag)

    @inlineCallbacks
    def test_return(self) -> Steps:
        channel = self.channel
        yield channel.queue_declare(queue="streams", exclusive=True)
        for key, flags, code in (
            ("nobody", {"mandatory": True}, 312),
            ("streams", {"immediate": True}, 313),
        ):
            channel.stream_publish(routing_key=key, content=Content("octets"), **flags)
            returned = yield self.received("stream.return")
            self.assertEqual((code, "", key), (returned.reply_code, returned.exchange, returned.routing_key))
            self.assertEqual("octets", returned.content.body)


class DtxTests(OnBroker):
    @inlineCallbacks
    def test_select_and_start(self) -> Steps:
        yield self.channel.dtx_select()
        yield self.channel.dtx_start(dtx_identifier="branch")
        yield self.channel.queue_declare(queue="q", exclusive=True)
        self.channel.basic_publish(routing_key="q", content=Content("body"))
        count = yield self.count("q")
        self.assertEqual(0, count)


class TunnelTests(OnBroker):
    """Who starts this looks at what has come through the tunnel."""

    @inlineCallbacks
    def test_request(self) -> Steps:
        properties = {
            "headers": {"number": 5},
            "proxy-name": "proxy",
            "data-name": "data",
            "durable": 1,
            "broadcast": 0,
        }
        for octets in ("", "0123456789" * 20_000):
            content = Content(octets, properties=properties)
            self.channel.tunnel_request(meta_data={"name": "value", "number": 5}, content=content)
        # There is no reply to it; the channel goes on.
        yield self.channel.queue_declare(queue="q", exclusive=True)
