"""Scenarios of addresses of version 1."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.generated import same_names
from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt

BAD = {
    "no_exchange": "/exchange",
    "empty_exchange": "/exchange/",
    "three_parts": "/exchange/a/b/c",
    "missing_exchange": "/exchange/none",
    "missing_exchange_key": "/exchange/none/k",
    "default_exchange": "/exchange/amq.default/k",
    "internal": "/exchange/amq.rabbitmq.trace/k",
    "no_topic": "/topic",
    "empty_topic": "/topic/",
    "slash_in_topic": "/topic/a/b",
    "empty_queue": "/queue/",
    "slash_in_queue": "/queue/a/b",
    "temporary": "/temp-queue/a",
    "no_temporary": "/temp-queue",
    "no_reply": "/reply-queue",
    "reply": "/reply-queue/a",
    "amq_queue": "/amq/queue",
    "amq_queue_empty": "/amq/queue/",
    "amq_queue_missing": "/amq/queue/d-none",
    "amq_queue_slash": "/amq/queue/a/b",
    "unknown": "/foo/bar",
    "relative": "foo/bar",
    "slash": "/",
    "nothing": "",
    "long": "/foo/" + "bar" * 30,
    "not_latin": "/föö/€",
}


@each(**BAD, no_queue="/queue")
def version_1_sources(play: Play, address: str) -> None:
    peer = play.peer().session()
    peer.attach(RECEIVER, address)
    peer.note()
    same_names(play)
    if address == "":
        play.manager.ask("DELETE", "/queues/")


@each(**BAD)
def version_1_targets(play: Play, address: str) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, address)
    peer.note()
    same_names(play)
    if address == "":
        play.manager.ask("DELETE", "/queues/")


@each(
    bare="{}",
    bare_quoted="{}%2Fx%20y",
    queue="/queue/{}",
    queue_quoted="/queue/{}%2Fx",
)
def version_1_queue(play: Play, template: str) -> None:
    """The queue is declared by whichever link comes first."""
    name = template.format(play.prefix).removeprefix("/queue/").replace("%2F", "/")
    path = "/queues/" + name.replace("%", "%25").replace("/", "%2F")
    for durable in (None, 0, 1, 2):
        play.manager.ask("DELETE", path)
        peer = play.peer(str(durable)).session()
        peer.attach(SENDER, template.format(play.prefix), terminus={"durable": durable})
        peer.note("sender")
        if peer.transport.closed:
            return
        play.lines.append(str(declared(play, path)))
        peer.transfer(0)
        peer.note("sent")
        peer.attach(RECEIVER, template.format(play.prefix), 1, terminus={"durable": 2})
        peer.flow(1, link_credit=1)
        peer.note("receiver")
        peer.transport.drop()
    play.manager.ask("DELETE", path)


def declared(play: Play, path: str) -> Any:
    status, said = play.manager.ask("GET", path)
    if status != "200":
        return status
    return {key: said[key] for key in ("durable", "auto_delete", "exclusive", "type", "arguments")}


@each(classic="classic", quorum="quorum", stream="stream")
def version_1_existing_queue(play: Play, kind: str) -> None:
    """A queue that is there keeps its type and durability."""
    name = play.declare(kind).removeprefix("/queues/")
    peer = play.peer().session()
    peer.attach(SENDER, f"/queue/{name}")
    peer.attach(RECEIVER, name, 1)
    peer.attach(RECEIVER, f"/amq/queue/{name}", 2)
    peer.attach(SENDER, f"/amq/queue/{name}", 3)
    peer.note()
    same_names(play)


@scenario
def version_1_subject(play: Play) -> None:
    """Without a key the subject of each message is the routing key."""
    queue = play.declare()
    name = queue.removeprefix("/queues/")
    exchange = play.exchange("direct")
    play.bind(exchange, queue, "k")
    peer = play.peer().session()
    for address in ("/queue", f"/exchange/{exchange}", f"/exchange/{exchange}/k", "/exchange/amq.direct"):
        peer.attach(SENDER, address)
        peer.note(address.replace(exchange, "X"))
        if peer.transport.closed:
            return
        for subject in (None, name, "k", ""):
            fields = {} if subject is None else {"properties": c.Properties(subject=subject)}
            peer.transfer(0, message(**fields))
            peer.note(str(subject))
        peer.send(c.Detach(handle=0, closed=True))
        peer.note("detached")
    play.count(queue)
    peer.attach(RECEIVER, queue, 1)
    peer.flow(1, link_credit=9)
    peer.note("received")


@scenario
def version_1_topic(play: Play) -> None:
    queue = play.declare()
    play.bind("amq.topic", queue, "a.*")
    peer = play.peer().session()
    peer.attach(SENDER, "/topic/a.b")
    peer.note()
    peer.transfer(0, message(properties=c.Properties(subject="x")))
    peer.note("sent")
    play.count(queue)


@each(
    topic="/topic/{key}.*",
    quoted_topic="/topic/{key}.%2F%23",
    exchange="/exchange/{exchange}/k",
    no_key="/exchange/{exchange}",
)
def version_1_bound_source(play: Play, template: str) -> None:
    """A source that names an exchange gets a queue of its own, which stays."""
    key, exchange = token_hex(16), play.exchange("direct")
    play.manager.ask("PUT", f"/exchanges/{exchange}", {"type": "direct"})
    peer = play.peer().session()
    peer.attach(RECEIVER, template.format(key=key, exchange=exchange), 1)
    peer.flow(1, link_credit=5)
    peer.note("receiver")
    if not peer.transport.closed:
        for handle, path in enumerate((f"amq.topic/{key}.b", f"{exchange}/k", exchange), 2):
            peer.attach(SENDER, f"/exchanges/{path}", handle)
        peer.frames()
        for handle in (2, 3, 4):
            peer.transfer(handle)
            peer.note("sent")
        peer.send(c.Detach(handle=1, closed=True))
        peer.note("detached")
        peer.transfer(2).transfer(3).transfer(4)
        peer.note("sent again")
    same_names(play)


@each(sender=SENDER, receiver=RECEIVER)
def version_1_locked(play: Play, role: bool) -> None:
    name = f"{play.prefix}-ex"
    owner = play.peer("owner").session().managed()
    owner.ask("PUT", f"/queues/{name}", {"exclusive": True, "durable": False})
    peer = play.peer().session()
    peer.attach(role, name)
    peer.note()


@scenario
def version_1_anonymous(play: Play) -> None:
    """The `to` of a message has no version 1."""
    queue = play.declare()
    name = queue.removeprefix("/queues/")
    peer = play.peer().session()
    peer.sender(None)
    for address in (name, f"/queue/{name}", "/exchange/amq.direct/k", "/topic/a"):
        peer.transfer(0, message(properties=c.Properties(to=address)))
    peer.note()


@each(number=5, symbol="symbol")
def address_types(play: Play, value: Any) -> None:
    said: Any = Symbol("/queues/q") if value == "symbol" else UInt(5)
    for role in (SENDER, RECEIVER):
        peer = play.peer(str(role)).session()
        peer.attach(role, said)
        peer.note()


@each(
    plain="/queues/a b",
    hash="/queues/a#b",
    percent="/queues/a%",
    half="/queues/a%2",
    not_hex="/queues/a%zz",
    not_utf8="/queues/a%FF",
    plus="/queues/a+b",
    question="/queues/a?b",
    colon="/queues/a:b@c",
    letters="/queues/é",
    others="/queues/a!$&'()*,;=~-._",
    brackets="/queues/a[b]",
    quotes='/queues/a"b',
    pipe="/queues/a|b\\c^d`e{f}",
)
def percent_encoding(play: Play, address: str) -> None:
    """What is not a part of a URI makes an address bad."""
    for role in (SENDER, RECEIVER):
        peer = play.peer(str(role)).session()
        peer.attach(role, address)
        peer.note()
