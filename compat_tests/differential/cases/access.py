"""Exclusive queues and consumers, and what an account may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat_tests.differential.cases.connections import REFUSAL
from compat_tests.differential.codec import encode_table
from compat_tests.differential.script import *

# --- exclusive

for _id, _s in [
    ("declare", queue()),
    ("declare-exclusive", queue(exclusive=1)),
    ("declare-passive", queue(passive=1)),
    ("delete", call("queue.delete", queue="@q")),
    ("purge", call("queue.purge", queue="@q")),
    ("bind", bind("@q", "amq.direct")),
    ("unbind", call("queue.unbind", queue="@q", exchange="amq.direct")),
    ("consume", consume()),
    ("get", get()),
]:
    last(f"405/{_id}", queue(exclusive=1), _s.by("b"))
each("405/publish-is-allowed", [queue(exclusive=1)], publish("@q", "m", on="b"), get())
last("405/owner-redeclares-without-flag", queue(exclusive=1), queue())
last("405/owner-passive-without-flag", queue(exclusive=1), queue(passive=1))
last("405/owner-other-channel", queue(exclusive=1), open_channel(2), consume(ch=2))
last("405/exclusive-flag-on-shared-queue", queue(), queue(exclusive=1))
last("405/exclusive-flag-on-shared-queue-other-connection", queue(), queue(exclusive=1, on="b"))
each(
    "405/gone-with-connection",
    [queue(exclusive=1, on="b")],
    call("connection.close", ch=0, on="b", reply_code=200),
    queue(passive=1),
)
last("403/exclusive-consumer-beside", queue(), consume(tag="c1"), consume(tag="c2", exclusive=1))
last("403/consumer-beside-exclusive", queue(), consume(tag="c1", exclusive=1), consume(tag="c2"))
last("403/two-exclusive-consumers", queue(), consume(tag="c1", exclusive=1), consume(tag="c2", exclusive=1))
last(
    "403/consumer-beside-exclusive-other-connection",
    queue(),
    consume(tag="c1", exclusive=1),
    consume(tag="c2", on="b"),
)
each("403/exclusive-consumer-get-is-allowed", queue(), consume(tag="c1", exclusive=1), get(on="b"))
last("530/duplicate-consumer-tag", queue(), consume(tag="c1"), consume(tag="c1"))
last(
    "530/duplicate-consumer-tag-other-queue",
    queue(),
    queue("@q2"),
    consume(tag="c1"),
    consume("@q2", tag="c1"),
)
last("530/duplicate-consumer-tag-nowait", queue(), consume(tag="c1"), consume(tag="c1", no_wait=1))
each("530/same-tag-on-two-channels", queue(), consume(tag="c1"), open_channel(2), consume(tag="c1", ch=2))
each("530/duplicate-tag-missing-queue", queue(), consume(tag="c1"), consume("@none", tag="c1"))

# --- accounts


def _as(name: str, password: str) -> Callable[..., None]:
    """Makes cases in which the last step is taken by the user of this name."""

    def add(case_id: str, *steps: Call) -> None:
        def log_in(scene: Scene) -> list[str]:
            scene.client("user", user=name, password=password)
            return []

        last(f"acl/{case_id}", *steps[:-1], log_in, steps[-1].by("user"))

    return add


limited = _as("probe-limited", "limited")
"""May configure '^(.*ok.*|amq\\.gen.*)$', write '^.*(ok|ww).*$', read '^.*(ok|rr).*$'."""
limited("queue.declare", queue("@no"))
limited("queue.declare-ok", queue("@ok"))
limited("queue.declare-passive-existing", queue("@no"), queue("@no", passive=1))
limited("queue.declare-passive-missing", queue("@no", passive=1))
limited("queue.declare-dlx-no-write", queue("@ok1", arguments={"x-dead-letter-exchange": "@xx"}))
limited("queue.declare-dlx-no-read", queue("@rr-no", arguments={"x-dead-letter-exchange": "@ok"}))
limited("queue.declare-dlx-queue-not-readable", queue("@ok", arguments={"x-dead-letter-exchange": "@ok"}))
limited("queue.delete", queue("@no"), call("queue.delete", queue="@no"))
limited("queue.delete-missing", call("queue.delete", queue="@no"))
limited("queue.purge", queue("@no"), call("queue.purge", queue="@no"))
limited("queue.purge-missing", call("queue.purge", queue="@no"))
limited("queue.bind-queue", queue("@no"), bind("@no", "amq.direct"))
limited("queue.bind-exchange", queue("@ww"), exchange("@no"), bind("@ww", "@no"))
limited("queue.unbind", queue("@no"), call("queue.unbind", queue="@no", exchange="amq.direct"))
limited("queue.bind-missing", bind("@no", "@no"))
limited("exchange.declare", exchange("@no"))
limited("exchange.declare-passive-existing", exchange("@no"), exchange("@no", passive=1))
limited("exchange.declare-ae-no-write", exchange("@ok", arguments={"alternate-exchange": "@no"}))
limited("exchange.delete", exchange("@no"), call("exchange.delete", exchange="@no"))
limited("exchange.delete-missing", call("exchange.delete", exchange="@no"))
limited(
    "exchange.bind-destination",
    exchange("@no"),
    exchange("@rr"),
    call("exchange.bind", destination="@no", source="@rr"),
)
limited(
    "exchange.bind-source",
    exchange("@ww"),
    exchange("@no"),
    call("exchange.bind", destination="@ww", source="@no"),
)
limited("basic.publish", exchange("@no"), publish("k", exchange="@no"))
limited("basic.publish-missing", publish("k", exchange="@no"))
limited("basic.publish-default", publish("k"))
limited("basic.consume", queue("@no"), consume("@no"))
limited("basic.get", queue("@no"), get("@no"))
limited("basic.get-missing", get("@no"))
limited("exchange.declare-unknown-type-no-permission", exchange("@no", "bogus"))
limited("queue.declare-amq", queue("amq.zz"))
limited("exchange.delete-amq", call("exchange.delete", exchange="amq.direct"))
limited("queue.declare-server-named", queue("", exclusive=1))

by_topic = _as("probe-topic", "topic")
"""May do everything, but write to and read from amq.topic only by keys that match '^ok'."""
by_topic("topic-write", publish("no", exchange="amq.topic"))
by_topic("topic-write-ok", publish("ok", exchange="amq.topic"))
by_topic("topic-bind", queue(), bind("@q", "amq.topic", "no"))
by_topic("topic-bind-ok", queue(), bind("@q", "amq.topic", "ok.#"))
by_topic("topic-unbind", queue(), call("queue.unbind", queue="@q", exchange="amq.topic", routing_key="no"))
by_topic(
    "topic-e2e",
    exchange("@d"),
    call("exchange.bind", destination="@d", source="amq.topic", routing_key="no"),
)
by_topic("topic-other-exchange", exchange("@x", "topic"), publish("no", exchange="@x"))
by_topic("topic-cc", publish("ok", exchange="amq.topic", props={"headers": {"CC": ["no"]}}))


def _vhost(case_id: str, vhost: str, **login: str) -> None:
    @case(f"acl/{case_id}")
    def _(scene: Scene) -> list[str]:
        scene.client(vhost=vhost, **login)
        return ["let in"]


_vhost("vhost-no-access", "probe-empty")
_vhost("vhost-no-access-other-user", "/", user="probe-novhost", password="novhost")
_vhost("vhost-missing-other-user", "nope", user="probe-novhost", password="novhost")

# --- each right by itself

_RIGHTS = ("configure", "write", "read")
_REPLIES = "amq.rabbitmq.reply-to"
_NEEDING: dict[str, tuple[Call, ...]] = {
    "queue.declare": (queue(),),
    "queue.declare-again": (queue(), queue()),
    "queue.declare-passive": (queue(), queue(passive=1)),
    "queue.declare-server-named": (queue("", exclusive=1),),
    "queue.declare-dead-letters": (exchange(), queue(arguments={"x-dead-letter-exchange": "@x"})),
    "queue.declare-dead-letters-missing": (queue(arguments={"x-dead-letter-exchange": "@none"}),),
    "queue.declare-dead-letters-default": (queue(arguments={"x-dead-letter-exchange": ""}),),
    "queue.declare-dead-letters-again": (
        queue(arguments={"x-dead-letter-exchange": ""}),
        queue(arguments={"x-dead-letter-exchange": ""}),
    ),
    "queue.declare-dead-letters-other": (queue(), queue(arguments={"x-dead-letter-exchange": ""})),
    "queue.declare-dead-letters-server-named": (
        queue("", exclusive=1, arguments={"x-dead-letter-exchange": ""}),
    ),
    "queue.declare-reply-to": (queue(_REPLIES, passive=1),),
    "queue.delete": (queue(), call("queue.delete", queue="@q")),
    "queue.purge": (queue(), call("queue.purge", queue="@q")),
    "queue.bind": (queue(), exchange(), bind()),
    "queue.unbind": (queue(), exchange(), bind(), call("queue.unbind", queue="@q", exchange="@x")),
    "queue.bind-default": (queue(), bind("@q", "")),
    "queue.unbind-default": (queue(), call("queue.unbind", queue="@q", exchange="")),
    "exchange.declare": (exchange(),),
    "exchange.declare-again": (exchange(), exchange()),
    "exchange.declare-passive": (exchange(), exchange(passive=1)),
    "exchange.declare-alternate": (exchange("@y"), exchange(arguments={"alternate-exchange": "@y"})),
    "exchange.declare-alternate-missing": (exchange(arguments={"alternate-exchange": "@none"}),),
    "exchange.declare-alternate-default": (exchange(arguments={"alternate-exchange": ""}),),
    "exchange.declare-alternate-again": (
        exchange(arguments={"alternate-exchange": ""}),
        exchange(arguments={"alternate-exchange": ""}),
    ),
    "exchange.delete": (exchange(), call("exchange.delete", exchange="@x")),
    "exchange.bind": (
        exchange(),
        exchange("@y"),
        call("exchange.bind", destination="@x", source="@y"),
    ),
    "exchange.unbind": (
        exchange(),
        exchange("@y"),
        call("exchange.bind", destination="@x", source="@y"),
        call("exchange.unbind", destination="@x", source="@y"),
    ),
    "exchange.bind-default": (exchange(), call("exchange.bind", destination="@x", source="")),
    "exchange.bind-to-default": (exchange(), call("exchange.bind", destination="", source="@x")),
    "basic.publish": (exchange(), publish("k", exchange="@x", settle=0.2)),
    "basic.publish-default": (queue(), publish(settle=0.2)),
    "basic.publish-mandatory": (exchange(), publish("k", exchange="@x", mandatory=1, settle=0.2)),
    "basic.publish-copies": (
        queue(),
        exchange(),
        publish("k", exchange="@x", props={"headers": {"CC": ["@q"]}}, settle=0.2),
    ),
    "basic.publish-reply": (publish(f"{_REPLIES}.none", settle=0.2),),
    "basic.consume": (queue(), consume()),
    "basic.consume-replies": (consume(_REPLIES, no_ack=1),),
    "basic.get": (queue(), get()),
    "basic.qos": (call("basic.qos", prefetch_count=1),),
    "confirm.select": (call("confirm.select"),),
    "tx.select": (call("tx.select"),),
}
"""What takes a right; the last step is taken by a user who lacks one right, or has only that one."""

for _right in _RIGHTS:
    for _user in (f"probe-no-{_right}", f"probe-only-{_right}"):
        _lacking = _as(_user, "p")
        for _id, _steps in _NEEDING.items():
            _lacking(f"{_id}-by-{_user.removeprefix('probe-')}", *_steps)

# --- passwords

for _mechanism, _response in (
    ("plain", {"response": "\0probe-blank\0"}),
    (
        "amqplain",
        {"mechanism": "AMQPLAIN", "response": encode_table({"LOGIN": "probe-blank", "PASSWORD": ""})[4:]},
    ),
):

    @case(f"acl/blank-password-{_mechanism}", alone=True)
    def _blank(scene: Scene, how: dict[str, Any] = _response) -> list[str]:
        """A blank password lets no one in, not even an account whose password is blank."""
        operate("add_user", "probe-blank", "")(scene)
        client = scene.client("blank", handshake=False)
        client.start_ok(**how)
        came = client.until("connection.tune", seconds=REFUSAL)
        operate("delete_user", "probe-blank")(scene)
        return came


@case("acl/anonymous-with-another-password", alone=True)
def _anonymous(scene: Scene) -> list[str]:
    """ANONYMOUS is a login as guest with the password guest."""
    operate("change_password", "guest", "another")(scene)
    client = scene.client("nobody", handshake=False)
    client.start_ok(mechanism="ANONYMOUS", response="")
    came = client.until("connection.tune", seconds=REFUSAL)
    operate("change_password", "guest", "guest")(scene)
    return came
