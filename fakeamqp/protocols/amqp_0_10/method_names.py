"""The names of all controls and commands, known without loading the codec."""

from __future__ import annotations

_BY_CLASS = {
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

METHOD_NAMES = tuple(f"{owner}.{name}" for owner, names in _BY_CLASS.items() for name in names.split())
