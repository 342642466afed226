"""The names of all methods, known without loading the codecs."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9 import method_names

__all__ = ["METHOD_NAMES"]

_ADDED = (
    "connection.blocked",
    "connection.unblocked",
    "connection.update-secret",
    "connection.update-secret-ok",
    "exchange.bind",
    "exchange.bind-ok",
    "exchange.unbind",
    "exchange.unbind-ok",
    "basic.recover-ok",
    "basic.nack",
    "confirm.select",
    "confirm.select-ok",
)

METHOD_NAMES = (*method_names.METHOD_NAMES, *_ADDED)
