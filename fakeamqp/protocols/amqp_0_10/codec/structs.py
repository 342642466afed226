"""The bases of all controls, commands and structs, the structs, and header segments.

spec/amqp-0-10.toml describes the structs; session.header is not among them: each command reads and writes its
own (see `codec`).

A declaration is a class with a code and annotated fields:

    class MessageSetFlowMode(Command, code=(4, 9), received_by="server client"):
        destination: Str8 = None
        flow_mode: Annotated[Uint8, FlowMode] = None

Its name on the wire, message.set-flow-mode, follows from that of the class. `codec` makes its `__init__`,
`encode` and `decode` when they are first used.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, cast, get_args, get_origin

from fakeamqp.protocols.amqp_0_10.codec.constants import DeliveryMode, XaStatus
from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.types import (
    NESTED as NESTED,
    STRUCTS as STRUCTS,
    UnknownStruct as UnknownStruct,
    read_struct32,
)
from fakeamqp.protocols.base.codec import shown_fields

# --- annotations -------------------------------------------------------------------------------------------

Bit = Annotated[bool, "bit"]
Uint8 = Annotated[int | None, "uint8"]
Uint16 = Annotated[int | None, "uint16"]
Uint32 = Annotated[int | None, "uint32"]
Uint64 = Annotated[int | None, "uint64"]
DateTime = Annotated[int | None, "datetime"]
SequenceNo = Annotated[int | None, "sequence-no"]
Str8 = Annotated[str | None, "str8"]
Str16 = Annotated[str | None, "str16"]
Vbin8 = Annotated[bytes | None, "vbin8"]
Vbin16 = Annotated[bytes | None, "vbin16"]
Vbin32 = Annotated[bytes | None, "vbin32"]
AnyMap = Annotated[Mapping[str, Any] | None, "map"]
AnyArray = Annotated[Sequence[Any] | None, "array"]
AnyStruct32 = Annotated[Any | None, "struct32"]
if TYPE_CHECKING:
    from uuid import UUID

    Uuid = Annotated[UUID | None, "uuid"]
else:  # Importing uuid takes longer than importing all declarations.
    Uuid = Annotated[Any, "uuid"]

Kinds: TypeAlias = tuple[tuple[str, str], ...]
Domains: TypeAlias = Mapping[str, Container[int]]


def field_types(declaration: type[Any]) -> tuple[Kinds, Domains]:
    """What the annotations of a declaration say.

    Returns name and type of each field, in their order on the wire, and the values of each field that is
    annotated with an enumeration. The fields that the protocol calls required are not marked: real peers
    leave them out, so the codec accepts that.
    """
    names = vars(sys.modules[declaration.__module__])
    kinds: list[tuple[str, str]] = []
    domains: dict[str, Container[int]] = {}
    for field, text in declaration.__annotations__.items():
        annotation = eval(text, names)
        marks = getattr(annotation, "__metadata__", ())
        kinds.append((field, _kind(annotation.__origin__ if marks else annotation, marks)))
        for mark in marks:
            if not isinstance(mark, str):
                domains[field] = frozenset(map(int, mark))
    return tuple(kinds), domains


def _kind(annotation: Any, marks: tuple[Any, ...]) -> str:
    """The type of a field: that of its alias, else that of `X | None` or `Sequence[X] | None`."""
    if marks and isinstance(marks[0], str):
        return marks[0]
    holds = get_args(annotation)[0]
    if get_origin(holds) is not None:
        return f"array:{get_args(holds)[0].NAME}"
    return {SequenceSet: "sequence-set", ByteRanges: "byte-ranges"}.get(holds) or f"struct:{holds.NAME}"


if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform() -> Any:
        """Only type checkers need the real one."""
        return lambda cls: cls


class _FromAnnotations:
    """A class attribute that `field_types` works out when it is first asked for."""

    def __set_name__(self, owner: type[Packed], name: str) -> None:
        self._name = name

    def __get__(self, record: Packed | None, owner: type[Packed]) -> Any:
        found = field_types(owner) if owner.NAME else ((), {})
        if owner.NAME:
            owner.FIELDS, owner.DOMAINS = found
        return found[("FIELDS", "DOMAINS").index(self._name)]


def _build(owner: type[Packed], name: str) -> None:
    """Make a method of a class. Loads the codec, which importing declarations does not need."""
    from fakeamqp.protocols.amqp_0_10.codec.codec import build

    build(owner, name)


class _Declared(type):
    """Gives a declaration `__slots__`, and keeps the defaults of its fields in `DEFAULTS`."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **facts: Any
    ) -> _Declared:
        if "__slots__" not in namespace:
            fields = namespace.get("__annotations__", ())
            namespace["DEFAULTS"] = {field: namespace.pop(field) for field in fields}
            namespace["__slots__"] = tuple(sorted(fields))
        return super().__new__(cls, name, bases, namespace, **facts)


@dataclass_transform()
class Packed(metaclass=_Declared):
    """Named values with a layout on the wire; None is a field that is not there. Compares by value."""

    __slots__ = ()

    NAME: ClassVar[str] = ""
    #: 0 where it has no code
    CLASS: ClassVar[int] = 0
    CODE: ClassVar[int] = 0
    #: class << 8 | code
    INDEX: ClassVar[int] = 0
    #: (field, type on the wire), in the order of the wire
    FIELDS: ClassVar[Kinds] = cast("Any", _FromAnnotations())
    #: field -> the values it may have; a field that is not listed may have all values of its type
    DOMAINS: ClassVar[Domains] = cast("Any", _FromAnnotations())
    #: field -> its value where `__init__` gets none
    DEFAULTS: ClassVar[dict[str, Any]] = {}
    #: what stands in front of the fields, as `codec` calls it; "" for nothing: then all fields are there
    HEAD: ClassVar[str] = ""
    #: where its flags are in its bytes; None where it has none, and all fields are there
    FLAGS_AT: ClassVar[int | None] = 2
    #: how many bytes its size has
    SIZE_WIDTH: ClassVar[int] = 0
    #: the sides that must or may deal with it: client, server, sender, receiver
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ()
    #: the controls or commands that answer it
    RESPONSES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **values: Any) -> None:
        _build(type(self), "__init__")
        type(self).__init__(self, *args, **values)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read one from all of its bytes: from its size, or else its code, to its end.

        Raises SegmentError for sizes that do not fit or bytes that are left over, IllegalValue for a value
        outside of its domain or flags that stand for no field (encoding/packing-unused).
        """
        _build(cls, "decode")
        return cls.decode(data)

    def encode(self) -> bytes:
        """All of its bytes. Raises SegmentError for a value that its field cannot hold."""
        _build(type(self), "encode")
        return self.encode()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name, _ in self.FIELDS)

    def __repr__(self) -> str:
        """Only what is there."""
        values = ((name, getattr(self, name)) for name, _ in self.FIELDS)
        # A number may be 0, which equals False and is there all the same.
        there = ((name, value) for name, value in values if value is not None and value is not False)
        return f"{type(self).__name__}({shown_fields(there)})"

    @classmethod
    def _declare(
        cls, code: tuple[int, int], name: str = "", received_by: str = "", responses: str = ""
    ) -> None:
        if not name:
            first, *rest = re.findall("[A-Z][a-z]*", cls.__name__)
            name = f"{first}.{'-'.join(rest)}".lower()
        owner = name.partition(".")[0]
        cls.NAME = name
        cls.CLASS, cls.CODE = code
        cls.INDEX = cls.CLASS << 8 | cls.CODE
        cls.RECEIVED_BY = tuple(received_by.split())
        cls.RESPONSES = tuple(f"{owner}.{each}" for each in responses.split())
        cls.__doc__ = cls.__doc__ or f"{name} ({cls.CLASS}.{cls.CODE})."


class Control(Packed):
    """A control: `encode` gives its whole segment, `decode` reads it back."""

    __slots__ = ()
    HEAD: ClassVar[str] = "control"

    def __init_subclass__(cls, *, code: tuple[int, int], received_by: str = "", responses: str = "") -> None:
        cls._declare(code, "", received_by, responses)


class Command(Packed):
    """A command: `encode` gives its command segment, `decode` reads it back."""

    __slots__ = ()
    HEAD: ClassVar[str] = "command"
    FLAGS_AT: ClassVar[int | None] = 4

    #: the struct of its result
    RESULT: ClassVar[str | None] = None
    #: the structs that its header segment may have; None where it has neither header nor body
    HEADER: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(
        cls,
        *,
        code: tuple[int, int],
        received_by: str = "server",
        responses: str = "",
        result: str | None = None,
        header: str | None = None,
    ) -> None:
        cls._declare(code, "", received_by, responses)
        cls.RESULT = result
        owner = cls.NAME.partition(".")[0]
        cls.HEADER = None if header is None else tuple(f"{owner}.{each}" for each in header.split())

    def encode(self, sync: bool = False) -> bytes:
        """The whole command segment. Raises SegmentError for a value that its field cannot hold."""
        _build(type(self), "encode")
        return self.encode(sync)


class Struct(Packed):
    """A struct: `encode` gives it with its size and code, `decode` reads it back."""

    __slots__ = ()

    HEAD: ClassVar[str]

    def __init_subclass__(cls, *, name: str, code: tuple[int, int] = (0, 0), size: int = 4) -> None:
        """A struct without code has a size of `size` bytes; one without size (0) has no flags either."""
        cls._declare(code, name)
        coded = code != (0, 0)
        cls.HEAD = "coded struct" if coded else "struct" if size else ""
        cls.SIZE_WIDTH = size
        cls.FLAGS_AT = size + 2 * coded if size else None
        NESTED[name] = cls
        if coded:
            STRUCTS[cls.INDEX] = cls


# --- structs -----------------------------------------------------------------------------------------------


class CommandFragment(Struct, name="session.command-fragment", size=0):
    command_id: SequenceNo = None
    byte_ranges: ByteRanges | None = None


class DeliveryProperties(Struct, name="message.delivery-properties", code=(4, 1)):
    discard_unroutable: Bit = False
    immediate: Bit = False
    redelivered: Bit = False
    priority: Uint8 = None
    delivery_mode: Annotated[Uint8, DeliveryMode] = None
    ttl: Uint64 = None
    timestamp: DateTime = None
    expiration: DateTime = None
    exchange: Str8 = None
    routing_key: Str8 = None
    resume_id: Str16 = None
    resume_ttl: Uint64 = None


class FragmentProperties(Struct, name="message.fragment-properties", code=(4, 2)):
    first: Bit = False
    last: Bit = False
    fragment_size: Uint64 = None


class ReplyTo(Struct, name="message.reply-to", size=2):
    exchange: Str8 = None
    routing_key: Str8 = None


class MessageProperties(Struct, name="message.message-properties", code=(4, 3)):
    content_length: Uint64 = None
    message_id: Uuid = None
    correlation_id: Vbin16 = None
    reply_to: ReplyTo | None = None
    content_type: Str8 = None
    content_encoding: Str8 = None
    user_id: Vbin16 = None
    app_id: Vbin16 = None
    application_headers: AnyMap = None


class Acquired(Struct, name="message.acquired", code=(4, 4)):
    transfers: SequenceSet | None = None


class MessageResumeResult(Struct, name="message.message-resume-result", code=(4, 5)):
    offset: Uint64 = None


class XaResult(Struct, name="dtx.xa-result", code=(6, 1)):
    status: Annotated[Uint16, XaStatus] = None


class Xid(Struct, name="dtx.xid", code=(6, 4)):
    format: Uint32 = None
    global_id: Vbin8 = None
    branch_id: Vbin8 = None


class GetTimeoutResult(Struct, name="dtx.get-timeout-result", code=(6, 2)):
    timeout: Uint32 = None


class RecoverResult(Struct, name="dtx.recover-result", code=(6, 3)):
    in_doubt: AnyArray = None


class ExchangeQueryResult(Struct, name="exchange.exchange-query-result", code=(7, 1)):
    type: Str8 = None
    durable: Bit = False
    not_found: Bit = False
    arguments: AnyMap = None


class ExchangeBoundResult(Struct, name="exchange.exchange-bound-result", code=(7, 2)):
    exchange_not_found: Bit = False
    queue_not_found: Bit = False
    queue_not_matched: Bit = False
    key_not_matched: Bit = False
    args_not_matched: Bit = False


class QueueQueryResult(Struct, name="queue.queue-query-result", code=(8, 1)):
    queue: Str8 = None
    alternate_exchange: Str8 = None
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    arguments: AnyMap = None
    message_count: Uint32 = None
    subscriber_count: Uint32 = None


class FileProperties(Struct, name="file.file-properties", code=(9, 1)):
    content_type: Str8 = None
    content_encoding: Str8 = None
    headers: AnyMap = None
    priority: Uint8 = None
    reply_to: Str8 = None
    message_id: Str8 = None
    filename: Str8 = None
    timestamp: DateTime = None
    cluster_id: Str8 = None


class StreamProperties(Struct, name="stream.stream-properties", code=(10, 1)):
    content_type: Str8 = None
    content_encoding: Str8 = None
    headers: AnyMap = None
    priority: Uint8 = None
    timestamp: DateTime = None


# --- header segments ---------------------------------------------------------------------------------------


def header_entries(data: bytes) -> Iterator[tuple[Struct | UnknownStruct, bytes]]:
    """The structs of a header segment as they come, each with its bytes (assembly/header-entries).

    Raises SegmentError, and IllegalValue for one that comes twice.
    """
    codes: list[bytes] = []
    offset, end = 0, len(data)
    while offset < end:
        start = offset
        entry, offset = read_struct32(data, offset)
        code = data[start + 4 : start + 6]
        if code in codes:
            raise IllegalValue(f"a header has the struct 0x{code.hex()} twice")
        codes.append(code)
        yield entry, data[start:offset]


def decode_header(data: bytes) -> tuple[Struct | UnknownStruct, ...]:
    """The structs of a header segment, as they come; see `header_entries`."""
    return tuple([entry for entry, _ in header_entries(data)])


def encode_header(structs: Iterable[Struct | UnknownStruct]) -> bytes:
    """A header segment of these structs, in their order. Raises SegmentError."""
    return b"".join([each.encode() for each in structs])
