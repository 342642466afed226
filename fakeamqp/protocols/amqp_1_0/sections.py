"""Messages as dictionaries of their sections: what inspection shows, and what tests publish.

There are `header` (durable, priority, ttl), `annotations`, `properties`, `application_properties`, one of
`data` (a list of bytes), `sequence` (a list of lists) and `value`, and `footer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.errors import near_match
from fakeamqp.model.messages.message import UnknownProperty
from fakeamqp.protocols.amqp_1_0.choices import Amqp10Choices
from fakeamqp.protocols.amqp_1_0.codec.composites import Header, Properties
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, ULong, encode_section, read_value
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties, read_message
from fakeamqp.protocols.base.codec import FieldError

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

_BODIES: Final = {"data": 0x75, "sequence": 0x76, "value": 0x77}
_MAPS: Final = {"annotations": 0x72, "application_properties": 0x74, "footer": 0x78}
_HEADER: Final = ("durable", "priority", "ttl")
_KNOWN: Final = ("header", "annotations", "properties", "application_properties", *_BODIES, "footer")
_PROPERTIES: Final = tuple(field.attribute for field in Properties.FIELDS)
_IDS: Final = ("message_id", "correlation_id")
_PARTS: Final[dict[str, type]] = {"data": bytes, "sequence": list}


def shown_sections(properties: SectionProperties, body: bytes) -> dict[str, Any]:
    """The sections that a message has."""
    header = {name: getattr(properties, name) for name in _HEADER}
    fields = {name: value for name, value in vars(properties.fields).items() if value is not None}
    found: dict[str, Any] = {
        "header": {name: value for name, value in header.items() if value is not None},
        "annotations": properties.annotations,
        "properties": fields,
        "application_properties": properties.application_properties,
    }
    found = {name: value for name, value in found.items() if value}
    names = {code: name for name, code in (*_BODIES.items(), *_MAPS.items())}
    octets = properties.bare(body)[len(properties.head) :]
    offset = 0
    while offset < len(octets):
        section, offset = read_value(octets, offset)
        name = names[section.descriptor] if isinstance(section.descriptor, ULong) else section.descriptor
        if name in ("data", "sequence"):
            found.setdefault(name, []).append(section.value)
        else:
            found[str(name)] = section.value
    return found


def message_of(
    personality: Personality, sections: Mapping[str, Any], body: bytes | None
) -> tuple[SectionProperties, bytes]:
    """The properties and the body of a message of these sections; `body` is one of data.

    Raises:
        UnknownProperty: a section, or a field of one, is misspelled.
        FieldError: a value does not fit its field, or there is no body or more than one.
    """
    _check("a message has no section", sections, _KNOWN)
    bodies = [name for name in _BODIES if name in sections]
    if len(bodies) + (body is not None) != 1:
        names = ", ".join(_BODIES)
        raise FieldError(f"a message needs a body, or one of the sections {names}, and only one")
    try:
        octets = b"".join(_encoded(name, sections, body) for name in _KNOWN)
        return read_message(octets, personality.extension(Amqp10Choices))
    except DecodeError as problem:
        raise FieldError(str(problem)) from None


def _encoded(name: str, sections: Mapping[str, Any], body: bytes | None) -> bytes:
    """The bytes of the sections of a name."""
    if name == "data" and body is not None:
        return encode_section(0x75, body)
    if name not in sections:
        return b""
    value = sections[name]
    if name in _PARTS:
        part = _PARTS[name]
        if not isinstance(value, (list, tuple)) or not all(isinstance(each, part) for each in value):
            parts = "bytes" if part is bytes else "lists"
            raise FieldError(f"the section {name!r} is a list of {parts}, not {value!r}")
    elif name != "value" and not isinstance(value, Mapping):
        raise FieldError(f"the section {name!r} is a dictionary, not {value!r}")
    if name == "header":
        _check("a header has no field", value, _HEADER)
        return Header(**value).encode()
    if name == "properties":
        _check("the properties have no field", value, _PROPERTIES)
        ids = {each: ULong(value[each]) for each in _IDS if type(value.get(each)) is int}
        return Properties(**{**value, **ids}).encode()
    if name == "annotations":
        for key in value:
            if not str(key).startswith("x-"):
                raise FieldError(f"the name of an annotation begins with 'x-', unlike {key!r}")
        return encode_section(0x72, {Symbol(key): each for key, each in value.items()})
    if name in _MAPS:
        return encode_section(_MAPS[name], dict(value))
    if name == "value":
        return encode_section(0x77, value)
    return b"".join(encode_section(_BODIES[name], each) for each in value)


def _check(refusal: str, given: Iterable[str], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise UnknownProperty(f"{refusal} {name!r}{near_match(name, known, len(known))}")
