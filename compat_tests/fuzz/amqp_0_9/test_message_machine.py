"""Class message loses no message and doubles none, and answers every request, whatever its clients do."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.requesting import Requester
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE

QUEUE = "q"
FRAME_MAX = 8192
SIZES = st.sampled_from([0, 1, 7996, 8146, 18000])


class Channel:
    """What a client knows of one channel of its own."""

    def __init__(self, client: Client, channel_id: bytes) -> None:
        self.client = client
        self.channel_id = channel_id
        self.requester = Requester(client)
        self.open: dict[int, Any] = {}
        """Requests that are not answered."""
        self.transfers: dict[int, bytes] = {}
        """Messages that the client has got and not answered, or none of whose answers it may give twice."""
        self.bodies: dict[bytes, bytes] = {}
        self.others: list[int] = []
        """Requests of the broker that are no transfers."""
        self.consumes = False
        self.last = 0
        """The number of the last request of the broker."""
        self.reference: bytes | None = None
        self.references = 0


class MessageMachine(RuleBasedStateMachine):
    """Two clients of class message at one queue."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server("rabbitmq-4.2").varied(batches_responses=True, answers_every_request=True)
        self.server.client().declare(QUEUE, durable=True)
        self.channels = [self._opened(), self._opened()]
        self.published = 0
        self.waiting: dict[bytes, None] = {}
        """Bodies the broker has said it has, or will have said, that nobody has answered ok or reject."""
        self.seen: set[bytes] = set()

    def _opened(self) -> Channel:
        client = self.server.client(channels=0, frame_max=FRAME_MAX)
        channel_id = client.call(m.ChannelOpen(), m.ChannelOpenOk).channel_id
        return Channel(client, channel_id)

    # --- what comes --------------------------------------------------------------------------------

    def collect(self, channel: Channel) -> None:
        """Read all that has come."""
        requester = channel.requester
        while channel.client.inbox:
            kind = channel.client.inbox[0].type
            if kind == FRAME_RESPONSE:
                told = requester.response()
                requester.mark = told.number
                for number in range(told.first, told.first + told.offset + 1):
                    sent = channel.open.pop(number)
                    assert type(told.method).NAME in sent.RESPONSES or isinstance(told.method, m.MessageOk)
            else:
                assert kind == FRAME_REQUEST
                self._receive(channel, requester.request())

    def _receive(self, channel: Channel, asked: Any) -> None:
        method = asked.method
        assert asked.number <= channel.last + 1, "no number is missing"
        channel.last = max(channel.last, asked.number)
        if isinstance(method, m.MessageTransfer):
            body = method.body.octets
            if method.body.by_reference:
                body = channel.bodies[body]
            assert body in self.waiting, "it was published, and not settled"
            assert method.redelivered == (body in self.seen)
            self.seen.add(body)
            channel.transfers[asked.number] = body
            return
        channel.others.append(asked.number)
        if isinstance(method, m.MessageOpen):
            channel.bodies[method.reference] = b""
        elif isinstance(method, m.MessageAppend):
            channel.bodies[method.reference] += method.octets

    def ask(self, channel: Channel, *methods: Any) -> None:
        first = channel.requester.asked + 1
        channel.open.update(enumerate(methods, first))
        channel.requester.ask(*methods)
        for each in self.channels:
            self.collect(each)

    # --- what clients do ---------------------------------------------------------------------------

    def body(self, size: int) -> bytes:
        self.published += 1
        body = b"%d:" % self.published + b"x" * size
        self.waiting[body] = None
        return body

    @rule(who=st.integers(0, 1), sizes=st.lists(st.integers(0, 3000), min_size=1, max_size=3))
    def publish(self, who: int, sizes: list[int]) -> None:
        bodies = [self.body(size) for size in sizes]
        self.ask(self.channels[who], *[m.MessageTransfer(routing_key=QUEUE, body=Body(b)) for b in bodies])

    @rule(who=st.integers(0, 1), size=SIZES)
    def publish_by_reference(self, who: int, size: int) -> None:
        channel = self.channels[who]
        channel.references += 1
        name = b"r%d" % channel.references
        body = self.body(size)
        pieces = [body[start : start + 2000] for start in range(0, len(body), 2000)]
        self.ask(
            channel,
            m.MessageOpen(reference=name),
            *[m.MessageAppend(reference=name, octets=piece) for piece in pieces],
            m.MessageTransfer(routing_key=QUEUE, body=Body(name, by_reference=True)),
            m.MessageClose(reference=name),
        )

    @rule(who=st.integers(0, 1), method=st.sampled_from([m.MessageQos(), m.ChannelPing(), m.ChannelPong()]))
    def ask_for_nothing(self, who: int, method: Any) -> None:
        self.ask(self.channels[who], method)

    @rule(who=st.integers(0, 1), count=st.integers(0, 3))
    def limit(self, who: int, count: int) -> None:
        self.ask(self.channels[who], m.MessageQos(prefetch_count=count))

    @rule(who=st.integers(0, 1))
    def consume_or_cancel(self, who: int) -> None:
        channel = self.channels[who]
        channel.consumes = not channel.consumes
        if channel.consumes:
            self.ask(channel, m.MessageConsume(queue=QUEUE, destination="d"))
        else:
            self.ask(channel, m.MessageCancel(destination="d"))

    @rule(who=st.integers(0, 1))
    def get(self, who: int) -> None:
        self.ask(self.channels[who], m.MessageGet(queue=QUEUE, destination="g"))

    @precondition(lambda self: any(each.transfers for each in self.channels))
    @rule(data=st.data(), reject=st.booleans())
    def answer(self, data: st.DataObject, reject: bool) -> None:
        channel = data.draw(st.sampled_from([each for each in self.channels if each.transfers]))
        number = data.draw(st.sampled_from(list(channel.transfers)))
        self.waiting.pop(channel.transfers.pop(number), None)
        channel.requester.answer(number, m.MessageReject() if reject else m.MessageOk())
        for each in self.channels:
            self.collect(each)

    @precondition(lambda self: any(each.transfers for each in self.channels))
    @rule(data=st.data())
    def answer_many(self, data: st.DataObject) -> None:
        channel = data.draw(st.sampled_from([each for each in self.channels if each.transfers]))
        first = data.draw(st.sampled_from(list(channel.transfers)))
        last = first
        while last + 1 in channel.transfers:
            last += 1
        for number in range(first, last + 1):
            self.waiting.pop(channel.transfers.pop(number), None)
        channel.requester.answer(first, offset=last - first)
        for each in self.channels:
            self.collect(each)

    @rule(who=st.integers(0, 1), requeue=st.booleans())
    def recover(self, who: int, requeue: bool) -> None:
        channel = self.channels[who]
        channel.transfers.clear()
        self.ask(channel, m.MessageRecover(requeue=requeue))

    @precondition(lambda self: any(each.requester.asked for each in self.channels))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """A request comes again whose response was not marked: it is answered as it was."""
        channel = data.draw(st.sampled_from([each for each in self.channels if each.requester.asked]))
        requester = channel.requester
        mark, requester.mark = requester.mark, requester.mark - 1
        requester.repeat(m.MessageTransfer(routing_key=QUEUE, body=Body(b"never")), requester.asked)
        requester.mark = mark
        first = requester.response()
        assert first.first <= requester.asked <= first.first + first.offset

    @rule(who=st.integers(0, 1))
    def close(self, who: int) -> None:
        self.channels[who].client.close_channel()
        self._began_again(who, self.channels[who].client)

    @rule(who=st.integers(0, 1))
    def lose(self, who: int) -> None:
        self.channels[who].client.drop()
        self._began_again(who, self.server.client(channels=0, frame_max=FRAME_MAX))

    def _began_again(self, who: int, client: Client) -> None:
        opened = client.call(m.ChannelOpen(), m.ChannelOpenOk)
        self.channels[who] = Channel(client, opened.channel_id)
        for each in self.channels:
            self.collect(each)

    @rule(who=st.integers(0, 1), unread=st.integers(0, 3))
    def resume(self, who: int, unread: int) -> None:
        """The connection is lost with what it was bringing, and the channel goes on."""
        lost = self.channels[who]
        if unread:
            bodies = [self.body(size) for size in (5, 5000, 5)[:unread]]
            self.server.client().fill(QUEUE, *bodies)
            self.collect(self.channels[1 - who])
        self.seen.update(each.queued.message.body for each in self.server.vhost.queues[QUEUE].unacked)
        lost.client.drop()
        client = self.server.client(channels=0, frame_max=FRAME_MAX)
        client.send(m.ChannelResume(channel_id=lost.channel_id))
        client.expect(m.ChannelOk)
        channel = Channel(client, lost.channel_id)
        channel.requester.asked, channel.requester.answered = lost.requester.asked, lost.requester.answered
        channel.requester.mark = lost.requester.mark
        channel.consumes, channel.references = lost.consumes, lost.references
        channel.last = lost.last
        self.channels[who] = channel
        for each in self.channels:
            self.collect(each)

    # --- what always holds -------------------------------------------------------------------------

    @invariant()
    def every_request_is_answered(self) -> None:
        for channel in self.channels:
            assert channel.open == {}

    @invariant()
    def every_message_is_somewhere(self) -> None:
        queue = self.server.vhost.queues[QUEUE]
        ready = [each.message.body for each in queue.ready]
        held = [each.queued.message.body for each in queue.unacked]
        assert sorted(ready + held) == sorted(self.waiting)
        assert sorted(held) == sorted(body for each in self.channels for body in each.transfers.values())


TestMessageMachine = MessageMachine.TestCase
TestMessageMachine.settings = examples(60, stateful_step_count=30)
