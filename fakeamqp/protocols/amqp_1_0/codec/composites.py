"""The composite types of AMQP 1.0: performatives, SASL, sections, outcomes, termini (spec/amqp-1-0.toml).

A declaration is a class with a code, and a line of fields; `None` stands for null, which is also the value of
a field that is not there. `or_default` returns what the specification says null means.

A composite is a list with a descriptor. Lists may be shorter than the declaration. A field of several values
(`multiple`) is null, one value, or an array.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fakeamqp.protocols.amqp_1_0.codec import types as t
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError, FieldError
from fakeamqp.protocols.amqp_1_0.codec.types import Array, Described, Symbol, read_value
from fakeamqp.protocols.base.codec import shown_fields

if TYPE_CHECKING:
    from typing_extensions import Self

_CLASSES: dict[str, type[Any]] = {
    **{"boolean": bool, "ubyte": t.UByte, "ushort": t.UShort, "uint": t.UInt, "ulong": t.ULong},
    **{"string": str, "symbol": Symbol, "binary": bytes, "timestamp": t.Milliseconds},
    **{"map": dict, "list": list},
}


_DECLARED: Final = """
Open: container-id string!, hostname string, max-frame-size uint=4294967295, channel-max ushort=65535,
    idle-time-out uint, outgoing-locales symbol[], incoming-locales symbol[],
    offered-capabilities symbol[], desired-capabilities symbol[], properties map
Begin: remote-channel ushort, next-outgoing-id uint!, incoming-window uint!, outgoing-window uint!,
    handle-max uint=4294967295, offered-capabilities symbol[], desired-capabilities symbol[],
    properties map
Attach: name string!, handle uint!, role boolean!, snd-settle-mode ubyte=2, rcv-settle-mode ubyte=0,
    source *, target *, unsettled map, incomplete-unsettled boolean=false, initial-delivery-count uint,
    max-message-size ulong, offered-capabilities symbol[], desired-capabilities symbol[], properties map
Flow: next-incoming-id uint, incoming-window uint!, next-outgoing-id uint!, outgoing-window uint!,
    handle uint, delivery-count uint, link-credit uint, available uint, drain boolean=false,
    echo boolean=false, properties map
Transfer: handle uint!, delivery-id uint, delivery-tag binary, message-format uint, settled boolean,
    more boolean=false, rcv-settle-mode ubyte, state *, resume boolean=false, aborted boolean=false,
    batchable boolean=false
Disposition: role boolean!, first uint!, last uint, settled boolean=false, state *,
    batchable boolean=false
Detach: handle uint!, closed boolean=false, error error
End: error error
Close: error error
Error: condition symbol!, description string, info map
Received: section-number uint!, section-offset ulong!
Rejected: error error
Modified: delivery-failed boolean, undeliverable-here boolean, message-annotations map
Source: address *, durable uint=0, expiry-policy symbol=session-end, timeout uint=0,
    dynamic boolean=false, dynamic-node-properties map, distribution-mode symbol, filter map,
    default-outcome *, outcomes symbol[], capabilities symbol[]
Target: address *, durable uint=0, expiry-policy symbol=session-end, timeout uint=0,
    dynamic boolean=false, dynamic-node-properties map, capabilities symbol[]
Coordinator: capabilities symbol[]
Declare: global-id *
Discharge: txn-id *!, fail boolean
Declared: txn-id *!
TransactionalState: txn-id *!, outcome *
SaslMechanisms: sasl-server-mechanisms symbol[]!
SaslInit: mechanism symbol!, initial-response binary, hostname string
SaslChallenge: challenge binary!
SaslResponse: response binary!
SaslOutcome: code ubyte!, additional-data binary
Header: durable boolean, priority ubyte, ttl uint, first-acquirer boolean, delivery-count uint
Properties: message-id *, user-id binary, to *, subject string, reply-to *, correlation-id *,
    content-type symbol, content-encoding symbol, absolute-expiry-time timestamp, creation-time timestamp,
    group-id string, group-sequence uint, reply-to-group-id string
"""
"""The fields of a composite that has any: name, type, `[]` for several values, `!` for mandatory ones."""
_FIELDS: Final = {
    name: tuple(field.strip() for field in fields.split(","))
    for name, fields in re.findall(r"^(\w+):((?:.|\n(?= ))+)", _DECLARED, re.MULTILINE)
}


class Field:
    """One field: its name on the wire and in Python, its primitive type, and how often it may come."""

    __slots__ = ("attribute", "default", "mandatory", "multiple", "name", "of", "type")

    def __init__(self, declared: str) -> None:
        name, _, said = declared.partition(" ")
        said, _, default = said.partition("=")
        self.name: str = name
        self.attribute: str = self.name.replace("-", "_")
        self.mandatory: bool = said.endswith("!")
        self.multiple: bool = "[]" in said
        self.type: str = said.rstrip("!").removesuffix("[]")
        self.of: type[Any] | None = _CLASSES.get(self.type)
        self.default: Any = _default(self.type, default) if default else None

    def read(self, value: Any, owner: str) -> Any:
        """Check a value that has come, and is not null; FieldError if it is of another type.

        An error that is none stays the value that it is (RabbitMQ: measured on 4.0.5 and 4.3.6).
        """
        if self.multiple:
            values = value if isinstance(value, Array) else [value]
            if self.of is not None and any(type(each) is not self.of for each in values):
                raise FieldError(f"{owner}: {self.name} is not of type {self.type}")
            return tuple(values)
        if self.of is not None and value.__class__ is not self.of:
            raise FieldError(f"{owner}: {self.name} is not of type {self.type}")
        if self.of is None and self.type == "error":
            return composite_or_value(value)
        return value

    def write(self, value: Any) -> bytes:
        """Its bytes; the value is not null."""
        if self.multiple:
            if isinstance(value, (str, bytes)):
                value = (value,)
            return t.encode_value(Array([self._typed(each) for each in value], self.of))
        if isinstance(value, Composite):
            return value.encode()
        return t.encode_value(self._typed(value))

    def _typed(self, value: Any) -> Any:
        if self.of is None or value.__class__ is self.of:
            return value
        try:
            return self.of(value)
        except (TypeError, ValueError):
            raise DecodeError(f"{self.name}: {value!r:.40} is not of type {self.type}") from None


def _default(kind: str, text: str) -> Any:
    if kind == "boolean":
        return text == "true"
    return Symbol(text) if kind == "symbol" else _CLASSES[kind](int(text))


class Composite:
    """Named values; None is null. Compares by value."""

    NAME: ClassVar[str] = ""
    CODE: ClassVar[int] = 0
    DESCRIPTOR: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    _prefix: ClassVar[bytes] = b""
    _nulls: ClassVar[dict[str, Any]] = {}
    _mandatory: ClassVar[tuple[Field, ...]] = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Fields are declared by `_fields`."""

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init_subclass__(cls, code: int) -> None:
        cls.NAME = re.sub(r"(?<=[a-z])([A-Z])", r"-\1", cls.__name__).lower()
        cls.CODE = code
        cls.DESCRIPTOR = f"amqp:{cls.NAME}:list"
        cls.FIELDS = tuple(map(Field, _FIELDS.get(cls.__name__, ())))
        cls._prefix = b"\0" + t.encode_ulong(code)
        cls._mandatory = tuple(field for field in cls.FIELDS if field.mandatory)
        cls._nulls = dict.fromkeys(field.attribute for field in cls.FIELDS)
        COMPOSITES[code] = cls
        BY_DESCRIPTOR[cls.DESCRIPTOR] = cls

    def __init__(self, **values: Any) -> None:
        own = self.__dict__
        own.update(self._nulls)
        own.update(values)
        if len(own) > len(self.FIELDS):
            raise TypeError(f"{self.NAME} has no field {', '.join(values.keys() - self._nulls.keys())}")

    @classmethod
    def of_list(cls, items: list[Any]) -> Self:
        """From the list of its values; FieldError for a value of another type, DecodeError for too many."""
        cls._check_count(items)
        found = cls()
        own = found.__dict__
        for field, value in zip(cls.FIELDS, items, strict=False):
            if value is not None:
                own[field.attribute] = field.read(value, cls.NAME)
        for field in cls._mandatory:
            if own[field.attribute] is None:
                raise FieldError(f"{cls.NAME} lacks {field.name}")
        return found

    @classmethod
    def unchecked(cls, items: list[Any]) -> Self:
        """From the list of its values, whatever their types are; DecodeError for too many."""
        cls._check_count(items)
        return cls(**dict(zip(cls._nulls, items, strict=False)))

    @classmethod
    def _check_count(cls, items: list[Any]) -> None:
        if len(items) > len(cls.FIELDS):
            raise DecodeError(f"{cls.NAME} has {len(items)} fields, not {len(cls.FIELDS)} at most")

    def or_default(self, attribute: str) -> Any:
        """The value of a field, or what its absence means."""
        value = getattr(self, attribute)
        if value is not None:
            return value
        return next(field.default for field in self.FIELDS if field.attribute == attribute)

    def encode(self, *, nulls: bool = False) -> bytes:
        """Its bytes, without nulls at the end unless `nulls` asks for them."""
        own = self.__dict__
        values = [(field, own[field.attribute]) for field in self.FIELDS]
        items = [b"\x40" if value is None else field.write(value) for field, value in values]
        while items and items[-1] == b"\x40" and not nulls:
            items.pop()
        return self._prefix + (t.encode_items(items) if items else b"\x45")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        shown = shown_fields((name, value) for name, value in vars(self).items() if value is not None)
        return f"{type(self).__name__}({shown})"


COMPOSITES: dict[int, type[Composite]] = {}
"""By code."""
BY_DESCRIPTOR: dict[str, type[Composite]] = {}
"""By symbolic descriptor."""


# --- performatives -----------------------------------------------------------------------------------------


class Open(Composite, code=0x10): ...


class Begin(Composite, code=0x11): ...


class Attach(Composite, code=0x12): ...


class Flow(Composite, code=0x13): ...


class Transfer(Composite, code=0x14): ...


class Disposition(Composite, code=0x15): ...


class Detach(Composite, code=0x16): ...


class End(Composite, code=0x17): ...


class Close(Composite, code=0x18): ...


class Error(Composite, code=0x1D): ...


# --- delivery states ---------------------------------------------------------------------------------------


class Received(Composite, code=0x23): ...


class Accepted(Composite, code=0x24): ...


class Rejected(Composite, code=0x25): ...


class Released(Composite, code=0x26): ...


class Modified(Composite, code=0x27): ...


# --- termini -----------------------------------------------------------------------------------------------


class Source(Composite, code=0x28): ...


class Target(Composite, code=0x29): ...


class DeleteOnClose(Composite, code=0x2B): ...


class DeleteOnNoLinks(Composite, code=0x2C): ...


class DeleteOnNoMessages(Composite, code=0x2D): ...


class DeleteOnNoLinksOrMessages(Composite, code=0x2E): ...


# --- transactions, which RabbitMQ refuses ------------------------------------------------------------------


class Coordinator(Composite, code=0x30): ...


class Declare(Composite, code=0x31): ...


class Discharge(Composite, code=0x32): ...


class Declared(Composite, code=0x33): ...


class TransactionalState(Composite, code=0x34): ...


# --- SASL --------------------------------------------------------------------------------------------------


class SaslMechanisms(Composite, code=0x40): ...


class SaslInit(Composite, code=0x41): ...


class SaslChallenge(Composite, code=0x42): ...


class SaslResponse(Composite, code=0x43): ...


class SaslOutcome(Composite, code=0x44): ...


# --- sections ----------------------------------------------------------------------------------------------


class Header(Composite, code=0x70): ...


class Properties(Composite, code=0x73): ...


SECTIONS: dict[int, tuple[str, str]] = {
    0x70: ("header", "list"),
    0x71: ("delivery-annotations", "map"),
    0x72: ("message-annotations", "map"),
    0x73: ("properties", "list"),
    0x74: ("application-properties", "map"),
    0x75: ("data", "binary"),
    0x76: ("amqp-sequence", "list"),
    0x77: ("amqp-value", "*"),
    0x78: ("footer", "map"),
}
"""Code -> name and type of each section of a message."""

PERFORMATIVES: tuple[type[Composite], ...]
PERFORMATIVES = (Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close)
SASL_FRAMES: tuple[type[Composite], ...]
SASL_FRAMES = (SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome)
_BODIES: dict[int, type[Composite]] = {each.CODE: each for each in (*PERFORMATIVES, *SASL_FRAMES)}


def class_of(descriptor: Any) -> type[Composite] | None:
    """The composite that a descriptor names; None if there is none."""
    if isinstance(descriptor, t.ULong):
        return COMPOSITES.get(descriptor)
    return BY_DESCRIPTOR.get(descriptor) if isinstance(descriptor, Symbol) else None


def class_of_value(value: Any) -> type[Composite] | None:
    """The composite that a described value is; None for another value."""
    return class_of(value.descriptor) if isinstance(value, Described) else None


def composite_of(value: Any, *kinds: type[Composite]) -> Any:
    """The composite that a described value is, one of `kinds` if any are given; FieldError otherwise."""
    kind = class_of_value(value)
    if kind is None or not isinstance(value.value, list) or (kinds and kind not in kinds):
        expected = " or ".join(each.NAME for each in kinds) or "a composite"
        raise FieldError(f"{value!r:.60} is not {expected}")
    return kind.of_list(value.value)


def read_composite(value: Any) -> Any:
    """The composite that a described value is, otherwise the value itself."""
    kind = class_of_value(value)
    return value if kind is None or not isinstance(value.value, list) else kind.of_list(value.value)


def composite_or_value(value: Any) -> Any:
    """As `read_composite`, but a composite with wrong fields stays the described value."""
    try:
        return read_composite(value)
    except DecodeError:
        return value


def read_body(body: bytes) -> tuple[Composite, int]:
    """The performative or SASL frame body at the beginning, and the offset of the payload behind it.

    Raises:
        FieldError: a value that is none, or one with a field of a wrong type.
        DecodeError: no value, or one with an unknown descriptor.
    """
    if body[:2] == b"\0\x53" and len(body) > 3:
        kind = _BODIES.get(body[2])
        if kind is not None:
            items, end = read_value(body, 3)
            if not isinstance(items, list) or isinstance(items, Array):
                raise FieldError(f"{kind.NAME} is not a list")
            return kind.of_list(items), end
    value, end = read_value(body)
    kind = class_of_value(value)
    if kind is None and isinstance(value, Described) and value.descriptor not in SECTIONS:
        raise DecodeError(f"{value!r:.60} has an unknown descriptor")
    if kind is None or kind.CODE not in _BODIES or not isinstance(value.value, list):
        raise FieldError(f"{value!r:.60} is no performative")
    return kind.of_list(value.value), end


def name_of(body: bytes) -> str:
    """The name of a frame body, without its fields; "" for an unknown one."""
    try:
        kind = class_of(read_value(body, 1)[0]) if body[:1] == b"\0" else None
    except DecodeError:
        return ""
    return kind.NAME if kind is not None and kind.CODE in _BODIES else ""
