"""Declarations and constants of 0-10 say what spec/amqp-0-10.toml says."""

from __future__ import annotations

import keyword
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest

from fakeamqp.protocols.amqp_0_10.codec import (
    codec,
    commands,
    constants,
    controls,
    structs,
)
from fakeamqp.protocols.amqp_0_10.codec.commands import COMMANDS
from fakeamqp.protocols.amqp_0_10.codec.controls import CONTROLS
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import NESTED, STRUCTS, Command, Control, Packed, Struct
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, SCALARS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[4]
FACTS = tomllib.loads((ROOT / "spec" / "amqp-0-10.toml").read_text(encoding="utf-8"))
RECORDS = {kind.NAME: kind for kind in (*CONTROLS.values(), *COMMANDS.values(), *NESTED.values())}

#: class of an enumeration -> its domain
ENUMERATIONS = {
    "SegmentType": "segment-type",
    "CloseCode": "connection.close-code",
    "DetachCode": "session.detach-code",
    "ErrorCode": "execution.error-code",
    "AcceptMode": "message.accept-mode",
    "AcquireMode": "message.acquire-mode",
    "RejectCode": "message.reject-code",
    "DeliveryMode": "message.delivery-mode",
    "FlowMode": "message.flow-mode",
    "CreditUnit": "message.credit-unit",
    "XaStatus": "dtx.xa-status",
    "ReturnCode": "file.return-code",
}


def spelled(name: str) -> str:
    name = name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def class_name(*parts: str) -> str:
    return "".join(piece.capitalize() for part in parts for piece in part.split("-"))


def constant(name: str) -> str:
    return name.replace("-", "_").upper()


def domain_of(owner: str, field: dict) -> dict:
    names = (f"{owner}.{field['type']}", field["type"])
    return next((domain for domain in FACTS["domains"] if domain["name"] in names), {})


def kind_of(owner: str, field: dict) -> str:
    """The type of a field; arrays of structs are a type of their own."""
    kind = field.get("resolved", field["type"])
    elements = domain_of(owner, field).get("array_of", "")
    return f"array:{elements}" if kind == "array" and elements in NESTED else kind


def assert_fields(record: type[Packed], owner: str, listed: list[dict]) -> None:
    """Names, types, order, defaults and the values that a field may have."""
    assert tuple((spelled(field["name"]), kind_of(owner, field)) for field in listed) == record.FIELDS
    assert list(record.DEFAULTS.items()) == [
        (name, False if kind == "bit" else None) for name, kind in record.FIELDS
    ]
    assert record.__slots__ == tuple(sorted(record.DEFAULTS))
    for field in listed:
        if field["type"] != "delivery-priority":  # Peers may set any priority; ten of them make a difference.
            values = {value["value"] for value in domain_of(owner, field).get("values", ())}
            assert record.DOMAINS.get(spelled(field["name"]), set()) == values


@pytest.mark.parametrize(
    ("what", "known", "module"), [("controls", CONTROLS, controls), ("commands", COMMANDS, commands)]
)
def test_controls_and_commands_are_those_of_the_facts(what: str, known: dict, module: Any) -> None:
    listed = [(owner, fact) for owner in FACTS["classes"] for fact in owner.get(what, [])]
    for owner, fact in listed:
        record = known[owner["code"] << 8 | fact["code"]]
        assert f"{owner['name']}.{fact['name']}" == record.NAME
        assert getattr(module, class_name(owner["name"], fact["name"])) is record
        assert (owner["code"], fact["code"]) == (record.CLASS, record.CODE)
        assert tuple(fact.get("handled_by", {})) == record.RECEIVED_BY
        assert tuple(f"{owner['name']}.{r}" for r in fact.get("responses", [])) == record.RESPONSES
        assert f"{record.HEAD}s" == what
        if issubclass(record, Command):
            assert fact.get("result") == record.RESULT
            header = fact.get("segments", {}).get("header")
            assert (None if header is None else tuple(header)) == record.HEADER
            assert (record.HEADER is not None) is fact.get("segments", {}).get("body", False)
        assert_fields(record, owner["name"], fact["fields"])
    assert list(known) == [owner["code"] << 8 | fact["code"] for owner, fact in listed]
    assert len(listed) == {"controls": 25, "commands": 59}[what]


def test_structs_are_those_of_the_facts() -> None:
    # Every command reads and writes its own session.header.
    listed = [fact for fact in FACTS["structs"] if fact["name"] != "session.header"]
    assert list(NESTED) == [fact["name"] for fact in listed]
    for fact in listed:
        struct = NESTED[fact["name"]]
        owner, _, name = fact["name"].partition(".")
        assert getattr(structs, class_name(name)) is struct
        assert_fields(struct, owner, fact["fields"])
        # As its errata code it: peers do the same.
        fact = {**fact, **fact.get("errata", {})}
        assert (fact["size"], fact.get("class_code", 0), fact.get("code", 0)) == (
            struct.SIZE_WIDTH,
            struct.CLASS,
            struct.CODE,
        )
        assert (struct.FLAGS_AT is None) is (fact["pack"] == 0) is (not struct.HEAD)
        assert fact["pack"] in (0, 2)
        assert STRUCTS.get(struct.INDEX) is (struct if "class_code" in fact else None)


def test_types_and_enumerations_are_those_of_the_facts() -> None:
    coded = {fact["name"]: fact for fact in FACTS["types"] if "code" in fact}
    assert {name: fact["code"] for name, fact in coded.items()} == CODES
    for scalar in SCALARS.values():
        fact = coded[scalar.name]
        assert (scalar.width, scalar.prefix) == (fact.get("fixed_width", 0), fact.get("variable_width", 0))
    domains = {domain["name"]: domain for domain in FACTS["domains"] if "values" in domain}
    for name, domain in ENUMERATIONS.items():
        members = {member.name: member.value for member in getattr(constants, name)}
        assert members == {constant(value["name"]): value["value"] for value in domains.pop(domain)["values"]}
    # Tracks and priorities are plain numbers here; the return codes of stream are those of file.
    assert set(domains) == {"track", "message.delivery-priority", "stream.return-code"}
    assert domains["stream.return-code"]["values"] == [
        {"name": member.name.lower().replace("_", "-"), "value": member.value}
        for member in constants.ReturnCode
    ]


def test_constants_are_those_of_the_facts() -> None:
    protocol = FACTS["protocol"]
    assert bytes(protocol["header_octets"]) == constants.PROTOCOL_HEADER == b"AMQP\x01\x01\x00\x0a"
    for fact in FACTS["constants"]:
        assert getattr(constants, constant(fact["name"])) == fact["value"]


def test_numbers_and_sizes_have_the_width_that_the_facts_give_their_type() -> None:
    facts = {fact["name"]: fact for fact in FACTS["types"]}
    for kind in ("uint8", "uint16", "uint32", "uint64", "datetime", "sequence-no", "uuid"):
        assert codec.type_of(kind).width == facts[kind]["fixed_width"]
    for kind in ("str8", "str16", "vbin8", "vbin16", "vbin32"):
        assert codec.type_of(kind).width == facts[kind]["variable_width"]


#: type on the wire -> what a type checker knows
ANNOTATIONS = {
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64", "datetime", "sequence-no"), int | None),
    **dict.fromkeys(("str8", "str16"), str | None),
    **dict.fromkeys(("vbin8", "vbin16", "vbin32"), bytes | None),
    "bit": bool,
    "uuid": Any,
    "map": Mapping[str, Any] | None,
    "array": Sequence[Any] | None,
    "struct32": Any | None,
}


def test_annotation_of_each_field_agrees_with_its_wire_type() -> None:
    for record in RECORDS.values():
        names = vars(sys.modules[record.__module__])
        for name, kind in record.FIELDS:
            annotation = eval(record.__annotations__[name], names)
            while get_origin(annotation) is Annotated:
                annotation = annotation.__origin__
            if kind in ANNOTATIONS:
                assert annotation == ANNOTATIONS[kind], (record, name)
                continue
            held, nothing = get_args(annotation)
            (element,) = get_args(held) or (None,)
            assert nothing is type(None)
            assert kind in (
                f"struct:{getattr(held, 'NAME', '')}",
                f"array:{getattr(element, 'NAME', '')}",
                {SequenceSet: "sequence-set", ByteRanges: "byte-ranges"}.get(held),
            )


# --- the codec that is made of them ------------------------------------------------------------------------


def test_codec_functions_of_a_class_are_generated_on_first_use() -> None:
    code = (
        "from fakeamqp.protocols.amqp_0_10 import properties;"
        "from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs;"
        "kinds = [*commands.COMMANDS.values(), *controls.CONTROLS.values(), *structs.STRUCTS.values()];"
        "made = lambda: sorted(f'{kind.__name__}.{name}' for kind in kinds"
        " for name in ('__init__', 'encode', 'decode') if name in vars(kind));"
        "assert made() == [], made();"
        "commands.decode(commands.MessageFlush('d').encode());"
        "print(*made())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["MessageFlush.__init__", "MessageFlush.decode", "MessageFlush.encode"]


def test_encode_and_decode_taken_before_generation_work() -> None:
    class OddControl(Control, code=(200, 1)):
        nine: structs.Uint8 = None

    encode, decode = OddControl.encode, OddControl.decode
    assert [encode(OddControl(9)) for _ in range(2)] == [b"\xc8\x01\x01\x00\x09"] * 2
    assert [decode(b"\xc8\x01\x01\x00\x09") for _ in range(2)] == [OddControl(9)] * 2


def test_generated_methods_have_qualified_names_and_docstrings() -> None:
    commands.MessageTransfer().encode()
    assert commands.MessageTransfer.encode.__qualname__ == "MessageTransfer.encode"
    assert commands.MessageTransfer.encode.__doc__ == Command.encode.__doc__
    with pytest.raises(
        TypeError, match=r"MessageTransfer\.__init__\(\) got an unexpected keyword argument 'x'"
    ):
        commands.MessageTransfer(x=1)
    assert structs.Xid.__doc__ == "dtx.xid (6.4)."


@pytest.mark.parametrize("base", [Packed, Control, Command, Struct])
def test_base_classes_of_records_have_no_fields(base: type[Packed]) -> None:
    for _ in range(2):
        assert (base.FIELDS, base.DOMAINS) == ((), {})
