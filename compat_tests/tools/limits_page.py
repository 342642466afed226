"""Writes the table of docs/limits.md from the code: `python -m compat_tests.tools.limits_page`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.model.limits import Bounds
from fakeamqp.model.messages import message, staging
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_9.codec import contents
from fakeamqp.protocols.amqp_0_9_1.codec.tables import MAX_DEPTH
from fakeamqp.protocols.amqp_0_10 import server_connection as connection_0_10
from fakeamqp.protocols.amqp_0_10.codec import types
from fakeamqp.protocols.base import handshakes, server_connection as connection

__all__ = ["PAGE", "ROWS", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"

_RABBITMQ = personality("rabbitmq-4.3")

ROWS: dict[str, tuple[str, str]] = {
    "outbox_deliveries": (
        "bytes of output that one client has not read",
        "no further deliveries until it has read half of it",
    ),
    "outbox_input": (
        "the same",
        "from the next method on, the broker reads and handles no further input until the client reads",
    ),
    "history_octets": (
        "bytes of messages with headers, in each of `published`, `returned`, `dead_lettered`, `dropped`",
        "none: the broker removes the oldest records",
    ),
    "trace_octets": (
        "bytes of the trace, where headers or arguments have more than 4 KiB",
        "none: the broker removes the oldest events",
    ),
    "pending_handshakes": (
        "connections that have not logged in",
        "the broker ends the oldest connection; the log has up to 50 warnings in 10 s, then a count",
    ),
    "consumers_per_channel": (
        "consumers of one channel; subscriptions and consumers of one session",
        "0-9-1, 0-9: `connection.close` 530, with RabbitMQ's text for `consumer_max_per_channel` (measured "
        "on 4.3.6). 0-10: `execution.exception` not-allowed",
    ),
    "bindings_per_virtual_host": (
        "bindings of one virtual host",
        "as at the limit of queues. 0-9-1: `channel.close` 406; in `spec`, and in 0-9, "
        "`connection.close` 506. 0-10: `execution.exception` illegal-argument, in `spec` "
        "resource-limit-exceeded",
    ),
    "idle_frames": (
        "heartbeats and empty frames in a row, within 10 s",
        "0-9-1, 0-9: `connection.close` 506. 0-10: `connection.close` connection-forced",
    ),
    "detached_sessions": (
        "sessions of 0-10 that are kept without a connection",
        "the broker ends the session detached longest, with a warning; its client gets a new session when it "
        "resumes",
    ),
    "http_connections": (
        "connections of the HTTP port; at most a quarter of the descriptors that the process may have",
        "the API ends the connection that has waited longest for its client; the new one gets 503 if all "
        "wait for answers",
    ),
}
"""What each of `Bounds` counts, and its effect on the peer."""


def _bounds() -> str:
    rows = [
        [f"`{each.name}`", f"{each.default:,}".replace(",", " "), *ROWS[each.name]] for each in fields(Bounds)
    ]
    return tables.table(["Bound", "Default", "Counts", "Effect on the peer"], rows)


def _others() -> str:
    mib = 1024 * 1024
    rows = [
        [
            "bytes of all messages",
            "1 GiB, or 40 % of the machine's memory if that is less",
            "`memory_limit`",
            "see above",
        ],
        ["records of each history", "100 000", "`history`", "none"],
        ["events of the trace", "10 000", "`trace`", "none"],
        [
            "one message",
            f"{_RABBITMQ.largest_message // mib} MiB; `serve`: 128 MiB; `spec`: none",
            "`largest_message`",
            "0-9-1: `channel.close` 406, or 311 by personality. 0-10: `execution.exception` "
            "resource-limit-exceeded, as soon as that much has arrived",
        ],
        [
            "the size that a content header announces",
            f"{_RABBITMQ.largest_content // mib} MiB from `rabbitmq-4.2` on",
            "`largest_content`",
            "`connection.close` 501",
        ],
        [
            "controls of 0-10 in several frames, for each connection",
            f"{connection_0_10._LARGEST_CONTROLS // mib} MiB",
            "",
            "`connection.close` framing-error",
        ],
        ["one frame", str(_RABBITMQ.frame_max), "`frame_max`", "`connection.close` 501"],
        [
            "channels of one connection",
            str(_RABBITMQ.channel_max),
            "`channel_max`",
            "`connection.close` 530; in `spec` 504. 0-10: framing-error",
        ],
        [
            "connections, queues and channels",
            "none",
            "`set_limits`, `set_user_limits`, definitions",
            "RabbitMQ's answers",
        ],
        [
            "nested tables of 0-9-1 and 0-9 that the broker decodes",
            str(MAX_DEPTH),
            "",
            "none: the broker checks deeper ones and passes them on unchanged; in Python they are bytes",
        ],
        ["nested contents of 0-9", str(contents.MAX_DEPTH), "", "`connection.close` 502"],
        ["nested values of 0-10", str(types.MAX_DEPTH), "", "`execution.exception` command-invalid"],
        ["a handshake", f"{connection._HANDSHAKE_TIMEOUT:g} s", "", "the broker ends the transport"],
        [
            "time in which a client reads no output",
            f"{_RABBITMQ.send_timeout:g} s; `spec`: none",
            "`send_timeout`",
            "the broker ends the transport",
        ],
        [
            "contents that a session or channel stages (classes file and stream)",
            str(staging._MOST),
            "",
            "`connection.close` 506; 0-10: resource-limit-exceeded",
        ],
        [
            "unfinished messages that ended sessions leave behind",
            f"{message._MOST_MESSAGES}, with {message._MOST_OCTETS // mib} MiB",
            "",
            "the oldest cannot be continued",
        ],
        [
            "warnings about clients before their login, and about detached sessions that end",
            f"{handshakes.MOST_WARNINGS} in {handshakes.PERIOD:g} s",
            "",
            "none: one warning counts the others",
        ],
    ]
    return tables.table(["Limit", "Default", "Argument of `Broker`", "Effect on the peer"], rows)


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    return tables.with_tables(page, {"bounds": _bounds, "others": _others})


def main() -> None:
    """Write the tables."""
    PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main()
