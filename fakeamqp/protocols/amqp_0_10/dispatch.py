"""The handlers of commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_10 import dtx, exchange, execution, file, message, queue, stream, tx
from fakeamqp.protocols.base.absent import is_absent

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_10.codec.packed import Command, Struct
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

    Handler: TypeAlias = Callable[[ServerSession, Any], Struct | None]
    ContentHandler: TypeAlias = Callable[[ServerSession, Any, bytes | None, bytes | None], Struct | None]

__all__ = ["HANDLERS", "TAKES_CONTENT", "handlers"]

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


@cache
def handlers(absent: tuple[str, ...]) -> Mapping[type[Command], Handler]:
    """The handlers of a broker that is made without some classes and commands."""
    return {command: handler for command, handler in HANDLERS.items() if not is_absent(command.NAME, absent)}
