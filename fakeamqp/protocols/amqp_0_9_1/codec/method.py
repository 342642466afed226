"""What all methods have in common, and the decorator that declares one.

    @method("queue.purge-ok", 50, 31, received_by=CLIENT, synchronous=True)
    class QueuePurgeOk(Method):
        message_count: Long = 0

The result is a class with slots, `__init__`, `encode` and `decode`; see `record`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from fakeamqp.protocols.amqp_0_9_1.codec.record import (
    OnFirstUse,
    Reader,
    Record,
    Writer,
    compile_function,
    dataclass_transform,
    declare,
    indented,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar

#: the values of `received_by`
CLIENT: Final = ("client",)
SERVER: Final = ("server",)
BOTH: Final = ("client", "server")

#: a value of `note`
EXTENSION: Final = "RabbitMQ's extension."


class Method(Record):
    """A method of the protocol: `encode` gives its payload, `decode` reads it back."""

    __slots__ = ()

    CLASS_ID: ClassVar[int]
    METHOD_ID: ClassVar[int]
    #: class id << 16 | method id: the first four bytes of the payload as one number
    INDEX: ClassVar[int]
    #: part of a request and reply pair
    SYNCHRONOUS: ClassVar[bool]
    #: a content (header and body frames) follows
    HAS_CONTENT: ClassVar[bool]
    #: the peers that may receive it: "client", "server"
    RECEIVED_BY: ClassVar[tuple[str, ...]]
    #: names of the methods that answer it
    RESPONSES: ClassVar[tuple[str, ...]]

    def encode(self) -> bytes:
        """The payload of this method's frame, class and method id first.

        Raises FieldError for a value that its field cannot hold.
        """
        raise NotImplementedError

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole method payload; its first four bytes are taken to be this method's ids.

        Raises FrameError when it is too short or too long, FieldError or FieldNameError for illegal values.
        """
        raise NotImplementedError


M = TypeVar("M", bound=Method)


@dataclass_transform()
def method(
    name: str,
    class_id: int,
    method_id: int,
    *,
    received_by: tuple[str, ...],
    synchronous: bool = False,
    content: bool = False,
    responses: tuple[str, ...] = (),
) -> Callable[[type[M]], type[M]]:
    """Declare a method; its fields are the annotated attributes of the class. See `declare`."""
    described = f"{name} ({class_id}, {method_id}), received by the {' and the '.join(received_by)}"
    if responses:
        described += f"; answered by {' or '.join(responses)}"
    if content:
        described += "; a content follows"

    def declared(template: type[M]) -> type[M]:
        return declare(
            template,
            {
                "__doc__": f"{described}.\n\n{template.__doc__}" if template.__doc__ else f"{described}.",
                "NAME": name,
                "CLASS_ID": class_id,
                "METHOD_ID": method_id,
                "INDEX": class_id << 16 | method_id,
                "SYNCHRONOUS": synchronous,
                "HAS_CONTENT": content,
                "RECEIVED_BY": received_by,
                "RESPONSES": responses,
                "encode": OnFirstUse(_compile_encode),
                "decode": OnFirstUse(_compile_decode),
            },
        )

    return declared


def bare_method(
    name: str,
    class_id: int,
    method_id: int,
    *,
    received_by: tuple[str, ...],
    synchronous: bool = True,
    responses: tuple[str, ...] = (),
    note: str | None = None,
) -> type[Method]:
    """A method with a name and numbers only, as a class of the calling module; see `method`."""
    class_name = "".join(part.capitalize() for part in name.replace(".", "-").split("-"))
    namespace = {"__module__": sys._getframe(1).f_globals["__name__"], "__doc__": note}
    declared = method(
        name, class_id, method_id, received_by=received_by, synchronous=synchronous, responses=responses
    )
    return declared(type(class_name, (Method,), namespace))


def methods_by_index(namespace: Mapping[str, Any]) -> dict[int, type[Method]]:
    """The methods that a module declares or imports, by class id << 16 | method id, in that order."""
    found = (
        kind
        for kind in namespace.values()
        if isinstance(kind, type) and issubclass(kind, Method) and kind is not Method
    )
    return {kind.INDEX: kind for kind in sorted(found, key=lambda kind: kind.INDEX)}


def _compile_encode(owner: type[Method]) -> Any:
    writer = Writer([("H", str(owner.CLASS_ID)), ("H", str(owner.METHOD_ID))])
    for field in owner.FIELDS:
        field.type.write(writer, f"self.{field.name}")
    writer.finish()
    payload = writer.joined if owner.FIELDS else repr(owner.INDEX.to_bytes(4, "big"))
    lines = [
        "def encode(self):",
        "    try:",
        *indented([*writer.lines, f"return {payload}"], 2),
        "    except UNWRITABLE:",
        "        raise unwritable(self) from None",
    ]
    return compile_function(owner, lines, writer.names)


def _compile_decode(owner: type[Method]) -> Any:
    reader = Reader(4)
    for field in owner.FIELDS:
        field.type.read(reader, f"method.{field.name}")
    reader.finish()
    failed = "raise unreadable(cls, cls.FIELDS, payload, 4, grammar)"
    # Filling a bare instance is a fifth faster for basic.publish than calling `__init__`.
    lines = ["def decode(cls, payload, grammar):", "    method = new(cls)"]
    if reader.lines:
        lines += ["    try:", *indented(reader.lines, 2)]
        lines += ["    except UNREADABLE:", f"        {failed} from None"]
    end, size = ("end", "len(payload)") if reader.known is None else ("len(payload)", reader.known)
    lines += [f"    if {end} != {size}:", f"        {failed}"]
    if any(kind == "shortstr" for _, kind in owner.LAYOUT):
        lines += ["    if grammar.checks:", "        forbid_nul(method)"]
    lines.append("    return method")
    return classmethod(compile_function(owner, lines, reader.names))
