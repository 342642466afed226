"""The handlers of commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_10 import dtx, exchange, execution, file, message, queue, stream, tx

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_10.codec.packed import Command, Struct
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

    Handler: TypeAlias = Callable[[ServerSession, Any], Struct | None]
    ContentHandler: TypeAlias = Callable[[ServerSession, Any, bytes | None, bytes | None], Struct | None]

__all__ = ["HANDLERS", "TAKES_CONTENT"]

_MODULES = (dtx, exchange, execution, file, message, queue, stream, tx)

HANDLERS: dict[type[Command], Handler] = {
    command: handler for module in _MODULES for command, handler in module.HANDLERS.items()
}
"""What a command without header and body segments does; it answers with the result, if there is to be one."""

TAKES_CONTENT: dict[type[Command], ContentHandler] = {
    command: handler
    for module in (message, file, stream)
    for command, handler in module.CONTENT_HANDLERS.items()
}
"""What a command with header or body segments does; it gets their bytes, None for one that is not there."""
