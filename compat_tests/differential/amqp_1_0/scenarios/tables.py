"""Filters and the messages of a stream that pass them: a table with a line for each filter."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer, plain
from compat_tests.differential.amqp_1_0.scenarios.play import Play
from compat_tests.scripted.amqp_1_0 import RECEIVER, filters, sections
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, read_value

_LINKS = 200
"""How many links a session has at most."""


def published(play: Play, messages: Sequence[bytes], kind: str = "stream") -> str:
    """A queue with these messages."""
    queue = play.declare(kind)
    publisher = play.peer("publisher").session().sender(queue, 0)
    for payload in messages:  # One by one: a stream filters the messages of one turn together.
        publisher.transfer(payload=payload)
        said = [body for _, body, _ in publisher.wait_for(c.Disposition)]
        assert any(isinstance(c.read_composite(getattr(body, "state", None)), c.Accepted) for body in said)
    return queue


def table(play: Play, queue: str, cases: Mapping[str, Mapping[Any, Any]]) -> None:
    """Note for each set of filters which are in force, and the bodies of the messages that pass."""
    names = list(cases)
    for first in range(0, len(names), _LINKS):
        _part(play, queue, {name: cases[name] for name in names[first : first + _LINKS]})


def _part(play: Play, queue: str, cases: Mapping[str, Mapping[Any, Any]]) -> None:
    peer = play.peer("consumer").session()
    for handle, said in enumerate(cases.values()):
        peer.attach(
            RECEIVER,
            queue,
            handle,
            snd_settle_mode=1,
            terminus={"filter": {**filters(offset_spec="first"), **said}},
        )
        peer.flow(handle, link_credit=100)
    found = _frames(peer, len(cases))
    for handle, name in enumerate(cases):
        echoed: Any = None
        passed = []
        for body, payload in found:
            if getattr(body, "handle", None) != handle:
                continue
            if isinstance(body, c.Attach):
                source = c.read_composite(body.source)
                echoed = None if source is None or source.filter is None else [*source.filter][1:]
            elif isinstance(body, c.Transfer):
                passed.append(_body(payload))
            elif isinstance(body, c.Detach):
                passed.append(plain(body.error))
        play.lines.append(f"{name}: in force {echoed}, passed {passed}")
    play.lines += [plain(body.error) for body, _ in found if isinstance(body, c.End)]


def _frames(peer: Peer, links: int) -> list[tuple[Any, bytes]]:
    """What comes until all links are attached, and then nothing more comes."""
    found: list[tuple[Any, bytes]] = []
    ends = time.monotonic() + 10
    while True:
        more = peer.frames()
        found += [(body, payload) for _, body, payload in more]
        kinds = [type(body) for body, _ in found]
        if not more and (kinds.count(c.Attach) == links or c.End in kinds or time.monotonic() > ends):
            return found


def _body(payload: bytes) -> str:
    said = sections(payload)
    return bytes(said.get("data") or b"?").decode()


def described(name: str, value: Any, key: str | None = None) -> dict[Any, Any]:
    """A set of one filter."""
    return {Symbol(key or name): Described(Symbol(name), value)}


def decoded(octets: bytes) -> Any:
    """The value that these bytes encode."""
    return read_value(octets)[0]
