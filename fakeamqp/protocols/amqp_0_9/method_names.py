"""The names of all methods of 0-9 with RabbitMQ's, and of 0-8, known without loading the codec."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.dialect import METHOD_NAMES as OF_0_9_1

_BY_CLASS = {
    "connection": "start start-ok secure secure-ok tune tune-ok open open-ok redirect close close-ok",
    "channel": "open open-ok flow flow-ok close close-ok resume ping pong ok",
    "access": "request request-ok",
    "exchange": "declare declare-ok delete delete-ok bound bound-ok",
    "queue": "declare declare-ok bind bind-ok purge purge-ok delete delete-ok unbind unbind-ok",
    "basic": "qos qos-ok consume consume-ok cancel cancel-ok publish return deliver get get-ok "
    "get-empty ack reject recover recover-sync-ok recover-sync",
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

_OWN = tuple(f"{owner}.{name}" for owner, names in _BY_CLASS.items() for name in names.split())

METHOD_NAMES = (*_OWN, *(name for name in OF_0_9_1 if name not in (*_OWN, "basic.recover-async")))
METHOD_NAMES_0_8 = tuple(name for name in _OWN if not name.startswith(_NOT_IN_0_8))
