"""The handler of each method on an open channel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9_1 import access, basic, channel, confirm, exchange, queue, tx
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.base.absent import is_absent, refuse_if_absent
from fakeamqp.protocols.base.codec import FrameError

if TYPE_CHECKING:
    from types import ModuleType
    from typing import TypeAlias

    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.server_channel import Amqp091Channel

    Handler: TypeAlias = Callable[[Any, Any], None]


def _checking(method: type[Method], handler: Handler) -> Handler:
    """The handler of a method, behind a check of the method's short strings.

    basic.publish is not checked (RabbitMQ: measured), methods without short strings need not be.
    """
    names = tuple(name for name, kind in method.LAYOUT if kind == "shortstr")
    if not names or method is m.BasicPublish:
        return handler

    def checked(channel: Amqp091Channel, method: Any) -> None:
        if channel.personality.checks_utf8 != "no":
            for name in names:
                text = getattr(method, name)
                if not text.isascii():
                    _check_text(channel, text)
        handler(channel, method)

    return checked


def _check_text(channel: Amqp091Channel, text: str) -> None:
    """Refuse a text that was not UTF-8.

    Raises:
        FrameError: it was not.
    """
    loosely = channel.personality.checks_utf8 == "loosely"
    try:
        text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass" if loosely else "strict")
    except UnicodeDecodeError:
        channel.connection.method_index = 0
        raise FrameError("Malformed UTF-8 in shortstr") from None


def by_name(methods: Iterable[type[Method]], *modules: ModuleType) -> dict[type[Method], Handler]:
    """The functions that have the names of methods, each in the module that has the name of its class."""
    handlers = {}
    for module in modules:
        owner = module.__name__.rpartition(".")[2]
        for method in methods:
            class_name, _, name = method.NAME.partition(".")
            name = name.replace("-", "_")
            handler = getattr(module, name, None) or getattr(module, f"{name}_", None)
            if class_name == owner and handler is not None:
                handlers[method] = handler
    return handlers


HANDLERS: dict[int, Handler] = {
    method.INDEX: _checking(method, handler)
    for method, handler in by_name(
        m.METHODS.values(), access, basic, channel, confirm, exchange, queue, tx
    ).items()
}
"""Method index (class id << 16 | method id) -> handler. The handlers of channel 0 are in `connection`."""


@cache
def handlers(absent: tuple[str, ...]) -> Mapping[int, Handler]:
    """The handlers of a broker that is made without some classes and methods, whose handlers refuse them."""
    return refusing(HANDLERS, m.METHODS, absent)


def refusing(
    handlers: Mapping[int, Handler], methods: Mapping[int, type[Method]], absent: tuple[str, ...]
) -> dict[int, Handler]:
    """Handlers by method index, of which those of absent methods refuse them."""
    return {
        index: partial(_refuse, absent) if is_absent(methods[index].NAME, absent) else handler
        for index, handler in handlers.items()
    }


def _refuse(absent: tuple[str, ...], channel: Amqp091Channel, method: Method) -> None:
    refuse_if_absent(method.NAME, absent)
