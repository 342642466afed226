"""The names of all methods by protocol, without loading the protocols' codecs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fakeamqp.faults.adapter import adapter_named

__all__ = ["names_in"]

# Most rules concern 0-9-1, and loading the codec of another protocol takes a tenth of a second.
_OF_0_10 = {
    "connection": "start start-ok secure secure-ok tune tune-ok open open-ok redirect close close-ok",
    "session": "attach attached detach detached request-timeout timeout command-point expected confirmed "
    "completed known-completed flush gap",
    "execution": "sync result exception",
    "message": "transfer accept reject release acquire resume subscribe cancel set-flow-mode flow flush stop",
    "tx": "select commit rollback",
    "dtx": "select start end commit forget get-timeout prepare recover rollback set-timeout",
    "exchange": "declare delete query bind unbind bound",
    "queue": "declare delete purge query",
    "file": "qos qos-ok consume consume-ok cancel open open-ok stage publish return deliver ack reject",
    "stream": "qos qos-ok consume consume-ok cancel publish return deliver",
}

_OF_0_9 = {
    "connection": "start start-ok secure secure-ok tune tune-ok open open-ok redirect close close-ok",
    "channel": "open open-ok flow flow-ok close close-ok resume ping pong ok",
    "access": "request request-ok",
    "exchange": "declare declare-ok delete delete-ok bound bound-ok",
    "queue": "declare declare-ok bind bind-ok unbind unbind-ok purge purge-ok delete delete-ok",
    "basic": "qos qos-ok consume consume-ok cancel cancel-ok publish return deliver get get-ok "
    "get-empty ack reject recover recover-sync recover-sync-ok",
    "file": "qos qos-ok consume consume-ok cancel cancel-ok open open-ok stage publish return "
    "deliver ack reject",
    "stream": "qos qos-ok consume consume-ok cancel cancel-ok publish return deliver",
    "tx": "select select-ok commit commit-ok rollback rollback-ok",
    "dtx": "select select-ok start start-ok",
    "tunnel": "request",
    "message": "transfer consume cancel get recover open close append checkpoint resume qos ok "
    "empty reject offset",
}
_NOT_IN_0_8 = ("message.", "channel.resume", "channel.ping", "channel.pong", "channel.ok")


@cache
def names_in(protocol: str) -> tuple[str, ...]:
    """The names of a protocol's methods, without heartbeats."""
    if protocol == "0-10":
        return _spelled(_OF_0_10)
    if protocol == "0-9":
        return _spelled(_OF_0_9)
    if protocol == "0-8":
        return tuple(name for name in _spelled(_OF_0_9) if not name.startswith(_NOT_IN_0_8))
    return tuple(adapter_named(protocol).kinds)


def _spelled(listed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{each}.{name}" for each, names in listed.items() for name in names.split())
