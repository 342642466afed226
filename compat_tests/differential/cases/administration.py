"""What an operator changes under open connections: accounts, permissions, limits, virtual hosts; closes."""

from __future__ import annotations

from compat_tests.differential.raw_client import CAPABILITIES
from compat_tests.differential.script import *

ADD_USER = operate("add_user", "@u", "p")
DELETE_USER = operate("delete_user", "@u")
AS_USER = connect("b", user="@u", password="p")
RARE_TICKS = Setting("set_channel_tick", "60000")
"""As by default. A channel that ticks more often than once a second is never idle."""
BLIND = {name: True for name in CAPABILITIES if name != "consumer_cancel_notify"}


def as_user(case_id: str, *steps: Step | list[Step], setting: Setting | None = None) -> None:
    """A case with user @u, who has all permissions in the virtual host /."""
    each(case_id, [ADD_USER], *steps, [DELETE_USER], setting=setting)


def permit(configure: str, write: str, read: str) -> Step:
    return operate("set_permissions", "@u", configure, write, read)


# --- permissions -------------------------------------------------------------------------------------------

for _id, _step in (
    ("publish", publish(on="b")),
    ("publish-to-an-exchange", publish(exchange="amq.direct", on="b")),
    ("get", get(on="b")),
    ("consume", consume(on="b")),
    ("declare", queue("@other", on="b")),
    ("declare-again", queue(on="b")),
    ("declare-passively", queue(passive=1, on="b")),
    ("bind", bind(exchange="amq.direct", on="b")),
    ("purge", call("queue.purge", queue="@q", on="b")),
    ("delete", call("queue.delete", queue="@q", on="b")),
    ("exchange", exchange(on="b")),
):
    each(
        f"permission/taken-before-{_id}",
        [ADD_USER, queue(), AS_USER, permit("", "", "")],
        _step,
        [DELETE_USER],
    )
for _id, _first, _second in (
    ("publish", publish(on="b"), publish(on="b")),
    ("get", get(on="b"), get(on="b")),
    ("declare", queue("@other", on="b"), queue("@other", on="b")),
    ("consume", consume(tag="c", on="b"), consume(tag="d", on="b")),
):
    each(
        f"permission/taken-between-two-of-{_id}",
        [ADD_USER, queue(), AS_USER],
        _first,
        # RabbitMQ's channels remember what they have granted until they have been idle for a second.
        [permit("", "", "")],
        pause(2.5, on="b"),
        _second,
        [DELETE_USER],
        setting=RARE_TICKS,
    )
as_user(
    "permission/consumer-goes-on",
    [queue(), AS_USER, consume(on="b"), permit("", "", ""), publish()],
    arrivals(on="b"),
    ack(1, on="b"),
)
as_user(
    "permission/given-under-an-open-channel",
    [permit("", "", ""), AS_USER, permit(".*", ".*", ".*")],
    queue(on="b"),
    publish(on="b"),
    get(on="b"),
)
as_user(
    "permission/cleared-under-an-open-connection",
    [AS_USER, operate("clear_permissions", "@u")],
    pause(on="b"),
    queue(on="b"),
    open_channel(2).by("b"),
)
as_user(
    "permission/taken-before-a-commit",
    [queue(), AS_USER, TX.by("b"), publish(on="b"), permit("", "", "")],
    call("tx.commit", on="b"),
    get(),
)
as_user(
    "permission/of-topics-taken",
    [AS_USER, queue(), bind(exchange="amq.topic", routing_key="k")],
    publish("@k", exchange="amq.topic", on="b"),
    [operate("set_topic_permissions", "@u", "amq.topic", "^no$", "^no$")],
    publish("@other", exchange="amq.topic", on="b"),
)
as_user(
    "permission/of-topics-given",
    [operate("set_topic_permissions", "@u", "amq.topic", "^no$", "^no$"), AS_USER],
    publish("no", exchange="amq.topic", on="b"),
    publish("other", exchange="amq.topic", on="b"),
    [operate("set_topic_permissions", "@u", "amq.topic", ".*", ".*"), open_channel(1).by("b")],
    publish("other", exchange="amq.topic", on="b"),
)

# --- users -------------------------------------------------------------------------------------------------

each(
    "user/deleted-under-an-open-connection",
    [ADD_USER, AS_USER, queue(on="b"), DELETE_USER],
    pause(1.0, on="b"),
    connect("c", user="@u", password="p"),
)
each(
    "user/deleted-with-exclusive-queue",
    [ADD_USER, AS_USER, queue("@x", exclusive=1, on="b"), DELETE_USER],
    pause(1.0, on="b"),
    queue("@x", passive=1),
)
each(
    "user/deleted-with-unacknowledged-message",
    [ADD_USER, AS_USER, queue(), publish(), consume(on="b"), arrivals(on="b"), DELETE_USER],
    pause(1.0, on="b"),
    get(),
)
each(
    "user/deleted-without-a-channel",
    [ADD_USER, connect("b", user="@u", password="p", channels=()), DELETE_USER],
    pause(1.0, on="b"),
)
each(
    "user/deleted-and-two-connections",
    [ADD_USER, AS_USER, connect("c", user="@u", password="p"), DELETE_USER],
    pause(1.0, on="b"),
    pause(on="c"),
)
each(
    "user/deleted-that-told-no-capabilities",
    [ADD_USER, connect("b", user="@u", password="p", capabilities={}), DELETE_USER],
    pause(1.0, on="b"),
)
as_user(
    "user/password-changed-under-an-open-connection",
    [AS_USER, operate("change_password", "@u", "q")],
    pause(0.5, on="b"),
    queue(on="b"),
    open_channel(2).by("b"),
)

# --- virtual hosts -----------------------------------------------------------------------------------------

ADD_VHOST = operate("add_virtual_host", "@v")
DELETE_VHOST = operate("delete_virtual_host", "@v")
THERE = connect("b", vhost="@v")


def in_vhost(case_id: str, *steps: Step | list[Step]) -> None:
    """A case with virtual host @v."""
    each(case_id, [ADD_VHOST], *steps, [DELETE_VHOST])


def told(seconds: float, on: str) -> Step:
    """What the client of a deleted virtual host is told: RabbitMQ stops the virtual host and deletes it, and
    each closes connections."""
    quiet = pause(seconds, on=on)
    return lambda scene: [text.replace("is down", "is deleted") for text in quiet(scene)]


each(
    "vhost/deleted-with-a-consumer",
    [ADD_VHOST, THERE, queue(on="b"), consume(on="b"), DELETE_VHOST],
    told(1.0, "b"),
)
each(
    "vhost/deleted-with-unread-messages",
    [ADD_VHOST, THERE, queue(on="b"), CONFIRMS.by("b"), publish(on="b", settle=0.3), DELETE_VHOST],
    told(1.0, "b"),
)
each(
    "vhost/deleted-under-an-open-connection",
    [ADD_VHOST, THERE, queue(on="b"), DELETE_VHOST],
    told(1.0, "b"),
    connect("c", vhost="@v"),
)
each(
    "vhost/deleted-without-a-channel",
    [ADD_VHOST, connect("b", vhost="@v", channels=()), DELETE_VHOST],
    told(1.0, "b"),
)
in_vhost(
    "vhost/deleted-and-added-again",
    [THERE, queue(durable=1, on="b"), exchange(durable=1, on="b"), DELETE_VHOST, ADD_VHOST],
    connect("c", vhost="@v"),
    queue(passive=1, on="c"),
    open_channel(2).by("c"),
    exchange(passive=1, ch=2, on="c"),
)
each(
    "vhost/deleted-and-two-connections",
    [ADD_VHOST, THERE, connect("c", vhost="@v"), DELETE_VHOST],
    told(1.0, "b"),
    told(0.5, "c"),
)
in_vhost("vhost/added-queues-are-its-own", [THERE, queue(on="b")], queue(passive=1))
each(
    "vhost/deleted-while-another-is-used",
    [ADD_VHOST, queue(), DELETE_VHOST],
    pause(0.5),
    get(),
)

# --- limits ------------------------------------------------------------------------------------------------


def user_limits(limits: str) -> Step:
    return operate("set_user_limits", "@u", limits)


def vhost_limits(limits: str) -> Step:
    return operate("set_limits", "@v", limits)


as_user(
    "limits/user-channels-lowered-below-those-open",
    [AS_USER, open_channel(2).by("b"), open_channel(3).by("b"), user_limits('{"max-channels": 1}')],
    pause(on="b"),
    queue(on="b", exclusive=1),
    call("channel.close", ch=3, on="b"),
    open_channel(3).by("b"),
)
as_user(
    "limits/user-channels-of-two-connections",
    [user_limits('{"max-channels": 2}'), AS_USER],
    connect("c", user="@u", password="p"),
    open_channel(2).by("b"),
    open_channel(2).by("c"),
)
as_user(
    "limits/user-channels-unlimited",
    [user_limits('{"max-channels": 1}'), user_limits('{"max-channels": -1}'), AS_USER],
    open_channel(2).by("b"),
)
as_user(
    "limits/user-connections-lowered-below-those-open",
    [AS_USER, user_limits('{"max-connections": 0}')],
    pause(on="b"),
    open_channel(2).by("b"),
    connect("c", user="@u", password="p"),
)
as_user(
    "limits/user-connections-freed",
    [user_limits('{"max-connections": 1}'), AS_USER],
    connect("c", user="@u", password="p"),
    call("connection.close", ch=0, on="b", reply_code=200),
    # RabbitMQ counts connections whose sockets the client has not ended.
    connect("d", user="@u", password="p"),
    [drop("b"), pause(0.5)],
    connect("e", user="@u", password="p"),
)
as_user(
    "limits/user-both-and-vhost",
    [user_limits('{"max-connections": 0, "max-channels": 0}')],
    connect("b", user="@u", password="p"),
    connect("c", user="@u", password="p", vhost="nope"),
)
in_vhost(
    "limits/vhost-connections-lowered-below-those-open",
    [THERE, vhost_limits('{"max-connections": 0}')],
    pause(on="b"),
    open_channel(2).by("b"),
    connect("c", vhost="@v"),
)
in_vhost(
    "limits/vhost-connections-raised",
    [vhost_limits('{"max-connections": 0}')],
    connect("b", vhost="@v"),
    [vhost_limits('{"max-connections": 1}')],
    connect("c", vhost="@v"),
    connect("d", vhost="@v"),
    [vhost_limits('{"max-connections": -1}')],
    connect("e", vhost="@v"),
)
in_vhost(
    "limits/vhost-connections-without-a-permission",
    [vhost_limits('{"max-connections": 0}')],
    connect("b", vhost="@v", user="probe-limited", password="limited"),
)
in_vhost(
    "limits/vhost-queues-lowered-below-those-there",
    [THERE, queue("@1", on="b"), queue("@2", on="b"), vhost_limits('{"max-queues": 1}')],
    queue("@1", on="b"),
    publish("@2", on="b"),
    get("@2", on="b"),
    queue("@3", on="b"),
)
in_vhost(
    "limits/vhost-queues-raised",
    [THERE, vhost_limits('{"max-queues": 0}')],
    queue("@1", on="b"),
    [vhost_limits('{"max-queues": 1}'), open_channel(2).by("b")],
    queue("@1", ch=2, on="b"),
    queue("@2", ch=2, on="b"),
)
in_vhost(
    "limits/vhost-queues-and-exclusive-ones",
    [THERE, vhost_limits('{"max-queues": 1}'), queue("@1", exclusive=1, on="b")],
    queue("@2", on="b"),
)
in_vhost(
    "limits/vhost-queues-durable", [THERE, vhost_limits('{"max-queues": 0}')], queue("@1", durable=1, on="b")
)

# --- connections closed by an operator ---------------------------------------------------------------------


def closed(name: str, deed: str, reason: str, *before: Call | Step, **how: object) -> None:
    each(
        f"closed/{name}",
        [ADD_USER, connect("b", user="@u", password="p", **how), *before, operate(deed, "@u", reason)],
        pause(0.5, on="b"),
        [DELETE_USER],
    )


closed("by-operator", "close_connections_of", "maintenance")
closed("by-operator-without-a-reason", "close_connections_of", "")
closed("by-operator-with-a-long-reason", "close_connections_of", "x" * 300)
closed("by-operator-without-a-channel", "close_connections_of", "m", channels=())
closed("by-operator-without-capabilities", "close_connections_of", "m", capabilities={})
closed("by-operator-with-an-open-transaction", "close_connections_of", "m", TX.by("b"), publish(on="b"))
closed("by-operator-with-a-consumer", "close_connections_of", "m", queue(), consume(on="b"))
closed("all-of-a-user", "close_user_connections", "maintenance")
closed("all-of-a-user-without-a-reason", "close_user_connections", "")
each(
    "closed/by-operator-returns-what-was-not-acknowledged",
    [
        ADD_USER,
        queue(),
        publish(),
        AS_USER,
        get(no_ack=0, on="b"),
        operate("close_connections_of", "@u", "m"),
    ],
    pause(0.5, on="b"),
    get(),
    [DELETE_USER],
)
as_user(
    "closed/by-operator-and-the-client-goes-on",
    [connect("b", user="@u", password="p", answers=False)],
    [operate("close_connections_of", "@u", "m")],
    pause(0.5, on="b"),
    [call("publish", routing_key="@q", body="1", on="b")],
    call("connection.close-ok", ch=0, on="b"),
)
as_user(
    "closed/by-operator-twice",
    [connect("b", user="@u", password="p", answers=False)],
    [operate("close_connections_of", "@u", "one"), operate("close_connections_of", "@u", "two")],
    pause(0.5, on="b"),
)
as_user(
    "closed/by-operator-with-unconfirmed-publishes",
    [queue(), AS_USER, CONFIRMS.by("b"), publish(on="b", settle=0.3)],
    [operate("close_connections_of", "@u", "m")],
    pause(0.5, on="b"),
    get(),
)
