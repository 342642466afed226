"""Limits of virtual hosts and users."""

from __future__ import annotations

from compat_tests.differential.script import *

each(
    "limit/queues-of-a-vhost",
    [connect("b", vhost="probe-one-queue")],
    queue("@one", exclusive=1, on="b"),
    queue("@one", exclusive=1, on="b"),
    queue("@two", exclusive=1, on="b"),
    alone=True,
)
each(
    "limit/queues-of-a-vhost-again",
    [connect("b", vhost="probe-one-queue")],
    [until("declare-ok", queue("@one", exclusive=1, on="b"), tries=1)],
    call("queue.delete", queue="@one", on="b"),
    queue("@two", exclusive=1, on="b"),
    alone=True,
)
each("limit/no-queue-in-a-vhost", connect("b", vhost="probe-no-queue"), queue("@q", exclusive=1, on="b"))
each("limit/no-queue-server-named", connect("b", vhost="probe-no-queue"), queue("", exclusive=1, on="b"))
each(
    "limit/no-queue-quorum",
    connect("b", vhost="probe-no-queue"),
    queue("@q", durable=1, arguments={"x-queue-type": "quorum"}, on="b"),
)
each(
    "limit/no-queue-stream",
    connect("b", vhost="probe-no-queue"),
    queue("@q", durable=1, arguments={"x-queue-type": "stream"}, on="b"),
)
each("limit/no-queue-passive", connect("b", vhost="probe-no-queue"), queue("@q", passive=1, on="b"))
each("limit/no-queue-no-wait", connect("b", vhost="probe-no-queue"), queue("@q", no_wait=1, on="b"))
each(
    "limit/connections-of-a-vhost",
    connect("b", vhost="probe-one-connection"),
    connect("c", vhost="probe-one-connection"),
)
each("limit/no-connection-to-a-vhost", connect("b", vhost="probe-no-connection"))
each(
    "limit/connections-of-a-user",
    connect("b", user="probe-one-connection", password="p"),
    connect("c", user="probe-one-connection", password="p"),
)
each("limit/no-connection-of-a-user", connect("b", user="probe-no-connection", password="p"))
each(
    "limit/channels-of-a-user",
    connect("b", user="probe-one-channel", password="p"),
    open_channel(2).by("b"),
    queue("@q", exclusive=1, on="b"),
)
each("limit/no-channel-of-a-user", connect("b", user="probe-no-channel", password="p"))
