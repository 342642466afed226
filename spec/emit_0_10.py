"""Facts of AMQP 0-10 -> modules.

One class for each control, command and struct. Flags are read and written as one number; then comes one `if`
for each field, with the statements for its type inside: no dispatch by field type at run time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layout import (
    LINE_LENGTH,
    Dialect,
    Facts,
    bracketed,
    camel,
    display,
    exported,
    module_text,
    multiline,
    names_lines,
    octets_literal,
    python_name,
    quoted,
    slots_lines,
    tuple_of,
)

NUMBERS = {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "datetime": "Q", "sequence-no": "I"}
TEXTS = {"str8": "B", "str16": "H"}
BINARIES = {"vbin8": "B", "vbin16": "H", "vbin32": "I"}
ANNOTATIONS = {
    **dict.fromkeys(NUMBERS, "int"),
    **dict.fromkeys(TEXTS, "str"),
    **dict.fromkeys(BINARIES, "bytes"),
    "uuid": "UUID",
    "map": "Mapping[str, Any]",
    "array": "Sequence[Any]",
    "struct32": "Any",
    "sequence-set": "SequenceSet",
    "byte-ranges": "ByteRanges",
}
READERS = {"map": "read_map", "array": "read_array", "struct32": "read_struct32"}
READERS |= {"sequence-set": "read_sequence_set", "byte-ranges": "read_byte_ranges"}
SETS = {"sequence-set": "SequenceSet", "byte-ranges": "ByteRanges"}
WRITERS = {"map": "encode_map", "array": "encode_array", "struct32": "encode_struct32"}
#: Any octet is a priority for those who set one; only the ten that are listed make a difference.
UNCHECKED = {"delivery-priority"}
PACKAGE = "fakeamqp.protocols.amqp_0_10.codec"


@dataclass
class Field:
    name: str
    kind: str
    domain: str = ""
    values: tuple[int, ...] = ()

    @property
    def owner(self) -> str:
        """The class of a struct field or of an array's elements."""
        return struct_class(self.kind.partition(":")[2])


@dataclass
class Shape:
    """What stands around the fields."""

    base: str
    size: int
    coded: bool
    packed: bool

    @property
    def flags_at(self) -> int:
        return self.size + (2 if self.coded else 0) + (2 if self.base == "Command" else 0)


class Used:
    """What a module needs: structs by format, helpers and domains."""

    def __init__(self) -> None:
        self.readers: set[str] = set()
        self.writers: set[str] = set()
        self.helpers: set[str] = set()
        self.domains: dict[str, tuple[int, ...]] = {}

    def reader(self, codes: str) -> str:
        self.readers.add(codes)
        return f"_read_{codes}"

    def writer(self, codes: str) -> str:
        self.writers.add(codes)
        return f"_pack_{codes}"

    def helper(self, name: str) -> str:
        self.helpers.add(name)
        return name

    def lines(self) -> list[str]:
        lines = [f'_read_{codes} = struct.Struct(">{codes}").unpack_from' for codes in sorted(self.readers)]
        lines += [f'_pack_{codes} = struct.Struct(">{codes}").pack' for codes in sorted(self.writers)]
        for name, values in sorted(self.domains.items()):
            lines += display(0, f"{name} = frozenset((", [str(value) for value in values], "))")
        return lines


def struct_class(name: str) -> str:
    """message.delivery-properties -> DeliveryProperties."""
    return camel(name.split(".")[-1])


def flag_of(index: int) -> int:
    return 1 << (index % 8 + (8 if index < 8 else 0))


def fields_of(dialect: Dialect, facts: Facts, owner: str, entry: Facts) -> list[Field]:
    domains = {domain["name"]: domain for domain in facts["domains"]}
    fields = []
    for fact in entry["fields"]:
        kind = fact.get("resolved", fact["type"])
        domain = next((d for d in (f"{owner}.{fact['type']}", fact["type"]) if d in domains), "")
        listed = domains[domain].get("values", []) if domain else []
        array_of = domains[domain].get("array_of", "") if domain else ""
        if kind == "array" and "." in array_of and f"{array_of}" in {s["name"] for s in facts["structs"]}:
            kind = f"array:{array_of}"
        values = () if fact["type"] in UNCHECKED else tuple(value["value"] for value in listed)
        fields.append(Field(python_name(dialect, owner, fact["name"]), kind, domain, values))
    return fields


def annotation(field: Field) -> str:
    if field.kind == "bit":
        return "bool"
    if field.kind.startswith("struct:"):
        return field.owner
    if field.kind.startswith("array:"):
        return f"Sequence[{field.owner}]"
    return ANNOTATIONS[field.kind]


# -- one class ---------------------------------------------------------------------------------------------


def read_field(used: Used, field: Field) -> list[str]:
    """The statements that read one field that is there."""
    target, kind = f"packed.{field.name}", field.kind
    if kind in NUMBERS:
        size = struct.calcsize(">" + NUMBERS[kind])
        value = "octets[end]" if size == 1 else f"{used.reader(NUMBERS[kind])}(octets, end)[0]"
        lines = [f"{target} = {value}", f"end += {size}"]
        if field.values:
            lines += [f"if {target} not in {domain_name(used, field)}:", "    raise unreadable(cls, octets)"]
        return lines
    if kind in TEXTS or kind in BINARIES:
        code = {**TEXTS, **BINARIES}[kind]
        size = struct.calcsize(">" + code)
        length = "octets[end]" if size == 1 else f"{used.reader(code)}(octets, end)[0]"
        convert = '.decode("utf-8", "surrogateescape")' if kind in TEXTS else ""
        return [f"start = end + {size}", f"end = start + {length}", f"{target} = octets[start:end]{convert}"]
    if kind == "uuid":
        return ["start = end", "end += 16", f"{target} = {used.helper('read_uuid')}(octets[start:end])"]
    if kind.startswith("struct:"):
        size, code = (2, "H") if kind == "struct:message.reply-to" else (4, "I")
        return [
            "start = end",
            f"end += {size} + {used.reader(code)}(octets, end)[0]",
            f"{target} = {field.owner}.decode(octets[start:end])",
        ]
    if kind.startswith("array:"):
        return [f"{target}, end = {used.helper('read_fragments')}(octets, end, {field.owner})"]
    return [f"{target}, end = {used.helper(READERS[kind])}(octets, end)"]


def domain_name(used: Used, field: Field) -> str:
    name = "_" + field.domain.replace(".", "_").replace("-", "_").upper()
    used.domains[name] = field.values
    return name


def write_field(used: Used, field: Field) -> list[str]:
    """The statements that append one field."""
    value, kind = f"self.{field.name}", field.kind
    if kind == "uint8":
        return [f"parts.append({used.writer('B')}({value}))"]
    if kind in NUMBERS:
        return [f"parts.append({used.writer(NUMBERS[kind])}({value}))"]
    if kind in TEXTS or kind in BINARIES:
        code = {**TEXTS, **BINARIES}[kind]
        lines = [f'octets = {value}.encode("utf-8", "surrogateescape")'] if kind in TEXTS else []
        source = "octets" if lines else value
        return [*lines, f"parts += ({used.writer(code)}(len({source})), {source})"]
    if kind == "uuid":
        return [f"parts.append({value}.bytes)"]
    if kind.startswith("array:"):
        return [f"parts.append({used.helper('encode_fragments')}({value}))"]
    if kind in WRITERS:
        return [f"parts.append({used.helper(WRITERS[kind])}({value}))"]
    # Through the class, so that nothing else with an `encode` passes: a text, say
    owner = used.helper(SETS[kind]) if kind in SETS else field.owner
    return [f"parts.append({owner}.encode({value}))"]


def encode_lines(used: Used, shape: Shape, fields: Sequence[Field], index: int) -> list[str]:
    signature = "self, sync: bool = False" if shape.base == "Command" else "self"
    lines = [f"def encode({signature}) -> bytes:", f'    """See `{shape.base}.encode`."""']
    code = index.to_bytes(2, "big")
    if not fields:
        if shape.base == "Command":
            with_sync, without = (octets_literal(code + bytes((1, sync, 0, 0))) for sync in (1, 0))
            return [*lines, f"    return {with_sync} if sync else {without}"]
        return [*lines, f"    return {octets_literal(code + bytes(2))}"]
    body: list[str] = []
    only_bits = all(field.kind == "bit" for field in fields)
    if shape.packed:
        body.append("flags = 0")
    if not only_bits:
        body.append('parts = [b""]')
        body.append("try:")
    pad = "" if only_bits else "    "
    for number, field in enumerate(fields):
        if field.kind == "bit":
            body += [f"{pad}if self.{field.name}:", f"{pad}    flags |= 0x{flag_of(number):04X}"]
        elif shape.packed:
            body += [
                f"{pad}if self.{field.name} is not None:",
                f"{pad}    flags |= 0x{flag_of(number):04X}",
                *(f"{pad}    {line}" for line in write_field(used, field)),
            ]
        else:
            default = "0" if field.kind in NUMBERS else f"{annotation(field)}()"
            body.append(f"{pad}{field.name} = {default} if self.{field.name} is None else self.{field.name}")
            body += [f"{pad}{line}".replace("self.", "") for line in write_field(used, field)]
    joined = 'b"".join(parts)'
    if shape.base == "Command":
        head = f"{used.writer('HBBH')}(0x{index:04X}, 1, sync, flags)"
    elif shape.base == "Control":
        head = f"{used.writer('HH')}(0x{index:04X}, flags)"
    elif shape.coded:
        head = f"{used.writer('IHH')}({'4' if only_bits else 'len(body) + 4'}, 0x{index:04X}, flags)"
    else:
        head = f"{used.writer('HH')}(len(body) + 2, flags)" if shape.packed else ""
    if only_bits:
        body.append(f"return {head}")
    else:
        if shape.base == "Struct" and head:
            tail = [f"body = {joined}", f"return {head} + body"]
        else:
            tail = [f"parts[0] = {head}"] * bool(head) + [f"return {joined}"]
        body += [f"    {line}" for line in tail]
        body += ["except UNWRITABLE:", "    raise unwritable(self) from None"]
    return [*lines, *("    " + line for line in body)]


def decode_lines(used: Used, shape: Shape, fields: Sequence[Field], index: int) -> list[str]:
    lines = ["@classmethod", "def decode(cls, octets: bytes) -> Self:", '    """See `Packed.decode`."""']
    failed = "raise unreadable(cls, octets)"
    if not shape.packed:
        body = ["end = 0", *(line for field in fields for line in read_field(used, field))]
        return [
            *lines,
            "    packed = cls()",
            "    try:",
            *(f"        {line}" for line in body),
            "    except UNREADABLE:",
            f"        {failed} from None",
            "    if end != len(octets):",
            f"        {failed}",
            "    return packed",
        ]
    at = shape.flags_at
    unknown = 0xFFFF & ~sum(flag_of(number) for number in range(len(fields)))
    if not fields:
        code = index.to_bytes(2, "big")
        if shape.base == "Command":
            whole = [octets_literal(code + bytes((1, sync, 0, 0))) for sync in (0, 1)]
            check = f"if octets != {whole[0]} and octets != {whole[1]}:"
        else:
            check = f"if octets != {octets_literal(code + bytes(2))}:"
        return [*lines, f"    {check}", f"        {failed}", "    return cls()"]
    body = []
    if shape.base == "Command":
        body += [f"code, size, sync, flags = {used.reader('HBBH')}(octets)"]
        wrong = f"code != 0x{index:04X} or size != 1 or sync > 1"
    elif shape.base == "Control":
        body += [f"code, flags = {used.reader('HH')}(octets)"]
        wrong = f"code != 0x{index:04X}"
    elif shape.coded:
        body += [f"size, code, flags = {used.reader('IHH')}(octets)"]
        wrong = f"code != 0x{index:04X} or size != len(octets) - 4"
    else:
        body += [f"size, flags = {used.reader('HH')}(octets)"]
        wrong = "size != len(octets) - 2"
    if unknown:
        wrong += f" or flags & 0x{unknown:04X}"
    body += [f"if {wrong}:", f"    {failed}"]
    body += [f"end = {at + 2}"]
    for number, field in enumerate(fields):
        if field.kind == "bit":
            body.append(f"packed.{field.name} = flags & 0x{flag_of(number):04X} != 0")
            continue
        body.append(f"if flags & 0x{flag_of(number):04X}:")
        body += [f"    {line}" for line in read_field(used, field)]
    return [
        *lines,
        "    packed = cls()",
        "    try:",
        *(f"        {line}" for line in body),
        "    except UNREADABLE:",
        f"        {failed} from None",
        "    if end != len(octets):",
        f"        {failed}",
        "    return packed",
    ]


def init_lines(fields: Sequence[Field]) -> list[str]:
    parameters = ["self"]
    for field in fields:
        if field.kind == "bit":
            parameters.append(f"{field.name}: bool = False")
        else:
            parameters.append(f"{field.name}: {annotation(field)} | None = None")
    lines = bracketed(4, "def __init__(", parameters, ") -> None:")
    return [*lines, *(f"        self.{field.name} = {field.name}" for field in fields)]


def class_lines(
    used: Used,
    name: str,
    spec_name: str,
    shape: Shape,
    fields: Sequence[Field],
    index: int,
    notes: Sequence[str],
    constants: Sequence[str],
    required: Sequence[str],
) -> list[str]:
    code = f" ({index >> 8}.{index & 0xFF})" if shape.coded else ""
    lines = [f"class {name}({shape.base}):", f'    """{"; ".join([spec_name + code, *notes])}."""']
    if len(lines[1]) > LINE_LENGTH:
        rest = "; ".join(notes)
        lines[1:] = [f'    """{spec_name}{code}.', "", f"    {rest[0].upper()}{rest[1:]}.", '    """']
    lines.append("")
    if fields:
        lines += slots_lines([field.name for field in fields])
        lines.append("")
    else:
        lines += ["    __slots__ = ()", ""]
    lines.append(f"    NAME: ClassVar[str] = {quoted(spec_name)}")
    if shape.coded:
        lines.append(f"    CLASS: ClassVar[int] = {index >> 8}")
        lines.append(f"    CODE: ClassVar[int] = {index & 0xFF}")
        lines.append(f"    INDEX: ClassVar[int] = 0x{index:04X}")
    pairs = [f'("{field.name}", "{field.kind}")' for field in fields]
    if fields:
        lines += display(4, "FIELDS: ClassVar[Fields] = (", tuple_of(pairs), ")")
    if required:
        lines += names_lines("REQUIRED", required)
    checked = [field for field in fields if field.values]
    if checked:
        domains = [f'"{field.name}": {domain_name(used, field)}' for field in checked]
        lines += display(4, "DOMAINS: ClassVar[Mapping[str, Container[int]]] = {", domains, "}")
    if shape.base == "Struct":
        lines.append(f"    FLAGS_AT: ClassVar[int | None] = {shape.flags_at if shape.packed else None}")
        lines.append(f"    SIZE_WIDTH: ClassVar[int] = {shape.size}")
    lines += [*constants, ""]
    if fields:
        for field in fields:
            optional = "" if field.kind == "bit" else " | None"
            lines.append(f"    {field.name}: {annotation(field)}{optional}")
        lines += ["", *init_lines(fields), ""]
    lines += ["    " + line for line in encode_lines(used, shape, fields, index)]
    lines += ["", *("    " + line for line in decode_lines(used, shape, fields, index))]
    return lines


# -- modules -----------------------------------------------------------------------------------------------


def module(title: str, source: str, used: Used, names: Sequence[str], body: str, extra: Sequence[str]) -> str:
    """A module of classes: imports, what they need, and the classes."""
    imports = {
        "packed": {"UNREADABLE", "UNWRITABLE", "encode_fragments", "read_fragments"},
        "scalars": {"read_uuid"},
        "serial": {"ByteRanges", "SequenceSet", "read_byte_ranges", "read_sequence_set"},
        "types": {"read_array", "read_map", "read_struct32"},
        "writing": {"encode_array", "encode_map", "encode_struct32"},
    }
    typing = ["TYPE_CHECKING", *(["Any"] if "Any]" in body or ": Any" in body else []), "ClassVar"]
    # `Struct` is a class of this package as well
    lines = ["import struct", f"from typing import {', '.join(typing)}"]
    lines.append("")
    froms: dict[str, list[str]] = {}
    for name, offered in imports.items():
        wanted = [each for each in offered if each in used.helpers]
        if wanted:
            froms[name] = wanted
    for line in extra:
        name, _, wanted_names = line.partition(":")
        froms.setdefault(name, []).extend(wanted_names.split(","))
    for name in sorted(froms):
        lines += bracketed_import(f"{PACKAGE}.{name}", froms[name])
    lines += ["", "if TYPE_CHECKING:"]
    abstract = [each for each in ("Container", "Mapping", "Sequence") if f"{each}[" in body]
    if abstract:
        lines.append(f"    from collections.abc import {', '.join(abstract)}")
    if " UUID" in body:
        lines.append("    from uuid import UUID")
    if abstract or " UUID" in body:
        lines.append("")
    lines += ["    from typing_extensions import Self", "", f"    from {PACKAGE}.packed import Fields"]
    needed = used.lines()
    lines += ["", *exported(names), *([""] if needed else []), *needed]
    return module_text(title, [*lines, body], source)


def isort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def bracketed_import(package: str, names: Iterable[str]) -> list[str]:
    ordered = sorted(set(names), key=isort_key)
    line = f"from {package} import {', '.join(ordered)}"
    if len(line) <= LINE_LENGTH:
        return [line]
    return [f"from {package} import (", *(f"    {name}," for name in ordered), ")"]


def emit_owned(dialect: Dialect, facts: Facts, what: str) -> str:
    """controls.py or commands.py."""
    base = "Control" if what == "controls" else "Command"
    used = Used()
    used.helpers |= {"UNREADABLE", "UNWRITABLE"}
    names: list[str] = []
    body: list[str] = []
    nested: set[str] = set()
    for owner in facts["classes"]:
        for entry in owner.get(what, []):
            fields = fields_of(dialect, facts, owner["name"], entry)
            name, spec_name = camel(owner["name"], entry["name"]), f"{owner['name']}.{entry['name']}"
            index = owner["code"] << 8 | entry["code"]
            notes, constants = facts_of(owner["name"], entry)
            required = [python_name(dialect, "", f["name"]) for f in entry["fields"] if f.get("required")]
            shape = Shape(base, 0, True, True)
            body += ["", ""]
            body += class_lines(used, name, spec_name, shape, fields, index, notes, constants, required)
            names.append(name)
            nested |= {field.owner for field in fields if ":" in field.kind}
    table = what.upper()
    body += ["", "", f"#: class << 8 | code -> {base.lower()}"]
    body += multiline(
        0, f"{table}: dict[int, type[{base}]] = {{", [f"{name}.INDEX: {name}" for name in names], "}"
    )
    body += DECODERS[what]
    extra = [f"packed:{base},unreadable,unwritable", "errors:" + ERRORS[what]]
    if nested:
        extra.append("structs:" + ",".join(sorted(nested)))
    text = "\n".join(body)
    title = f"The {what} of {dialect.title}, one class each."
    return module(title, dialect.source, used, [table, *names, "decode"], text, extra)


ERRORS = {"controls": "UnknownControl", "commands": "UnknownCommand"}
DECODERS = {
    "controls": [
        "",
        "",
        "def decode(octets: bytes) -> Control:",
        '    """Read a whole control segment. Raises UnknownControl, and what `Packed.decode` raises."""',
        '    control = CONTROLS.get(int.from_bytes(octets[:2], "big"))',
        "    if control is None or len(octets) < 2:",
        '        raise UnknownControl(f"there is no control with the code 0x{octets[:2].hex()}")',
        "    return control.decode(octets)",
    ],
    "commands": [
        "",
        "",
        "def decode(octets: bytes) -> tuple[Command, bool]:",
        '    """Read a whole command segment: the command, and whether its session header says sync.',
        "",
        "    Raises UnknownCommand, and what `Packed.decode` raises.",
        '    """',
        '    command = COMMANDS.get(int.from_bytes(octets[:2], "big"))',
        "    if command is None or len(octets) < 2:",
        '        raise UnknownCommand(f"there is no command with the code 0x{octets[:2].hex()}")',
        "    return command.decode(octets), octets[3] == 1",
    ],
}


def facts_of(owner: str, entry: Facts) -> tuple[list[str], list[str]]:
    """What the docstring of a control or a command says, and its constants."""
    notes: list[str] = []
    constants: list[str] = []
    receivers = list(entry.get("handled_by", {}))
    if receivers:
        notes.append(f"received by the {' and the '.join(receivers)}")
        constants += names_lines("RECEIVED_BY", receivers)
    responses = [f"{owner}.{name}" for name in entry.get("responses", [])]
    if responses:
        notes.append(f"answered by {' or '.join(responses)}")
        constants += names_lines("RESPONSES", responses)
    if "result" in entry:
        notes.append(f"its result is {entry['result']}")
        constants.append(f"    RESULT: ClassVar[str | None] = {quoted(entry['result'])}")
    segments = entry.get("segments", {})
    if segments:
        head = "HEADER: ClassVar[tuple[str, ...] | None] = ("
        notes.append("a header and a body may follow")
        constants += display(4, head, tuple_of([quoted(name) for name in segments["header"]]), ")")
        constants.append(f"    BODY: ClassVar[bool] = {segments['body']}")
    return notes, constants


def emit_structs(dialect: Dialect, facts: Facts) -> str:
    used = Used()
    used.helpers |= {"UNREADABLE", "UNWRITABLE"}
    names: list[str] = []
    coded: list[str] = []
    every: list[Field] = []
    body: list[str] = []
    for entry in facts["structs"]:
        owner = entry["name"].partition(".")[0]
        if entry["name"] == "session.header":
            continue  # every command writes and reads its own
        fields = fields_of(dialect, facts, owner, entry)
        every += fields
        entry = {**entry, **entry.get("errata", {})}
        has_code = "class_code" in entry
        index = entry["class_code"] << 8 | entry["code"] if has_code else 0
        shape = Shape("Struct", entry["size"], has_code, entry["pack"] == 2)
        if entry["pack"] not in (0, 2) or (has_code and entry["size"] != 4):
            raise SystemExit(f"no emitter for the layout of {entry['name']}")
        notes = ["as its errata code it"] if "errata" in entry else []
        required = [python_name(dialect, "", f["name"]) for f in entry["fields"] if f.get("required")]
        name = struct_class(entry["name"])
        body += ["", ""]
        body += class_lines(used, name, entry["name"], shape, fields, index, notes, [], required)
        names.append(name)
        if has_code:
            coded.append(name)
    entries = [f"{name}.INDEX: {name}" for name in coded]
    body += ["", "", "STRUCTS.update(", *multiline(4, "{", entries, "}"), ")"]
    entries = [f"{name}.NAME: {name}" for name in names]
    body += ["NESTED.update(", *multiline(4, "{", entries, "}"), ")"]
    extra = [
        "packed:NESTED,Struct,decode_header,encode_header,unreadable,unwritable",
        "types:STRUCTS,UnknownStruct",
    ]
    title = f"The structs of {dialect.title}, one class each."
    exports = ["STRUCTS", *names, "UnknownStruct", "decode_header", "encode_header"]
    return module(title, dialect.source, used, exports, "\n".join(body), extra)


def constant(name: str) -> str:
    return name.replace("-", "_").upper()


#: class of an enumeration -> the domain it is made of
ENUMERATIONS = {
    "SegmentType": "segment-type",
    "Track": "track",
    "CloseCode": "connection.close-code",
    "DetachCode": "session.detach-code",
    "ErrorCode": "execution.error-code",
    "AcceptMode": "message.accept-mode",
    "AcquireMode": "message.acquire-mode",
    "RejectCode": "message.reject-code",
    "DeliveryMode": "message.delivery-mode",
    "DeliveryPriority": "message.delivery-priority",
    "FlowMode": "message.flow-mode",
    "CreditUnit": "message.credit-unit",
    "XaStatus": "dtx.xa-status",
    "ReturnCode": "file.return-code",
}


def emit_constants(dialect: Dialect, facts: Facts) -> str:
    protocol = facts["protocol"]
    lines = [
        "from enum import IntEnum",
        "from typing import Final",
        "",
        "#: What a client sends first, and a server that accepts it sends back",
        f"PROTOCOL_HEADER: Final = {octets_literal(bytes(protocol['header_octets']))}",
        f"VERSION_MAJOR: Final = {protocol['major']}",
        f"VERSION_MINOR: Final = {protocol['minor']}",
        f"PORT: Final = {protocol['port']}",
        "",
    ]
    lines += [f"{constant(c['name'])}: Final = {c['value']}" for c in facts["constants"]]
    lines += ["#: Credit without end", "INFINITE_CREDIT: Final = 0xFFFFFFFF", ""]
    lines += [f"CLASS_{constant(owner['name'])}: Final = {owner['code']}" for owner in facts["classes"]]
    lines += ["", "#: class code -> name"]
    classes = [f"{owner['code']}: {quoted(owner['name'])}" for owner in facts["classes"]]
    lines += multiline(0, "CLASS_NAMES: Final[dict[int, str]] = {", classes, "}")
    domains = {domain["name"]: domain for domain in facts["domains"]}
    for name, domain in ENUMERATIONS.items():
        lines += ["", "", f"class {name}(IntEnum):", f'    """The values of {domain}."""', ""]
        lines += [f"    {constant(value['name'])} = {value['value']}" for value in domains[domain]["values"]]
    return module_text(f"The numbers and names of {dialect.title}.", lines, dialect.source)


def emit_0_10(dialect: Dialect, facts: Facts) -> dict[str, str]:
    """Module name -> text."""
    return {
        "constants.py": emit_constants(dialect, facts),
        "structs.py": emit_structs(dialect, facts),
        "controls.py": emit_owned(dialect, facts, "controls"),
        "commands.py": emit_owned(dialect, facts, "commands"),
    }
