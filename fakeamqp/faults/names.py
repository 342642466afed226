"""The names of all methods, by dialect, without loading what is known of them beside that."""

from __future__ import annotations

from functools import cache

from fakeamqp.faults.dialect import dialect_named

__all__ = ["names_in"]

# Most rules are about 0-9-1, and loading the commands of 0-10 takes a tenth of a second.
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


@cache
def names_in(dialect: str) -> tuple[str, ...]:
    """The names of the methods of a dialect, heartbeats left out."""
    if dialect == "0-10":
        return tuple(f"{each}.{name}" for each, names in _OF_0_10.items() for name in names.split())
    return tuple(dialect_named(dialect).kinds)
