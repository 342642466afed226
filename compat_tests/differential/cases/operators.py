"""What an operator does to a whole broker, and what clients see of it."""

from __future__ import annotations

from compat_tests.differential.raw_client import CAPABILITIES
from compat_tests.differential.script import *

ALL_CLEAR = operate("set_alarms")

for _id, _resources in (("memory", ["memory"]), ("disk", ["disk"]), ("both", ["memory", "disk"])):
    each(
        f"operator/alarm-{_id}",
        [queue(), consume(), CONFIRMS, connect("b")],
        [operate("set_alarms", *_resources)],
        # Only who publishes is told, and heard no more.
        pause(),
        [call("publish", exchange="", routing_key="@q", body="1", on="b")],
        pause(0.5, on="b"),
        pause(),
        [ALL_CLEAR],
        arrivals(on="b"),
        arrivals(),
        alone=True,
    )
each(
    "operator/alarm-and-a-new-connection",
    [operate("set_alarms", "memory"), queue()],
    connect("b"),
    queue("@q2", on="b"),
    consume("@q2", on="b"),
    pause(on="b"),
    [ALL_CLEAR],
    pause(on="b"),
    alone=True,
)
each(
    "operator/alarm-untold",
    [
        queue(),
        connect("b", capabilities={name: name != "connection.blocked" for name in CAPABILITIES}),
        operate("set_alarms", "memory"),
        call("publish", exchange="", routing_key="@q", body="1", on="b"),
    ],
    pause(0.5, on="b"),
    [ALL_CLEAR],
    pause(0.5, on="b"),
    get(),
    alone=True,
)
each(
    "operator/alarm-turns-into-another",
    [queue(), connect("b"), operate("set_alarms", "memory")],
    [call("publish", exchange="", routing_key="@q", body="1", on="b")],
    pause(0.5, on="b"),
    [operate("set_alarms", "disk")],
    pause(0.5, on="b"),
    [ALL_CLEAR],
    pause(0.5, on="b"),
    alone=True,
)
for _id, _reason in (("", "maintenance"), ("-without-a-reason", "")):
    each(
        f"operator/close-all-connections{_id}",
        [queue(), connect("b")],
        [operate("close_all_connections", _reason)],
        arrivals(on="b"),
        arrivals(),
        alone=True,
    )
each(
    "operator/permissions-taken-under-an-open-channel",
    [connect("b", user="probe-changing", password="p"), queue(on="b"), publish(on="b")],
    [operate("set_permissions", "probe-changing", "", "", "")],
    get(on="b"),
    [open_channel(1).by("b")],
    publish(on="b"),
    [open_channel(1).by("b")],
    queue("@other", on="b"),
    [operate("set_permissions", "probe-changing", ".*", ".*", ".*")],
    alone=True,
)


@case("operator/restart", alone=True)
def _restart(scene: Scene) -> list[str]:
    """Durable queues and persistent messages survive; connections do not."""
    for step in (
        queue("@durable", durable=1),
        queue("@transient"),
        CONFIRMS,
        publish("@durable", "1", props={"delivery_mode": 2}, settle=0.3),
        publish("@durable", "2", settle=0.3),
    ):
        step(scene)
    operate("restart")(scene)
    came = scene.a.drain(5.0)
    told = [
        text for name in ("durable", "transient") for text in queue(f"@{name}", passive=1, on=name)(scene)
    ]
    told += get("@durable", on="durable")(scene)
    call("queue.delete", queue="@durable", on="durable")(scene)
    return [*came, *told]
