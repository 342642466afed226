"""What rules say of themselves, what they almost fitted, and what is said to who asks for nonsense."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.unit.faults.server import FaultServer, Publisher
from fakeamqp.dialects import dialect_named, protocol_named, protocol_names
from fakeamqp.errors import FakeAMQPError
from fakeamqp.faults import FaultError, FaultNotSeen, Faults, UnusedFault
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def big(body: bytes) -> bool:
    return len(body) > 10


SENTENCES: dict[str, Callable[[Faults], Any]] = {
    "when a basic.publish comes: count it": lambda f: f.on("basic.publish"),
    (
        "when a basic.publish with exchange '' and routing key 'orders.#' comes: nack it (once at most)"
    ): lambda f: f.on("basic.publish", exchange="", routing_key="orders.#").nack().once(),
    "when a basic.publish with channel 2 on connection 'billing' comes: drop it (only number 3)": lambda f: (
        f.on("basic.publish", connection="billing", channel=2).drop().on_call(3)
    ),
    (
        "when a basic.publish with body /^x/ comes: delay it by 2 s and up to 0.5 s more, then nack it "
        "(after 4)"
    ): lambda f: f.on("basic.publish", body=re.compile("^x")).delay(2, jitter=0.5).nack().after(4),
    (
        "when a basic.publish with body accepted by big comes: return it with 312 NO_ROUTE (2 times at most)"
    ): lambda f: f.on("basic.publish", body=big).return_message().times(2),
    "when a basic.publish comes as far as its header: reset its connection": lambda f: f.on(
        "basic.publish", part="header"
    ).disconnect("reset"),
    "when a publisher confirm with queue 'q' is to be sent: hold it (with probability 0.25)": lambda f: (
        f.on("confirm", queue="q").hold().with_probability(0.25)
    ),
    (
        "when a basic.deliver is to be sent: duplicate it, then replace redelivered=True, channel=65535"
    ): lambda f: f.on("basic.deliver").duplicate().replace(redelivered=True, channel=65_535),
    "when a basic.deliver is to be sent: let it pass 4 times": lambda f: f.on("basic.deliver").duplicate(3),
    "when a basic.deliver is to be sent: send it as far as its header, then end its connection": lambda f: (
        f.on("basic.deliver").cut(after="header")
    ),
    "when a basic.deliver is to be sent: send 9 bytes of it, then silence its connection": lambda f: f.on(
        "basic.deliver"
    ).cut(after=9, how="silence"),
    (
        "when a basic.deliver is to be sent: malform it: the last byte of its last frame is not the frame end"
    ): lambda f: f.on("basic.deliver").malform("bad-frame-end"),
    "when an exchange.declare with exchange type 'topic' comes: close its channel with 0": lambda f: f.on(
        "exchange.declare", exchange_type="topic"
    ).close_channel(0),
    "when a queue.* comes: pass it on, then close its connection with 65535": lambda f: f.on(
        "queue.*"
    ).close_connection(65_535, when="after"),
    "when a basic.publish comes: crash the broker before its answer": lambda f: f.on("basic.publish").crash(),
    "when a basic.publish comes: crash the broker, without its disk": lambda f: f.on("basic.publish").crash(
        when="instead", durable=False
    ),
    "when a connection.start-ok comes: refuse the login": lambda f: f.on(
        "connection.start-ok"
    ).refuse_login(),
    "when anything is to be sent: call big": lambda f: f.on("*", direction="sent").call(big),
    "when a heartbeat comes: drop it": lambda f: f.on("heartbeat").drop(),
    "when a basic.ack or basic.nack is to be sent: drop it": lambda f: f.on(
        "basic.ack", "basic.nack", direction="sent"
    ).drop(),
    "when a basic.publish comes: replace routing_key='z', priority=3, body=b'y'": lambda f: f.on(
        "basic.publish"
    ).replace(body=b"y", properties={"priority": 3}, routing_key="z"),
    "when a message.transfer with queue 'orders' comes: nack it (once at most)": lambda f: (
        f.on("message.transfer", queue="orders", protocol="0-9").nack().once()
    ),
    (
        "when a message.transfer with queue 'orders' and session 'shop' comes: answer it with the "
        "exception not-allowed (once at most)"
    ): lambda f: f.on("message.transfer", queue="orders", session="shop").exception("not-allowed").once(),
    "when a session.completed is to be sent: malform it: on the wrong track": lambda f: f.on(
        "session.completed", direction="sent", protocol="0-10"
    ).malform("wrong-track"),
    (
        "when a file.deliver is to be sent: malform it: the last byte of its last frame is not the frame end"
    ): lambda f: f.on("file.deliver", direction="sent").malform("bad-frame-end"),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_rule_is_described_by_a_sentence(faults: Faults, sentence: str) -> None:
    assert str(SENTENCES[sentence](faults)) == sentence


def test_str_of_faults_lists_the_sentences_of_all_rules(faults: Faults) -> None:
    assert (str(faults), repr(faults)) == ("no faults", "<Faults: 0 in force>")
    rule = faults.on("basic.get").drop()
    faults.on("basic.publish").nack()
    assert str(faults) == "when a basic.get comes: drop it\nwhen a basic.publish comes: nack it"
    assert repr(rule) == "<Rule: when a basic.get comes: drop it; in force, hits=0>"
    rule.remove()
    assert repr(rule) == "<Rule: when a basic.get comes: drop it; removed, hits=0>"
    assert faults.rules == (faults.rules[0],)


NONSENSE: dict[str, Callable[[Faults], Any]] = {
    "name the methods of the rule: on('basic.publish'), on('queue.*'), on('*'), ...": lambda f: f.on(),
    "there is no method 'basic.pubish'; did you mean 'basic.publish'?": lambda f: f.on("basic.pubish"),
    "there is no method 'publish'; did you mean 'basic.publish'?": lambda f: f.on("publish"),
    "there is no method 'publsh'; did you mean 'basic.publish'?": lambda f: f.on("publsh"),
    "there is no method 'ack'; did you mean 'basic.ack'?": lambda f: f.on("ack"),
    "there is no method 'declare'; did you mean 'exchange.declare' or 'queue.declare'?": lambda f: f.on(
        "declare"
    ),
    "there is no method 'subscribe'; did you mean 'message.subscribe'?": lambda f: f.on("subscribe"),
    "there is no method 'publish'; did you mean 'file.publish' or 'stream.publish'?": lambda f: f.on(
        "publish", protocol="0-10"
    ),
    "there is no method 'heartbeats'; did you mean 'heartbeat'?": lambda f: f.on("heartbeats"),
    "there is no method 'confrm'; did you mean 'confirm'?": lambda f: f.on("confrm"),
    "there is no method 'que.*'; did you mean 'queue.*'?": lambda f: f.on("que.*"),
    "a method's name is a str such as 'basic.publish', not 60": lambda f: f.on(60),
    (
        "'confirm' cannot be combined with other names and is always sent; make another rule for them"
    ): lambda f: f.on("confirm", "basic.return"),
    "basic.deliver is never received by a broker, only sent": lambda f: f.on(
        "basic.deliver", direction="received"
    ),
    (
        "a direction is 'received' (by the broker) or 'sent', not 'recieved'; did you mean 'received'?"
    ): lambda f: f.on("basic.deliver", direction="recieved"),
    "a basic.publish has no field 'routingkey'; did you mean 'routing_key'?": lambda f: f.on(
        "basic.publish", routingkey="x"
    ),
    "there is no exchange type 'topc'; did you mean 'topic'?": lambda f: f.on(
        "exchange.declare", type="topc"
    ),
    "there is no exchange type 'fan-out'; did you mean 'fanout'?": lambda f: f.on(
        "basic.publish", exchange_type="fan-out"
    ),
    "a body is compared with bytes, str, a pattern or a function, not 5": lambda f: f.on(
        "basic.publish", body=5
    ),
    "headers are compared with a dict of the headers that must be there, not 'x'": lambda f: f.on(
        "basic.publish", headers="x"
    ),
    "a connection is named by a str, or is one of broker.connections, not 5": lambda f: f.on(
        "basic.publish", connection=5
    ),
    "there is no part 'body'; there is only 'header'": lambda f: f.on("basic.publish", part="body"),
    "part='header' is for received methods with a content, not a basic.deliver": lambda f: f.on(
        "basic.deliver", part="header"
    ),
    "part='header' is for received methods with a content, not a queue.declare": lambda f: f.on(
        "queue.declare", part="header"
    ),
    (
        "with part='header' only call(), delay(), hold() and close actions are possible, not: nack it"
    ): lambda f: f.on("basic.publish", part="header").nack(),
    "nack() is for basic.publish and message.transfer, not for a queue.declare": lambda f: f.on(
        "queue.declare"
    ).nack(),
    "return_message() is for basic.publish, not for a basic.get": lambda f: f.on(
        "basic.get"
    ).return_message(),
    (
        "refuse_login() is for connection.secure-ok and connection.start-ok, not for a connection.open"
    ): lambda f: f.on("connection.open").refuse_login(),
    "a connection.open belongs to no channel; use close_connection()": lambda f: f.on(
        "connection.open"
    ).close_channel(),
    "a reply code is a number from 0 to 65535, such as 404, not 65536": lambda f: f.on(
        "basic.publish"
    ).close_channel(65_536),
    "when cannot be 'befor'; did you mean 'before'?": lambda f: f.on("basic.publish").close_channel(
        when="befor"
    ),
    "how cannot be 'rst'; did you mean 'reset'?": lambda f: f.on("basic.publish").disconnect("rst"),
    "cut() is for methods that the broker sends; a basic.publish is received: use disconnect()": lambda f: (
        f.on("basic.publish").cut()
    ),
    "a queue.declare-ok has no content header to cut after": lambda f: f.on("queue.declare-ok").cut(
        after="header"
    ),
    "after is 'method', 'header' or a number of bytes from 0 on, not 'body'": lambda f: f.on(
        "basic.deliver"
    ).cut(after="body"),
    "malform() is for methods that the broker sends; a basic.publish is received": lambda f: f.on(
        "basic.publish"
    ).malform("bad-frame-end"),
    "malform cannot be 'bad-frame-nd'; did you mean 'bad-frame-end'?": lambda f: f.on(
        "basic.deliver"
    ).malform("bad-frame-nd"),
    "malform('longer-body') is for methods with a content, such as basic.deliver": lambda f: f.on(
        "queue.declare-ok"
    ).malform("longer-body"),
    "a basic.publish has no 'bdy' to replace; did you mean 'body'?": lambda f: f.on("basic.publish").replace(
        bdy=b""
    ),
    "there is no property 'priorty'; did you mean 'priority'?": lambda f: f.on("basic.publish").replace(
        properties={"priorty": 1}
    ),
    "a queue.declare has no content: replace() can change its fields only": lambda f: f.on(
        "queue.declare"
    ).replace(body=b""),
    "a basic.publish cannot have routing_key=5: ": lambda f: f.on("basic.publish").replace(routing_key=5),
    "no content can have priority='high': ": lambda f: f.on("basic.publish").replace(priority="high"),
    "multiple=True combines confirms only: on('confirm').hold(), release(multiple=True)": lambda f: (
        f.on("basic.publish").hold().release(multiple=True)
    ),
    "a multiple confirm covers lower tags: release(multiple=True) without reverse": lambda f: (
        f.on("confirm").hold().release(multiple=True, reverse=True)
    ),
    "there is no open connection": lambda f: f.send(b"x"),
    "there is no open connection on 'billing'": lambda f: f.send(b"x", connection="billing"),
    "there is no property 'properties'": lambda f: f.send(m.BasicDeliver(), properties=1),
    "there is no open channel": lambda f: f.channel_flow(),
    "a basic.publish has no field 'conection'; did you mean 'connection'?": lambda f: f.on(
        "basic.publish", conection="x"
    ),
    "a basic.publish has no field 'optinal'; did you mean 'optional'?": lambda f: f.on(
        "basic.publish", optinal=True
    ),
    "a connection is named by a str, or is one of broker.connections, not ''": lambda f: f.on(
        "basic.publish", connection=""
    ),
    "a channel is compared with a number from 0 to 65535, a pattern or a function, not '1'": lambda f: f.on(
        "basic.publish", channel="1"
    ),
    "a channel is compared with a number from 0 to 65535, a pattern or a function, not -1": lambda f: f.on(
        "basic.publish", channel=-1
    ),
    "queue is compared with a str, a pattern or a function, not b'q'": lambda f: f.on(
        "basic.publish", queue=b"q"
    ),
    "routing_key is compared with a str, a pattern or a function, not 5": lambda f: f.on(
        "basic.publish", routing_key=5
    ),
    "a heartbeat has no queue: only its direction and its connection can be compared": lambda f: f.on(
        "heartbeat", queue="q"
    ),
    "a probability is between 0 and 1, not 'x'": lambda f: f.on("basic.publish").with_probability("x"),
    "a probability is between 0 and 1, not nan": lambda f: f.on("basic.publish").with_probability(
        float("nan")
    ),
    "a reply text is a str, not 5": lambda f: f.on("basic.publish").close_channel(404, 5),
    "delay() has no argument 'jiter'; did you mean 'jitter'?": lambda f: f.on("basic.publish").delay(
        1, jiter=1
    ),
    "crash() has no argument 'durble'; did you mean 'durable'?": lambda f: f.on("basic.publish").crash(
        durble=False
    ),
    "release() has no argument 'revers'; did you mean 'reverse'?": lambda f: (
        f.on("basic.publish").hold().release(revers=True)
    ),
    "drop() has no argument 'how', and takes none at all": lambda f: f.on("basic.publish").drop(how="fin"),
    "channel_flow() has no argument 'chanel'; did you mean 'channel'?": lambda f: f.channel_flow(chanel=1),
    "chaos() has no argument 'sed'; did you mean 'seed'?": lambda f: f.chaos(sed=1),
    "network.latency() has no argument 'jiter'; did you mean 'jitter'?": lambda f: f.network.latency(
        1, jiter=1
    ),
    "a delay is a number of seconds from 0 on, not nan": lambda f: f.on("basic.publish").delay(float("nan")),
    "a delay is a number of seconds from 0 on, not inf": lambda f: f.on("basic.publish").delay(float("inf")),
    "a delay is a number of seconds from 0 on, not '1'": lambda f: f.on("basic.publish").delay("1"),
    "a delay is a number of seconds from 0 on, not -1": lambda f: f.on("basic.publish").delay(-1),
    "a jitter is a number of seconds from 0 on, not -2": lambda f: f.on("basic.publish").delay(1, -2),
    "a reply code is a number from 0 to 65535, such as 404, not -1": lambda f: f.on(
        "basic.publish"
    ).return_message(-1),
    "a reply text has at most 255 bytes, not 256": lambda f: f.on("basic.publish").return_message(
        text="x" * 256
    ),
    "durable is True or False, not 'no'": lambda f: f.on("basic.publish").crash(durable="no"),
    "after is 'method', 'header' or a number of bytes from 0 on, not -1": lambda f: f.on("basic.deliver").cut(
        -1
    ),
    "say what to replace: replace(body=b'...'), for example": lambda f: f.on("basic.publish").replace(),
    "replace() takes body as bytes, a str or a function, not 5": lambda f: f.on("basic.publish").replace(
        body=5
    ),
    "a channel is a number from 0 to 65535, not 65536": lambda f: f.on("basic.publish").replace(
        channel=65_536
    ),
    "a channel is a number from 0 to 65535, not '2'": lambda f: f.on("basic.publish").replace(channel="2"),
    "replace() takes properties as a dict, not 5": lambda f: f.on("basic.publish").replace(properties=5),
    "call() takes a function, not 5": lambda f: f.on("basic.publish").call(5),
    "send() takes bytes or a method, not 'x'": lambda f: f.send("x"),
    "send() takes bytes or a method, not 5": lambda f: f.send(5),
    "send() takes body as bytes, not 5": lambda f: f.send(m.BasicDeliver(), body=5),
    "a channel is a number from 0 to 65535, not -1": lambda f: f.send(m.BasicDeliver(), channel=-1),
    "a channel is a number from 0 to 65535, not '1'": lambda f: f.send(b"", channel="1"),
    "active is True or False, not 'no'": lambda f: f.channel_flow("no"),
    "the reason of an alarm is a str of 1 to 255 bytes, not 5": lambda f: f.memory_alarm(5),
    "the probability of 'nack' is between 0 and 1, not 1.01": lambda f: f.chaos(profile={"nack": 1.01}),
    "the probability of 'nack' is between 0 and 1, not -0.01": lambda f: f.chaos(profile={"nack": -0.01}),
    "starve() takes queue as a str, not 5": lambda f: f.starve(queue=5),
    "starve() takes destination as a str, not 5": lambda f: f.starve(destination=5),
    "the reason of an alarm is a str of 1 to 255 bytes, not ''": lambda f: f.disk_alarm(""),
    "the probability of 'nack' is between 0 and 1, not 'x'": lambda f: f.chaos(profile={"nack": "x"}),
    "a profile is a name or a dict of probabilities, not 5": lambda f: f.chaos(profile=5),
    "an intensity is a number from 0 on, not -1": lambda f: f.chaos(intensity=-1),
    "an intensity is a number from 0 on, not nan": lambda f: f.chaos(intensity=float("nan")),
    "an intensity is a number from 0 on, not 'x'": lambda f: f.chaos(intensity="x"),
    "a seed is a whole number or a str, not 1.5": lambda f: f.chaos(1.5),
    "a plan is a str, not 5": lambda f: f.chaos(plan=5),
    (
        "line 1 of the plan cannot be read: there is no method 'basic.publsh'; did you mean 'basic.publish'?"
    ): lambda f: f.chaos(plan="connection 'a': received basic.publsh number 2 on channel 1: crash"),
    "line 1 of the plan cannot be read: 'crash' does not happen to a received basic.ack": lambda f: f.chaos(
        plan="connection 'a': received basic.ack number 2 on channel 1: crash"
    ),
    # --- 0-9
    "there is no method 'message.transfr'; did you mean 'message.transfer'?": lambda f: f.on(
        "message.transfr", protocol="0-9"
    ),
    "there is no method 'tunel.*'; did you mean 'tunnel.*'?": lambda f: f.on("tunel.*"),
    "there is no method 'message.transfer'": lambda f: f.on("message.transfer", protocol="0-8"),
    "there is no method 'basic.nack'; did you mean 'basic.ack'?": lambda f: f.on(
        "basic.nack", protocol="0-8"
    ),
    "there is no protocol '0_9'; did you mean '0-9'?": lambda f: f.on("queue.declare", protocol="0_9"),
    "there are no publisher confirms in 0-8": lambda f: f.on("confirm", protocol="0-8"),
    "a file.open has no field 'identifer'; did you mean 'identifier'?": lambda f: f.on(
        "file.open", identifer="f"
    ),
    "stream.deliver is never received by a broker, only sent": lambda f: f.on(
        "stream.deliver", direction="received"
    ),
    "exception() is for commands of AMQP 0-10, not for a message.transfer: use close_channel()": lambda f: (
        f.on("message.transfer", protocol="0-9").exception(404)
    ),
    "return_message() is for basic.publish, not for a message.transfer": lambda f: f.on(
        "message.transfer", protocol="0-9"
    ).return_message(),
    "a message.consume has no content: replace() can change its fields only": lambda f: f.on(
        "message.consume", protocol="0-9"
    ).replace(body=b"x"),
    "a message.transfer cannot have ttl='soon': ": lambda f: f.on("message.transfer", protocol="0-9").replace(
        ttl="soon"
    ),
    "nack() is for basic.publish and message.transfer, not for an access.request": lambda f: f.on(
        "access.request"
    ).nack(),
    # --- 0-10
    "there is no method 'mesage.transfer'; did you mean 'message.transfer'?": lambda f: f.on(
        "mesage.transfer"
    ),
    "there is no method 'sesion.*'; did you mean 'session.*'?": lambda f: f.on("sesion.*"),
    "there is no method 'basic.publish'; did you mean 'file.publish'?": lambda f: f.on(
        "basic.publish", protocol="0-10"
    ),
    "there is no protocol '0_10'; did you mean '0-10'?": lambda f: f.on("queue.declare", protocol="0_10"),
    (
        "there are no publisher confirms in 0-10: publishers learn of completion instead: "
        "on('session.completed', direction='sent')"
    ): lambda f: f.on("confirm", protocol="0-10"),
    # --- 1.0
    (
        "there are no publisher confirms in 1-0: publishers learn of outcomes instead: "
        "on('disposition', direction='sent')"
    ): lambda f: f.on("confirm", protocol="1-0"),
    "there is no method 'tranfer'; did you mean 'message.transfer' or 'transfer'?": lambda f: f.on("tranfer"),
    "there is no method 'attch'; did you mean 'attach'?": lambda f: f.on("attch", protocol="1-0"),
    "a message.transfer has no field 'destinaton'; did you mean 'destination'?": lambda f: f.on(
        "message.transfer", destinaton="d"
    ),
    "a message.transfer has no field 'content_typ'; did you mean 'content_type'?": lambda f: f.on(
        "message.transfer", content_typ="d"
    ),
    "a message.subscribe has no field 'alternate_exchange'; did you mean 'exchange'?": lambda f: f.on(
        "message.subscribe", alternate_exchange="d"
    ),
    "a basic.publish has no field 'accept_mode'": lambda f: f.on("basic.publish", accept_mode=1),
    "session is compared with a str, a pattern or a function, not 5": lambda f: f.on(
        "message.transfer", session=5
    ),
    "message.acquire is never sent by a broker, only received": lambda f: f.on(
        "message.acquire", direction="sent"
    ),
    "part='header' is for received methods with a content, not a message.accept": lambda f: f.on(
        "message.accept", part="header"
    ),
    "exception() is for commands of AMQP 0-10, not for a basic.publish: use close_channel()": lambda f: f.on(
        "basic.publish"
    ).exception(404),
    "there is no error code 'notfound'; did you mean 'not-found'?": lambda f: f.on(
        "message.transfer"
    ).exception("notfound"),
    "field_index is a number from 0 to 255, not 256": lambda f: f.on("message.transfer").exception(
        404, field_index=256
    ),
    "a session.attach is a control; exceptions are for commands: use close_connection()": lambda f: f.on(
        "session.attach"
    ).exception(404),
    "exception() is for received commands; a message.transfer is sent by the broker": lambda f: f.on(
        "message.transfer", direction="sent"
    ).exception(404),
    "nack() is for received publishes and for confirms; a message.transfer is sent by the broker": lambda f: (
        f.on("message.transfer", direction="sent").nack()
    ),
    "nack() is for message.transfer, not for a message.accept": lambda f: f.on("message.accept").nack(),
    "malform cannot be 'bad-frame-end'; did you mean 'frame-version'?": lambda f: f.on(
        "message.transfer", direction="sent", protocol="0-10"
    ).malform("bad-frame-end"),
    "malform('struct-size') is for methods with a content, such as basic.deliver": lambda f: f.on(
        "execution.result", direction="sent"
    ).malform("struct-size"),
    "a message.transfer cannot have accept_mode='none': ": lambda f: f.on("message.transfer").replace(
        accept_mode="none"
    ),
    "a message.transfer has no 'routing_kye' to replace; did you mean 'routing_key'?": lambda f: f.on(
        "message.transfer"
    ).replace(routing_kye="x"),
    "a message.accept has no content: replace() can change its fields only": lambda f: f.on(
        "message.accept"
    ).replace(body=b"x"),
}
MORE_NONSENSE: dict[str, Callable[[Faults], Any]] = {
    (
        "'confirm' cannot be combined with other names and is always sent; make another rule for them"
    ): lambda f: f.on("confirm", direction="received"),
    "a reply text is a str, not 5": lambda f: f.on("basic.publish").return_message(312, 5),
    "a reply text is a str, not 6": lambda f: f.on("connection.start-ok").refuse_login(6),
    "no content can have priority='low': ": lambda f: f.on("message.transfer", protocol="0-9").replace(
        priority="low"
    ),
    "there is no method 'message.transfer'": lambda f: f.on("message.transfer", protocol="0-9-1"),
    "return_message() is for basic.publish, not for a message.transfer": lambda f: f.on(
        "message.transfer"
    ).return_message(),
    "no content can have priority='high': ": lambda f: f.on("message.transfer").replace(priority="high"),
}
"""Other calls with the same errors."""


@pytest.mark.parametrize(
    ("text", "ask"),
    [*NONSENSE.items(), *MORE_NONSENSE.items()],
    ids=[text[:70] for text in (*NONSENSE, *MORE_NONSENSE)],
)
def test_invalid_argument_of_a_fault_is_an_error_that_explains_the_mistake(
    faults: Faults, text: str, ask: Callable[[Faults], Any]
) -> None:
    with pytest.raises(FaultError) as caught:
        ask(faults)
    if text.endswith(": "):
        assert str(caught.value).startswith(text)
    else:
        assert str(caught.value) == text
    assert isinstance(caught.value, FakeAMQPError)


RULES = (
    "on('basic.publish', queue='q').drop()",
    "on('basic.get', 'basic.consume').delay(1)",
    "on('heartbeat').drop()",
)
# What these may do depends on the dialect of 0-9.
MORE_RULES = ("on('basic.publish').nack()", "on('confirm').hold()", "on('basic.deliver').malform('garbage')")


@pytest.mark.parametrize(("package", "rules"), [("amqp_0_9", RULES), ("amqp_0_10", (*RULES, *MORE_RULES))])
def test_rules_about_0_9_1_do_not_load_the_codec_of_another_protocol(
    package: str, rules: tuple[str, ...]
) -> None:
    code = [
        "import sys, fakeamqp",
        "faults = fakeamqp.Broker().faults",
        *(f"faults.{rule}" for rule in rules),
    ]
    code.append(f"print([name for name in sys.modules if '.{package}.codec' in name])")
    done = subprocess.run(
        [sys.executable, "-c", "; ".join(code)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_method_names_of_a_protocol_are_the_kinds_of_its_dialect() -> None:
    for protocol in protocol_names():
        assert protocol_named(protocol).method_names == tuple(dialect_named(protocol).kinds)


def test_reason_of_an_alarm_has_at_most_255_bytes(faults: Faults) -> None:
    assert faults.disk_alarm("x" * 255).reason == "x" * 255
    with pytest.raises(FaultError, match="1 to 255 bytes"):
        faults.disk_alarm("x" * 256)


def test_rule_with_an_invalid_condition_is_not_in_force(faults: Faults) -> None:
    with pytest.raises(FaultError):
        faults.on("basic.publish", routingkey="x")
    assert faults.rules == ()


class TestMisses:
    def test_verify_reports_the_near_misses_of_an_unused_rule(self, server: FaultServer) -> None:
        server.faults.on("basic.publish", routing_key="orders.#", exchange="").nack()
        publisher = server.publisher("invoices")
        publisher.publish(b"1", b"2")
        publisher.publish(b"3", exchange="amq.topic")
        with pytest.raises(UnusedFault) as caught:
            server.faults.verify()
        assert str(caught.value) == (
            "a fault was installed and never happened (call .optional() on those that need not happen):\n"
            "  - when a basic.publish with routing key 'orders.#' and exchange '' comes: nack it\n"
            "    near miss: basic.publish exchange='' routing_key='invoices': routing_key is 'invoices', "
            "not 'orders.#'\n"
            "    near miss: basic.publish exchange='amq.topic' routing_key='invoices': routing_key is "
            "'invoices', not 'orders.#'\n"
            "see https://fakeamqp.readthedocs.io/troubleshooting/#the-fault-never-fired"
        )

    def test_complaint_lists_three_near_misses_and_counts_the_rest(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish", body=b"x").nack()
        for number in range(5):
            publisher.publish(b"%d" % number, routing_key=f"k{number}")
        assert rule._complaint().splitlines()[1:] == [
            "    near miss: basic.publish exchange='' routing_key='k0': body is b'0', not b'x'",
            "    near miss: basic.publish exchange='' routing_key='k1': body is b'1', not b'x'",
            "    near miss: basic.publish exchange='' routing_key='k2': body is b'2', not b'x'",
            "    ... and 2 more",
        ]

    def test_near_miss_names_the_connection_that_differs(self, server: FaultServer) -> None:
        rule = server.faults.on("queue.declare", connection="biling").drop()
        client = server.client_with("q", client_properties={"connection_name": "billing"})
        assert rule._complaint().splitlines()[1:] == [
            f"    near miss: queue.declare queue='q': the connection is {client.connection.name!r} "
            "('billing', 'c1'), not 'biling'"
        ]

    def test_near_miss_of_an_unroutable_publish_names_no_queue(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.publish", queue="q").drop()
        server.client().publish(b"", routing_key="nowhere")
        assert rule._complaint().splitlines()[1:] == [
            "    near miss: basic.publish exchange='' routing_key='nowhere': queue is nothing, not 'q'"
        ]

    def test_near_miss_names_all_queues_of_a_publish(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.publish", queue="q").drop()
        client = server.client()
        for name in ("a", "b"):
            client.declare(name)
            client.bind(name, "amq.fanout")
        client.publish(exchange="amq.fanout")
        assert "queue is 'a' and 'b', not 'q'" in rule._complaint()

    def test_complaint_tells_of_matches_before_an_unreached_trigger(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.publish").nack().on_call(3)
        server.publisher().publish(b"1", b"2")
        assert rule._complaint().splitlines()[1:] == [
            "    near miss: 2 matched, but the rule was not to fire (only number 3)"
        ]

    def test_fired_call_is_no_near_miss_of_its_rule(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish").nack().once()
        publisher.publish(b"1")
        assert rule._complaint() == rule.sentence
        publisher.publish(b"2", b"3")
        assert rule._complaint().splitlines()[1:] == [
            "    near miss: 3 matched, but the rule was not to fire each time (once at most)"
        ]

    def test_verify_reports_all_unused_faults_except_optional_faults(self, faults: Faults) -> None:
        faults.on("basic.publish").nack()
        faults.on("basic.get").drop().remove()
        faults.on("basic.ack").drop().optional()
        faults.on("basic.nack", optional=True).drop()
        with pytest.raises(UnusedFault) as caught:
            faults.verify()
        assert str(caught.value) == (
            "2 faults were installed and never happened (call .optional() on those that need not happen):\n"
            "  - when a basic.publish comes: nack it\n"
            "  - when a basic.get comes: drop it\n"
            "see https://fakeamqp.readthedocs.io/troubleshooting/#the-fault-never-fired"
        )
        faults.clear()
        faults.verify()

    def test_wait_without_enough_hits_raises_fault_not_seen(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.publish", body=b"2").nack()
        with pytest.raises(FaultNotSeen) as caught:
            rule.wait(timeout=0.5)
        assert str(caught.value) == (
            "waited 0.5 s, and this happened not at all instead of once:\n"
            "  when a basic.publish with body b'2' comes: nack it"
        )
        server.publisher().publish(b"1", b"2")
        rule.wait()
        with pytest.raises(FaultNotSeen) as caught:
            rule.wait(3, timeout=0)
        assert str(caught.value).startswith("waited 0 s, and this happened only once instead of 3 times:\n")


class TestTrace:
    def test_trace_notes_the_rule_and_the_publish_on_which_it_fired(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").nack().once()
        server.publisher().publish(b"1", b"2")
        assert server.said == [
            "when a basic.publish comes: nack it (once at most): basic.publish exchange='' routing_key='q'"
        ]

    def test_trace_notes_that_a_nacked_publish_without_confirms_is_lost(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").nack()
        client = server.client_with("q")
        client.publish(routing_key="q")
        assert server.said[-1] == "no confirms on this channel: the message is lost without an answer"
        assert client.count("q") == 0

    def test_trace_has_the_replaced_answer_and_no_dropped_answer(self, server: FaultServer) -> None:
        server.faults.on("queue.declare-ok").drop().once()
        server.faults.on("queue.declare-ok").replace(message_count=7)
        client = server.client()
        client.send(m.QueueDeclare(queue="p"))
        client.expect_nothing()
        assert client.declare_ok("q").message_count == 7
        assert server.recorder is not None
        sent = [
            event.text
            for event in server.recorder.trace().events
            if getattr(event, "name", "") == "queue.declare-ok"
        ]
        assert len(sent) == 1
        assert "message_count=7" in sent[0]


def test_exception_on_a_heartbeat_is_refused_as_a_control(server: FaultServer) -> None:
    with pytest.raises(FaultError, match="heartbeat is a control; exceptions are for commands"):
        server.faults.on("heartbeat").exception()
