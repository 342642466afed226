"""What crosses both legs of a connection through a proxy, and whether each side can explain it.

`Legs` sees the bytes between client and proxy and those between proxy and broker. It cuts and decodes them
with the codec alone. Messages are known by their bodies, of which no two publishes have the same; so it needs
none of the proxy's numbers. Rules report the frame groups that they act on (`acted`).

Each of its assertions is about what one side gets: another side has sent it, or a rule explains it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from compat_tests.scripted.amqp_0_9_1 import METHODS
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ

__all__ = ["REPLACED", "UNKNOWN_TAG", "Legs", "Malformed", "Said"]

REPLACED = b"!"
"""What a rule that replaces bodies adds."""
UNKNOWN_TAG = 999
"""A delivery tag that there never is, which clients settle at times."""
_DELIVERIES = (m.BasicDeliver, m.BasicGetOk)
_CONFIRMS = (m.BasicAck, m.BasicNack)
_RECOVERS = (m.BasicRecover, m.BasicRecoverAsync)
_OF_PROXY = (m.ConnectionBlocked, m.ConnectionUnblocked, m.ChannelFlow)
"""Methods that alarms and flow faults add."""
_LOSING = frozenset(("Drop", "Disconnect", "CloseChannel", "CloseConnection", "CutConnection", "Malform"))
"""The actions after which a frame group may never arrive."""


class Malformed(Exception):
    """A side gets what is no AMQP."""


class Said(NamedTuple):
    """A method as it came, with the body of its content."""

    channel: int
    method: Any
    payload: bytes
    body: bytes | None = None

    @property
    def message(self) -> bytes:
        """The body as it was published, whatever a rule has made of it."""
        assert self.body is not None
        return self.body.rstrip(REPLACED)


class Wire:
    """One direction of one leg. Raises `Malformed` for what is no frame or does not belong where it is."""

    def __init__(self, *, header: bool = False) -> None:
        self._octets = b""
        self._header = header
        self._contents: dict[int, list[Any]] = {}
        """By channel: a method, its payload, the bytes of its body to come, its body."""

    def take(self, octets: bytes) -> Iterator[Said]:
        """The methods that are complete."""
        self._octets += octets
        if self._header and len(self._octets) >= 8:
            assert self._octets.startswith(PROTOCOL_HEADER)
            self._header, self._octets = False, self._octets[8:]
        while not self._header and len(self._octets) >= 8:
            kind, number, size = FRAME_HEADER.unpack_from(self._octets)
            if len(self._octets) < size + 8:
                return
            payload, end = self._octets[7 : 7 + size], self._octets[7 + size]
            self._octets = self._octets[8 + size :]
            if end != 0xCE:
                raise Malformed(f"a frame that ends with {end:#x}")
            yield from self._frame(kind, number, payload)

    def _frame(self, kind: int, number: int, payload: bytes) -> Iterator[Said]:
        content = self._contents.get(number)
        if kind == 1:
            known = METHODS.get(int.from_bytes(payload[:4], "big"))
            if known is None:
                raise Malformed(f"the method {payload[:4].hex()}")
            method = known.decode(payload, RABBITMQ)
            closes = isinstance(method, (m.ChannelClose, m.ChannelCloseOk))
            if content is not None:
                raise Malformed(f"{method} on channel {number} inside the content of {content[0]}")
            if known.HAS_CONTENT:
                self._contents[number] = [method, payload, None, b""]
            else:
                yield Said(number, method, payload)
            if closes:
                self._contents.pop(number, None)
            return
        if kind == 8:
            return
        if content is None or (kind == 2) != (content[2] is None) or kind not in (2, 3):
            raise Malformed(f"a frame of type {kind} on channel {number}")
        if kind == 2:
            content[2] = int.from_bytes(payload[4:12], "big")
        else:
            content[2] -= len(payload)
            content[3] += payload
        if content[2] < 0:
            raise Malformed(f"a body on channel {number} that is too long")
        if content[2] == 0:
            del self._contents[number]
            yield Said(number, content[0], content[1], content[3])

    def abandon(self, number: int) -> None:
        """A content on a channel ends before it is whole: the channel has been closed."""
        self._contents.pop(number, None)


class Life:
    """What one leg has carried about one life of a channel: from channel.open to its end."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = "opening"
        """Then "open"; "closing" once the client has sent a close, "ended" once it has got one; "crossing"
        where both have; "closed".
        """
        self.confirming = False
        self.published: list[bytes] = []
        self.confirmed: dict[int, bool] = {}
        """By number of the publish: whether it was accepted."""
        self.gets: list[bool] = []
        """Whether each basic.get without an answer needs no settlement."""
        self.free: dict[str, bool] = {}
        """By consumer: whether its deliveries need no settlement."""
        self.delivered: Counter[tuple[str | None, bytes]] = Counter()
        self.tags: set[int] = set()
        self.held: dict[int, bytes] = {}
        """By tag: the deliveries that are not settled."""
        self.spare: set[int] = set()
        """Tags of duplicates, which concern the client alone."""
        self.spares_due: dict[int, int] = {}
        """By tag of a delivery: how many duplicates follow it."""
        self.spares_left = 0
        """How many of the deliveries that come next are duplicates of the latest."""
        self.to_settle: Counter[bytes] = Counter()
        """How often each message was delivered to be settled; a duplicate does not count."""
        self.settled: Counter[tuple[str, bytes]] = Counter()
        """By what is to become of it, and message."""
        self.multiples = 0
        """How many settlements were of more than one delivery."""
        self.mistaken = False
        """True once the client settles what it was never sent, or what the broker has taken back."""


def _verdict(method: Any) -> str:
    if isinstance(method, m.BasicAck):
        return "acked"
    return "requeued" if method.requeue else "rejected"


class Legs:
    """Both legs of one connection.

    Args:
        name: of the connection.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.history: list[str] = []
        self.from_client = Wire(header=True)
        self.to_client = Wire()
        self.to_broker = Wire(header=True)
        self.from_broker = Wire()
        self.at_client: dict[int, list[Life]] = defaultdict(list)
        self.at_broker: dict[int, list[Life]] = defaultdict(list)
        """By number, oldest first: the lives of a channel, as each leg has them."""
        self.rules: Counter[tuple[str, str, int, Any]] = Counter()
        """Action, method, channel and message or tag: what rules have acted on."""
        self.lost: Counter[str] = Counter()
        """By method: what rules have lost on its way."""
        self.broker_sent: Counter[tuple[int, bytes]] = Counter()
        """By channel and payload: methods of the broker that have not come to the client."""
        self.returned: Counter[bytes] = Counter()
        self.malformed = False
        """True once a rule has sent the client what is no AMQP."""

    # --- rules ------------------------------------------------------------------------------------------

    def acted(self, actions: list[str], times: int, group: Any) -> None:
        """A rule acts on a frame group; it makes so many duplicates."""
        self.history.append(f"rule: {', '.join(actions)} on {group.direction} {group} on {group.channel}")
        key: Any = None
        if group.direction == "sent" or group.name != "basic.publish":
            key = getattr(group.method, "delivery_tag", None)
        if group.has_content and key is None:
            key = group.body.rstrip(REPLACED)
        for action in actions:
            self.rules[action, group.name, group.channel, key] += 1
            self.malformed |= action == "Malform"
            if action in _LOSING:
                self.lost[group.name] += 1
            if action == "Duplicate" and group.name in ("basic.deliver", "basic.get-ok"):
                self.at_client[group.channel][-1].spares_due[key] = times

    def did(self, action: str, method: str = "", channel: int = 0, key: Any = None) -> int:
        """How often rules have done this; without a method, to anything."""
        if method:
            return self.rules[action, method, channel, key]
        return sum(count for (name, *_), count in self.rules.items() if name == action)

    # --- the leg of the client --------------------------------------------------------------------------

    def client_sends(self, octets: bytes) -> None:
        for said in self.from_client.take(octets):
            self._note("client sends", said)
            self._out(self.at_client, said, self._client_settles)

    def client_gets(self, octets: bytes) -> Iterator[Said]:
        """What the client gets, each after it has been explained."""
        for said in self.to_client.take(octets):
            self._note("client gets", said)
            self._explain(said)
            yield said

    def _note(self, what: str, said: Said) -> None:
        body = "" if said.body is None else f" {said.body!r}"
        self.history.append(f"{what} {said.channel}: {said.method}{body}")

    def _life(self, lives: dict[int, list[Life]], said: Said) -> Life:
        assert lives[said.channel], f"{said.method} on channel {said.channel}, which was never opened"
        return lives[said.channel][-1]

    def _out(self, lives: dict[int, list[Life]], said: Said, settles: Any) -> None:
        """A method from the client to the broker, on either leg: it must be legal there."""
        method, number = said.method, said.channel
        if number == 0:
            return
        if isinstance(method, m.ChannelOpen):
            before = lives[number]
            assert not before or before[-1].state == "closed", f"channel {number} is opened twice"
            before.append(Life(number))
            return
        life = self._life(lives, said)
        if isinstance(method, m.ChannelCloseOk):
            assert life.state in ("ended", "crossing"), f"{method} on a channel that is {life.state}"
            life.state = "closed" if life.state == "ended" else "closing"
            return
        if isinstance(method, m.ChannelClose):
            assert life.state in ("opening", "open", "ended"), f"{method} on a channel that is {life.state}"
            life.state = "crossing" if life.state == "ended" else "closing"
            return
        assert life.state in ("open", "ended"), f"{method} on channel {number}, which is {life.state}"
        if isinstance(method, m.ConfirmSelect):
            life.confirming = True
        elif isinstance(method, m.BasicPublish):
            life.published.append(said.message)
        elif isinstance(method, m.BasicConsume):
            life.free[method.consumer_tag] = method.no_ack
        elif isinstance(method, m.BasicGet):
            life.gets.append(method.no_ack)
        elif isinstance(method, (m.BasicAck, m.BasicNack, m.BasicReject)):
            settles(life, method)
        elif isinstance(method, _RECOVERS):
            life.held.clear()
            life.multiples += 1
            if lives is self.at_broker:
                # A delivery that a fault holds meanwhile comes with a tag that is void.
                client = self._counterpart(life)
                client.mistaken |= bool(life.to_settle - client.to_settle)

    def _in(self, lives: dict[int, list[Life]], said: Said) -> Life | None:
        """A method from the broker to the client, on either leg: it must be legal there."""
        method, number = said.method, said.channel
        if number == 0:
            return None
        life = self._life(lives, said)
        assert life.state != "closed", f"{method} on channel {number}, which is closed"
        if isinstance(method, m.ChannelOpenOk):
            assert life.state in ("opening", "closing"), f"{method} on a channel that is {life.state}"
            life.state = "open" if life.state == "opening" else life.state
        elif isinstance(method, m.ChannelClose):
            assert life.state not in ("ended", "crossing"), f"channel {number} is closed twice"
            life.state = "crossing" if life.state == "closing" else "ended"
        elif isinstance(method, m.ChannelCloseOk):
            assert life.state in ("closing", "crossing"), f"{method} on a channel that is {life.state}"
            life.state = "closed" if life.state == "closing" else "ended"
        elif isinstance(method, _DELIVERIES):
            self._delivered(life, said)
        elif isinstance(method, m.BasicGetEmpty) and life.gets:
            life.gets.pop(0)
        return life

    def _delivered(self, life: Life, said: Said) -> None:
        tag = said.method.delivery_tag
        consumer = getattr(said.method, "consumer_tag", None)
        assert tag not in life.tags, f"the delivery tag {tag} came twice"
        life.tags.add(tag)
        life.delivered[consumer, said.message] += 1
        free = life.free[consumer] if consumer is not None else bool(life.gets and life.gets.pop(0))
        if not free:
            life.held[tag] = said.message

    def _counterpart(self, life: Life) -> Life:
        """The other leg's view of the same life of a channel."""
        ours, theirs = self.at_client[life.number], self.at_broker[life.number]
        if life in theirs:
            ours, theirs = theirs, ours
        place = ours.index(life)
        return theirs[place] if place < len(theirs) else Life(life.number)

    # --- what the client gets ---------------------------------------------------------------------------

    def _explain(self, said: Said) -> None:
        method, number = said.method, said.channel
        spare = isinstance(method, _DELIVERIES) and self._is_spare(said)
        if spare and isinstance(method, m.BasicGetOk):
            self.at_client[number][-1].gets.insert(0, False)
        life = self._in(self.at_client, said)
        if isinstance(method, m.ConnectionClose):
            explained = self.broker_sent[0, said.payload] or self.did("CloseConnection")
            assert explained or self.did("RefuseLogin") or method.reply_code == 320, (
                f"{method}: no side closes"
            )
        elif isinstance(method, m.ChannelClose):
            explained = self.broker_sent[number, said.payload] or self.did("CloseChannel")
            doubled = self.did("Duplicate") and "unknown delivery tag" in method.reply_text
            assert explained or doubled, f"{method}: neither the broker nor a rule closes channel {number}"
        elif isinstance(method, _CONFIRMS):
            assert life is not None
            self._explain_confirm(life, method)
        elif isinstance(method, _DELIVERIES):
            assert life is not None
            self._explain_delivery(life, said, spare)
        elif isinstance(method, m.BasicReturn):
            self.returned[said.message] -= 1
            made = self.rules["ReturnMessage", "basic.publish", number, said.message]
            assert self.returned[said.message] + made >= 0, f"{said.body!r} is returned, by no side"
        elif isinstance(method, m.ConnectionStart) and not self.broker_sent:
            # The broker has gone without a word: the proxy says so with a close that follows.
            assert method.server_properties == {"product": "fakeamqp proxy"}, f"{method}: of no side"
        elif not isinstance(method, _OF_PROXY):
            self.broker_sent[number, said.payload] -= 1
            close_ok = isinstance(method, (m.ChannelCloseOk, m.ConnectionCloseOk))
            refused = self.did("CloseConnection") or self.did("RefuseLogin") or self.did("CloseChannel")
            known = self.broker_sent[number, said.payload] >= 0 or (close_ok and refused)
            assert known or isinstance(method, m.ConnectionCloseOk), f"{method} on {number}: of no side"

    def _explain_confirm(self, life: Life, method: Any) -> None:
        number, tag = life.number, method.delivery_tag
        accepted = isinstance(method, m.BasicAck)
        assert life.confirming and 0 < tag <= len(life.published), f"{method}: there is no such publish"
        tags = [tag]
        if method.multiple:
            tags = [each for each in range(1, tag + 1) if each not in life.confirmed]
        broker = self._counterpart(life)
        for each in tags:
            again = self.did("Duplicate", method.NAME, number, tag)
            assert each not in life.confirmed or again, f"{method}: {each} is confirmed already"
            dropped = self.did("Drop", "basic.ack", number, each) + self.did(
                "Drop", "basic.nack", number, each
            )
            assert not (dropped and method.multiple), f"{method} covers {each}, whose confirm a rule drops"
            life.confirmed[each] = accepted
            body = life.published[each - 1]
            fate = (
                broker.confirmed.get(broker.published.index(body) + 1) if body in broker.published else None
            )
            answers = [fate]
            if self.did("ReturnMessage", "basic.publish", number, body):
                answers.append(True)
            if self.did("Nack", "basic.publish", number, body) or self.did("Nack", "basic.ack", number, tag):
                answers.append(False)
            assert accepted in answers, f"{method}: for {body!r} the broker has said {fate}"

    def _is_spare(self, said: Said) -> bool:
        """Whether a delivery is a duplicate that a rule has made of the one before it."""
        life = self._life(self.at_client, said)
        if life.spares_left:
            life.spares_left -= 1
            return True
        life.spares_left = life.spares_due.pop(said.method.delivery_tag, 0)
        return False

    def _explain_delivery(self, life: Life, said: Said, spare: bool) -> None:
        tag = said.method.delivery_tag
        consumer = getattr(said.method, "consumer_tag", None)
        if spare:
            life.spare.add(tag)
            life.delivered[consumer, said.message] -= 1
            return
        broker = self._counterpart(life)
        known, came = broker.delivered[consumer, said.message], life.delivered[consumer, said.message]
        assert came <= known, f"{said.body!r} has come {came} times, and the broker has sent it {known} times"
        if tag in life.held:
            life.to_settle[said.message] += 1

    def _client_settles(self, life: Life, method: Any) -> None:
        tag, multiple = method.delivery_tag, getattr(method, "multiple", False)
        life.multiples += multiple
        life.mistaken |= tag == UNKNOWN_TAG
        for each in _covered(life.held, tag, multiple):
            body = life.held.pop(each)
            if each not in life.spare:
                life.settled[_verdict(method), body] += 1

    # --- the leg of the broker --------------------------------------------------------------------------

    def broker_sends(self, octets: bytes) -> None:
        for said in self.from_broker.take(octets):
            self._note("broker sends", said)
            method, number = said.method, said.channel
            if isinstance(method, m.ConnectionClose):
                assert method.reply_code in (320, 540), f"the proxy has done wrong: {method}"
            life = self._in(self.at_broker, said)
            if isinstance(method, _CONFIRMS):
                assert life is not None
                tags = [method.delivery_tag]
                if method.multiple:
                    tags = [each for each in range(1, tags[0] + 1) if each not in life.confirmed]
                life.confirmed.update(dict.fromkeys(tags, isinstance(method, m.BasicAck)))
            elif isinstance(method, m.BasicReturn):
                self.returned[said.message] += 1
            elif isinstance(method, _DELIVERIES):
                assert life is not None
                if method.delivery_tag in life.held:
                    life.to_settle[said.message] += 1
            else:
                self.broker_sent[number, said.payload] += 1

    def broker_gets(self, octets: bytes) -> None:
        for said in self.to_broker.take(octets):
            self._note("broker gets", said)
            method, number = said.method, said.channel
            self._out(self.at_broker, said, self._broker_settles)
            if isinstance(method, m.ChannelClose):
                known = method.reply_text != "closed by a proxy" or self.did("CloseChannel")
                assert known or self.did("Duplicate"), f"{method}: no rule closes channel {number}"
            elif isinstance(method, m.BasicPublish):
                self._explain_publish(self.at_broker[number][-1], said.message)

    def _explain_publish(self, life: Life, body: bytes) -> None:
        client = self._counterpart(life)
        most = client.published.count(body) + self.did("Duplicate", "basic.publish", life.number, body)
        came = life.published.count(body)
        assert came <= most, f"the broker gets {body!r} {came} times, for {most}"
        for action in ("Drop", "Nack", "ReturnMessage"):
            # It may have been held when its rule was removed: then it passes once.
            acted = self.did(action, "basic.publish", life.number, body)
            assert not acted or came <= most, f"the broker gets {body!r}, which a rule keeps"

    def _broker_settles(self, life: Life, method: Any) -> None:
        tag, multiple = method.delivery_tag, getattr(method, "multiple", False)
        client = self._counterpart(life)
        covered = _covered(life.held, tag, multiple)
        verdict = _verdict(method)
        known = tag in life.held or (multiple and not tag)
        if not known:
            doubled = any(self.did("Duplicate", each, life.number, tag) for each in _SETTLEMENTS)
            assert client.mistaken or doubled, f"{method}: the broker has sent no such delivery"
        for each in covered:
            body = life.held.pop(each)
            life.settled[verdict, body] += 1
            told, done = client.settled[verdict, body], life.settled[verdict, body]
            withheld = life.to_settle[body] - client.to_settle[body] if client.multiples else 0
            assert done <= told + withheld, (
                f"{body!r} is {verdict} {done} times, and by the client {told} times"
            )

    # --- the end ----------------------------------------------------------------------------------------

    def check_complete(self) -> None:
        """Once all faults are over and nothing is on its way, both sides know the same of open channels."""
        losing = sum(self.lost.values())
        for number, lives in self.at_client.items():
            client = lives[-1]
            broker = self._counterpart(client)
            assert client.state == broker.state or losing, (
                f"channel {number} is {client.state} for the client, and {broker.state} for the broker"
            )
            if client.state != "open" or losing or self.malformed:
                continue
            for tag, body in enumerate(client.published, 1):
                quiet = client.confirming and tag not in client.confirmed
                assert not quiet, f"publish {tag} on channel {number}, {body!r}, has no confirm"
            missing = broker.delivered - client.delivered
            assert not missing, f"deliveries have not come to the client: {missing}"
            untold = client.settled - broker.settled
            assert not untold or client.mistaken, f"settlements have not come to the broker: {untold}"


_SETTLEMENTS = ("basic.ack", "basic.nack", "basic.reject")


def _covered(held: dict[int, bytes], tag: int, multiple: bool) -> list[int]:
    if multiple:
        return [each for each in sorted(held) if not tag or each <= tag]
    return [tag] if tag in held else []
