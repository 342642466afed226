"""Messages through a queue to readers of both protocols: each message is told with what each reader got."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import md5
from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer, plain, shown_message
from compat_tests.differential.amqp_1_0.scenarios.play import Play
from compat_tests.differential.codec import Tagged
from compat_tests.differential.raw_client import RawClient
from compat_tests.scripted.amqp_1_0 import Arrived, filters
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import ULong

_ENDS = (c.Detach, c.End, c.Close)
_LONGEST = 400
_COUNTS = re.compile(r"delivery_tag=\d+, |, message_count=\d+|consumer_tag='[^']*', ")


class Route:
    """An exchange with two queues of one type behind it, or with one stream: one for readers of 0-9-1."""

    def __init__(self, play: Play, kind: str) -> None:
        self.play = play
        self.kind = kind
        self.exchange = play.exchange("direct")
        self.queues = [play.declare(kind, suffix=suffix) for suffix in ("old", "new")]
        for queue in self.queues:
            play.bind(self.exchange, queue, "k")
        self.passed: list[str] = []
        """The messages that were taken, in order."""

    # --- in ----------------------------------------------------------------------------------------------

    def publish(self, messages: Mapping[str, bytes]) -> None:
        """Publish encoded messages by 1.0, one after the other."""
        peer: Peer | None = None
        for name, octets in messages.items():
            if peer is None:
                peer = self.play.peer().session()
                peer.sender(f"/exchanges/{self.exchange}/k")
            number = peer.deliveries
            peer.transfer(payload=octets)
            states = _settled(peer, number)
            if isinstance(states, c.Accepted):
                self.passed.append(name)
            else:
                self._tell(name, "published", _error(states))
                if isinstance(states, _ENDS):
                    peer = None

    def publish_older(self, messages: Mapping[str, tuple[Mapping[str, Any], bytes]]) -> None:
        """Publish messages of 0-9-1, properties and body each."""
        client: RawClient | None = None
        for name, (properties, body) in messages.items():
            client = client or self.play.older()
            client.publish(1, exchange=self.exchange, routing_key="k", props=properties, body=body)
            said = [each for each in client.barrier(1) if each != "closed"]
            if said:
                self._tell(name, "published", " ".join(said))
                client = None
            else:
                self.passed.append(name)

    # --- out ---------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all messages by both protocols."""
        if self.kind == "stream":
            self._read_stream()
        else:
            self._read_older()
        self._read_newer()

    def _read_older(self) -> None:
        queue = self.queues[0].removeprefix("/queues/")
        client: RawClient | None = None
        for name in self.passed:
            client = client or self.play.older()
            said = client.do(1, "basic.get", queue=queue, no_ack=1)
            self._tell(name, "0-9-1", " ".join(said))
            if "get-ok" not in said[-1]:
                client = None  # The message is gone, since it needs no acknowledgement.

    def _read_stream(self) -> None:
        queue = self.queues[0].removeprefix("/queues/")
        offset = 0
        while offset < len(self.passed):
            client = self.play.older()
            client.do(1, "basic.qos", prefetch_count=1)
            arguments = {"x-stream-offset": Tagged("l", offset)}
            client.tell(1, "basic.consume", queue=queue, arguments=arguments)
            while offset < len(self.passed):
                event = client.next(5.0)
                if event is not None and event.name == "basic.consume-ok":
                    continue
                self._tell(self.passed[offset], "0-9-1", "nothing" if event is None else event.text)
                offset += 1
                if event is None or event.name != "basic.deliver":
                    break
                # One after the other, so that it is known at which message the node crashes.
                client.tell(1, "basic.ack", multiple=1)

    def _read_newer(self) -> None:
        """Read one after the other, so that it is known at which message the node crashes."""
        peer: Peer | None = None
        count = 0
        for offset, name in enumerate(self.passed):
            if peer is None:
                peer = self.play.peer().session()
                where: dict[str, Any] = {"terminus": {"filter": filters(offset_spec=ULong(offset))}}
                peer.receiver(self.queues[1], 1, **(where if self.kind == "stream" else {}))
                count = 0
            peer.flow(1, link_credit=1, delivery_count=(peer.first_count + count) & 0xFFFFFFFF)
            count += 1
            octets, end = _message(peer)
            if end is None:
                self._tell(name, "1.0", f"{shown_message(octets)} = {octets.hex()}")
                peer.settle(c.Accepted(), count - 1)
                continue
            self._tell(name, "1.0", _error(end))
            peer.transport.drop()
            peer = None
            if self.kind != "stream":
                client = self.play.older()
                client.do(1, "basic.get", queue=self.queues[1].removeprefix("/queues/"), no_ack=1)

    def _tell(self, name: str, what: str, text: str) -> None:
        text = _COUNTS.sub("", text)
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}..{len(text)}..{md5(text.encode()).hexdigest()[:8]}"
        self.play.lines.append(f"{name} {what}: {text}")


def _settled(peer: Peer, number: int) -> Any:
    """The outcome of a publish, or the frame that ends its link."""
    found: list[Arrived] = []
    while True:
        for _, body, _ in found:
            if isinstance(body, _ENDS):
                return body
            if isinstance(body, c.Disposition) and body.first <= number <= (body.last or body.first):
                return c.read_composite(body.state)
        found = peer.take_some()
        if not found:
            return None


def _message(peer: Peer) -> tuple[bytes, Any]:
    """The next message, or what ended its link instead."""
    octets = b""
    while True:
        found = peer.take_some()
        if not found:
            return octets, "nothing"
        for _, body, payload in found:
            if isinstance(body, _ENDS):
                return octets, body
            if isinstance(body, c.Transfer):
                octets += payload
                if not body.more:
                    return octets, None


def _error(body: Any) -> str:
    return "nothing" if body is None else body if isinstance(body, str) else plain(body)
