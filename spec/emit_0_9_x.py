"""Facts of AMQP 0-9 and 0-9-1 -> modules.

Fields are read and written straight through: one struct for each run of fields of fixed size, with the length
of the string that follows in the same struct, and no dispatch by field type at run time.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from layout import (
    LINE_LENGTH,
    Dialect,
    Facts,
    bracketed,
    camel,
    display,
    docstring,
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

INTEGERS = {"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}
ANNOTATIONS = {
    **dict.fromkeys(INTEGERS, "int"),
    "bit": "bool",
    "shortstr": "str",
    "longstr": "bytes",
    "table": "dict[str, FieldValue]",
    "content": "Body",
}
DEFAULTS = {
    **dict.fromkeys(INTEGERS, "0"),
    "bit": "False",
    "shortstr": '""',
    "longstr": 'b""',
    "table": "None",
    "content": "NO_BODY",
}

#: how far the statements of a method that reads or writes are indented
STATEMENT_INDENT = 12

EXTENSIONS = {"rabbitmq": "RabbitMQ's extension", "qpid": "Qpid's extension"}


@dataclass
class Field:
    name: str
    kind: str


class Structs:
    """The precompiled structs that a module needs, by format."""

    def __init__(self) -> None:
        self.readers: set[str] = set()
        self.writers: set[str] = set()

    def reader(self, codes: str) -> str:
        self.readers.add(codes)
        return f"_read_{codes}"

    def writer(self, codes: str) -> str:
        self.writers.add(codes)
        return f"_pack_{codes}"

    def lines(self) -> list[str]:
        """`4x` in a reader skips the class and method ids; its name says `ids`."""
        lines = []
        for codes in sorted(self.readers):
            shape = codes.replace("ids", "4x")
            lines.append(f'_read_{codes} = Struct(">{shape}").unpack_from')
        lines += [f'_pack_{codes} = Struct(">{codes}").pack' for codes in sorted(self.writers)]
        return lines


class MethodReader:
    """Emits the statements that read the fields of one method."""

    def __init__(self, structs: Structs) -> None:
        self.structs = structs
        self.lines: list[str] = []
        self.run: list[tuple[str, str]] = []  # (struct code, target)
        self.at_ids = True
        self.known: int | None = 0  # offset of the run while it is a constant
        self.after: list[str] = []  # statements that must wait for the run

    def emit(self, fields: Sequence[Field]) -> list[str]:
        index = 0
        bit_octets = 0
        while index < len(fields):
            item = fields[index]
            if item.kind == "bit":
                names: list[str] = []
                while index < len(fields) and fields[index].kind == "bit" and len(names) < 8:
                    names.append(fields[index].name)
                    index += 1
                bit_octets += 1
                target = "bits" if bit_octets == 1 else f"bits_{bit_octets}"
                self.run.append(("B", target))
                self.after += [f"method.{name} = {target} & {1 << n} != 0" for n, name in enumerate(names)]
                continue
            if item.kind in INTEGERS:
                self.run.append((INTEGERS[item.kind], f"method.{item.name}"))
            elif item.kind == "shortstr":
                self.string(item.name, "B", '.decode("utf-8", "surrogateescape")')
            elif item.kind == "longstr":
                self.string(item.name, "I", "")
            elif item.kind == "table":
                self.flush()
                call = f"grammar.decode(payload, {self.position()}, len(payload))"
                self.lines.append(f"method.{item.name}, end = {call}")
                self.known = None
            elif item.kind == "content":
                self.flush()
                self.lines.append(f"method.{item.name}, end = decode_body(payload, {self.position()})")
                self.known = None
            else:
                raise SystemExit(f"no reader for the wire type {item.kind}")
            index += 1
        self.flush()
        if self.known is not None:
            self.lines.append(f"end = {self.known}")
        return self.lines

    def position(self) -> str:
        return "end" if self.known is None else str(self.known)

    def string(self, name: str, length_code: str, convert: str) -> None:
        if self.known is None and not self.run and length_code == "B":
            self.lines += ["start = end + 1", "end = start + payload[end]"]
        else:
            self.run.append((length_code, "size"))
            self.flush(string=True)
        self.lines.append(f"method.{name} = payload[start:end]{convert}")

    def flush(self, string: bool = False) -> None:
        """Read the run; when it ends with the length of a string, set `start` and `end` of that string."""
        if self.at_ids:
            self.known = 4
        if self.run:
            codes = "".join(code for code, _ in self.run)
            targets = ", ".join(target for _, target in self.run)
            size = struct.calcsize(">" + codes)
            if codes == "B":
                self.lines.append(f"{targets} = payload[{self.position()}]")
            else:
                arguments = "payload" if self.at_ids else f"payload, {self.position()}"
                prefix = "ids" if self.at_ids else ""
                call = f"{self.structs.reader(prefix + codes)}({arguments})"
                line = f"{targets} = {call}" if len(self.run) > 1 else f"({targets},) = {call}"
                if len(line) + STATEMENT_INDENT <= LINE_LENGTH:
                    self.lines.append(line)
                else:
                    self.lines += multiline(0, "(", [target for _, target in self.run], f") = {call}")
            if string:
                start = f"end + {size}" if self.known is None else str(self.known + size)
                self.lines += [f"start = {start}", "end = start + size"]
                self.known = None
            elif self.known is None:
                self.lines.append(f"end += {size}")
            else:
                self.known += size
        self.lines += self.after
        self.run, self.after = [], []
        self.at_ids = False


def fitted_call(line: str) -> list[str]:
    """A call with a comma behind it, as one item of a display: on several lines where one does not do."""
    if len(line) + STATEMENT_INDENT <= LINE_LENGTH:
        return [line]
    head, _, arguments = line.rstrip("),").partition("(")
    indent = STATEMENT_INDENT + len(head) - len(head.lstrip())
    arguments += ")" * arguments.count("(")
    lines = bracketed(indent, f"{head.lstrip()}(", arguments.split(", "), "),")
    return [fitted[STATEMENT_INDENT:] for fitted in lines]


def method_writer(structs: Structs, class_id: int, method_id: int, fields: Sequence[Field]) -> list[str]:
    """The statements that write one method; the last one returns."""
    if not fields:
        return [f"return {octets_literal(struct.pack('>HH', class_id, method_id))}"]
    prepare: list[str] = []
    parts: list[str] = []
    run: list[tuple[str, str]] = [("H", str(class_id)), ("H", str(method_id))]

    def flush() -> None:
        codes = "".join(code for code, _ in run)
        if codes == "B" and (run[0][1].startswith("len(") or run[0][1].startswith("bits")):
            parts.append(f"OCTET[{run[0][1]}]")
        elif run:
            parts.append(f"{structs.writer(codes)}({', '.join(value for _, value in run)})")
        run.clear()

    index = 0
    bit_octets = 0
    while index < len(fields):
        item = fields[index]
        if item.kind == "bit":
            terms: list[str] = []
            while index < len(fields) and fields[index].kind == "bit" and len(terms) < 8:
                terms.append(f"({1 << len(terms)} if self.{fields[index].name} else 0)")
                index += 1
            bit_octets += 1
            target = "bits" if bit_octets == 1 else f"bits_{bit_octets}"
            if len(terms) == 1:
                prepare.append(f"{target} = {terms[0][1:-1]}")
            else:
                line = f"{target} = {' | '.join(terms)}"
                if len(line) + STATEMENT_INDENT <= LINE_LENGTH:
                    prepare.append(line)
                else:
                    prepare += [
                        f"{target} = (",
                        f"    {terms[0]}",
                        *(f"    | {term}" for term in terms[1:]),
                        ")",
                    ]
            run.append(("B", target))
            continue
        if item.kind in INTEGERS:
            run.append((INTEGERS[item.kind], f"self.{item.name}"))
        elif item.kind == "shortstr":
            prepare.append(f'{item.name} = self.{item.name}.encode("utf-8", "surrogateescape")')
            run.append(("B", f"len({item.name})"))
            flush()
            parts.append(item.name)
        elif item.kind == "longstr":
            run.append(("I", f"len(self.{item.name})"))
            flush()
            parts.append(f"self.{item.name}")
        elif item.kind == "table":
            flush()
            parts.append(f"encode_table(self.{item.name})")
        elif item.kind == "content":
            flush()
            parts.append(f"encode_body(self.{item.name})")
        else:
            raise SystemExit(f"no writer for the wire type {item.kind}")
        index += 1
    flush()
    if len(parts) == 1:
        body = [*prepare, f"return {parts[0]}"]
    else:
        body = [*prepare, *bracketed(0, 'return b"".join((', parts, "))")]
        if len(body) > len(prepare) + 1 or len(body[-1]) + STATEMENT_INDENT > LINE_LENGTH:
            body = [*prepare, 'return b"".join(', *bracketed(4, "(", parts, ")"), ")"]
            if len(body[-2]) + STATEMENT_INDENT > LINE_LENGTH:
                body = [*prepare, 'return b"".join(', *multiline(4, "(", parts, ")"), ")"]
            body = [fitted for line in body for fitted in fitted_call(line)]
    return [
        "try:",
        *("    " + line for line in body),
        "except UNWRITABLE:",
        "    raise unwritable(self) from None",
    ]


def init_lines(fields: Sequence[Field], optional: bool, extra: str = "") -> list[str]:
    """`__init__` of a record: every value has a default; `extra` is one more parameter."""
    parameters = ["self"]
    for item in fields:
        annotation = ANNOTATIONS[item.kind]
        if optional or item.kind == "table":
            parameters.append(f"{item.name}: {annotation} | None = None")
        else:
            parameters.append(f"{item.name}: {annotation} = {DEFAULTS[item.kind]}")
    if extra:
        parameters.append(extra)
    lines = bracketed(4, "def __init__(", parameters, ") -> None:")
    for item in fields:
        value = item.name
        if item.kind == "table" and not optional:
            value = f"{{}} if {item.name} is None else {item.name}"
        lines.append(f"        self.{item.name} = {value}")
    return lines


def layout_lines(fields: Sequence[Field]) -> list[str]:
    pairs = [f'("{item.name}", "{item.kind}")' for item in fields]
    return display(4, "LAYOUT: ClassVar[Layout] = (", tuple_of(pairs), ")")


def emit_method(dialect: Dialect, structs: Structs, owner: Facts, method: Facts) -> tuple[str, list[str]]:
    """The name and the lines of one method's class."""
    class_name, name = owner["name"], f"{owner['name']}.{method['name']}"
    python_class = camel(class_name, method["name"])
    fields = [Field(python_name(dialect, class_name, f["name"]), f["type"]) for f in method["fields"]]
    responses = [f"{class_name}.{response}" for response in method.get("responses", [])]
    lines = [
        "@dataclass(init=False, repr=False, eq=False)",
        f"class {python_class}(Method):",
        *docstring(4, *describe(owner, method, responses)),
        "",
        *slots_lines([f.name for f in fields]),
        "",
        f"    CLASS_ID: ClassVar[int] = {owner['id']}",
        f"    METHOD_ID: ClassVar[int] = {method['id']}",
        f"    INDEX: ClassVar[int] = 0x{owner['id'] << 16 | method['id']:08X}",
        f"    NAME: ClassVar[str] = {quoted(name)}",
        f"    SYNCHRONOUS: ClassVar[bool] = {method['synchronous']}",
        f"    HAS_CONTENT: ClassVar[bool] = {method.get('content', False)}",
        *names_lines("RECEIVED_BY", method["received_by"]),
        *names_lines("RESPONSES", responses),
        *layout_lines(fields),
        "",
    ]
    if fields:
        lines += [f"    {f.name}: {ANNOTATIONS[f.kind]}" for f in fields]
        lines += ["", *init_lines(fields, optional=False), ""]
    lines += ["    def encode(self) -> bytes:", '        """The payload, ids first; see `Method.encode`."""']
    lines += ["        " + line for line in method_writer(structs, owner["id"], method["id"], fields)]
    lines += ["", "    @classmethod", "    def decode(cls, payload: bytes, grammar: Grammar) -> Self:"]
    lines.append('        """Read a whole payload; see `Method.decode`."""')
    failed = "raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)"
    comparison = "end != len(payload)"
    statements = MethodReader(structs).emit(fields) if fields else ["end = 4"]
    if statements[-1].startswith("end = ") and statements[-1][6:].isdigit():
        comparison = f"len(payload) != {statements.pop()[6:]}"
    if fields:
        lines.append("        method = new(cls)")
    if statements:
        lines += ["        try:", *("            " + line for line in statements)]
        lines += ["        except UNREADABLE:", f"            {failed} from None"]
    lines += [f"        if {comparison}:", f"            {failed}"]
    if any(f.kind == "shortstr" for f in fields):
        lines += ["        if grammar.forbids_nul:", "            forbid_nul(method)"]
    lines.append("        return method" if fields else "        return cls()")
    return python_class, lines


def describe(owner: Facts, method: Facts, responses: Sequence[str]) -> tuple[str, list[str]]:
    """The docstring's summary, and what else there is to say."""
    receivers = " and the ".join(method["received_by"])
    summary = f"{owner['name']}.{method['name']} ({owner['id']}, {method['id']}), received by the {receivers}"
    notes = []
    if responses:
        notes.append(f"answered by {' or '.join(responses)}")
    if method.get("content"):
        notes.append("a content follows")
    if method.get("extension"):
        notes.append(EXTENSIONS[method["extension"]])
    if method.get("wip"):
        notes.append("work in progress, say the documents")
    if method.get("deprecated"):
        notes.append("deprecated")
    return summary, notes


def emit_methods(dialect: Dialect, facts: Facts) -> str:
    structs = Structs()
    classes = []
    body: list[str] = []
    for owner in facts["classes"]:
        for method in owner.get("methods", []):
            name, lines = emit_method(dialect, structs, owner, method)
            classes.append(name)
            body += ["", "", *lines]
    text = "\n".join(body)
    has_bodies = any(
        f["type"] == "content" for c in facts["classes"] for m in c.get("methods", []) for f in m["fields"]
    )
    bodies = "from fakeamqp.protocols.amqp_0_9.codec.bodies import NO_BODY, Body, decode_body, encode_body"
    helpers = ["UNREADABLE", "UNWRITABLE", "Method", "forbid_nul", "unreadable", "unwritable"]
    head = [
        "from dataclasses import dataclass",
        "from struct import Struct",
        "from typing import TYPE_CHECKING, ClassVar",
        "",
        *([bodies] if has_bodies else []),
        *bracketed(0, "from fakeamqp.protocols.framed.codec.method import ", helpers, ""),
        "from fakeamqp.protocols.framed.codec.strings import OCTET",
        "from fakeamqp.protocols.framed.codec.tables import encode_table",
        "",
        "if TYPE_CHECKING:",
        "    from typing_extensions import Self",
        "",
        "    from fakeamqp.protocols.framed.codec.method import Layout",
        "    from fakeamqp.protocols.framed.codec.tables import FieldValue, Grammar",
        "",
        *exported(["METHODS", *classes]),
        "",
        "# `decode` fills a bare instance: a fifth faster for basic.publish than going through `__init__`",
        "new = object.__new__",
        "",
        *structs.lines(),
    ]
    methods = multiline(0, "METHODS: dict[int, type[Method]] = {", [f"{c}.INDEX: {c}" for c in classes], "}")
    tail = ["", "", "#: class id << 16 | method id -> class", *methods]
    title = f"The methods of {dialect.title}, one class each."
    return module_text(title, [*head, text, *tail], dialect.source)


def emit_properties(dialect: Dialect, facts: Facts) -> str:
    structs = Structs()
    body: list[str] = []
    names = []
    elsewhere = []
    for owner in facts["classes"]:
        if owner["name"] in dialect.described_elsewhere:
            name = camel(owner["name"], "properties")
            names.append(name)
            package = dialect.described_elsewhere[owner["name"]]
            elsewhere.append(f"from fakeamqp.protocols.codec.{package}.properties import {name}")
        elif "properties" in owner:
            name, lines = emit_property_class(dialect, structs, owner)
            names.append(name)
            body += ["", "", *lines]
    head = [
        "from dataclasses import dataclass",
        "from struct import Struct",
        "from typing import TYPE_CHECKING, ClassVar",
        "",
        *elsewhere,
        "from fakeamqp.protocols.framed.codec.method import UNREADABLE, UNWRITABLE, forbid_nul, unwritable",
        "from fakeamqp.protocols.framed.codec.properties import Properties, skip_flag_words, unreadable_properties",
        "from fakeamqp.protocols.framed.codec.strings import OCTET",
        "",
        "if TYPE_CHECKING:",
        "    from typing_extensions import Self",
        "",
        "    from fakeamqp.protocols.framed.codec.method import Layout",
        "    from fakeamqp.protocols.framed.codec.properties import RawTable",
        "    from fakeamqp.protocols.framed.codec.tables import FieldValue, Grammar",
        "",
        *exported(names),
        "",
        *structs.lines(),
    ]
    return module_text(f"The content properties of {dialect.title}.", [*head, *body], dialect.source)


def emit_property_class(dialect: Dialect, structs: Structs, owner: Facts) -> tuple[str, list[str]]:
    class_name = owner["name"]
    fields = [Field(python_name(dialect, class_name, p["name"]), p["type"]) for p in owner["properties"]]
    if len(fields) > 15 or any(f.kind not in {*INTEGERS, "shortstr", "table"} for f in fields):
        raise SystemExit(f"{class_name}: no emitter for more than 15 properties, bits or long strings")
    if [f.name for f in fields if f.kind == "table"] not in ([], ["headers"]):
        raise SystemExit(f"{class_name}: a table property must be called headers")
    has_headers = any(f.kind == "table" for f in fields)
    python_class = camel(class_name, "properties")
    unknown = 0xFFFE & ~sum(0x8000 >> n for n in range(len(fields)))
    lines = [
        "@dataclass(init=False, repr=False, eq=False)",
        f"class {python_class}(Properties):",
        f'    """What describes a content of class {class_name} ({owner["id"]}); None means absent.',
        "",
        "    `decode` raises FrameError when the octets are too few or too many, FieldError or",
        "    FieldNameError for illegal values; `encode` raises FieldError for a value that does not fit.",
        '    """',
        "",
        *slots_lines([*(f.name for f in fields), *(["_raw_headers"] if has_headers else [])]),
        "",
        f'    NAME: ClassVar[str] = "{class_name} properties"',
        f"    CLASS_ID: ClassVar[int] = {owner['id']}",
        *layout_lines(fields),
        "",
        *(f"    {f.name}: {ANNOTATIONS[f.kind]} | None" for f in fields),
        *(["    _raw_headers: RawTable | None"] if has_headers else []),
        "",
        *init_lines(fields, optional=True, extra="_raw_headers: RawTable | None = None" * has_headers),
    ]
    if has_headers:
        lines.append("        self._raw_headers = _raw_headers")
    lines += [
        "",
        "    def encode(self) -> bytes:",
        '        """Flags and values."""',
        "        flags = 0",
        '        parts = [b""]',
        "        try:",
    ]
    for n, item in enumerate(fields):
        lines.append(f"            if self.{item.name} is not None:")
        lines.append(f"                flags |= 0x{0x8000 >> n:04X}")
        if item.kind == "shortstr":
            lines.append(f'                octets = self.{item.name}.encode("utf-8", "surrogateescape")')
            lines.append("                parts += (OCTET[len(octets)], octets)")
        elif item.kind == "table":
            lines.append("                parts.append(self._headers_octets())")
        else:
            writer = structs.writer(INTEGERS[item.kind])
            lines.append(f"                parts.append({writer}(self.{item.name}))")
    lines += [
        "        except UNWRITABLE:",
        "            raise unwritable(self) from None",
        f"        parts[0] = {structs.writer('H')}(flags)",
        '        return b"".join(parts)',
        "",
        "    @classmethod",
        "    def decode(cls, payload: bytes, offset: int, grammar: Grammar) -> Self:",
        '        """Read flags and values from `offset` on: 12 in the payload of a content header."""',
        "        properties = cls()",
        "        try:",
        f"            flags: int = {structs.reader('H')}(payload, offset)[0]",
        "            end = offset + 2",
        f"            if flags & 0x{unknown | 1:04X}:",
        f"                end = skip_flag_words(payload, end, flags, 0x{unknown:04X})",
    ]
    strings = any(f.kind == "shortstr" for f in fields)
    pad = " " * 12
    for n, item in enumerate(fields):
        if n == len(fields) // 3:
            # Most contents have none of the later properties; asking for all at once saves them a sixth.
            lines.append(f"{pad}if flags & 0x{sum(0x8000 >> later for later in range(n, len(fields))):04X}:")
            pad += "    "
        lines.append(f"{pad}if flags & 0x{0x8000 >> n:04X}:")
        lines += [f"{pad}    {line}" for line in property_reader(structs, item)]
    failed = f"raise unreadable_properties(cls, payload, offset, grammar, 0x{unknown:04X})"
    lines += ["        except UNREADABLE:", f"            {failed} from None"]
    lines += ["        if end != len(payload):", f"            {failed}"]
    if strings:
        lines += ["        if grammar.forbids_nul:", "            forbid_nul(properties)"]
    lines.append("        return properties")
    return python_class, lines


def property_reader(structs: Structs, item: Field) -> list[str]:
    """The statements that read one property."""
    target = f"properties.{item.name}"
    if item.kind == "shortstr":
        value = 'payload[start:end].decode("utf-8", "surrogateescape")'
        return ["start = end + 1", "end = start + payload[end]", f"{target} = {value}"]
    if item.kind == "table":
        return [
            "start = end",
            f"{target}, end = grammar.decode(payload, end, len(payload))",
            "properties._raw_headers = (payload[start:end], grammar.unchecked)",
        ]
    if item.kind == "octet":
        return [f"{target} = payload[end]", "end += 1"]
    code = INTEGERS[item.kind]
    size = struct.calcsize(">" + code)
    return [f"{target} = {structs.reader(code)}(payload, end)[0]", f"end += {size}"]


def emit_constants(dialect: Dialect, facts: Facts) -> str:
    def constant(name: str) -> str:
        return name.replace("-", "_").upper()

    constants = facts["constants"]
    errors = [c for c in constants if "class" in c]
    replies = [c for c in constants if "class" in c or c["name"].startswith("reply-")]
    protocol = facts["protocol"]
    lines = [
        "from typing import Final",
        "",
        "#: What a client sends first, and a server to one whose version it does not speak",
        f"PROTOCOL_HEADER: Final = {octets_literal(bytes(protocol['header_octets']))}",
        f"VERSION_MAJOR: Final = {protocol['start_version_major']}",
        f"VERSION_MINOR: Final = {protocol['start_version_minor']}",
        f"PORT: Final = {protocol['port']}",
        "",
    ]
    lines += [f"{constant(c['name'])}: Final = {c['value']}" for c in constants]
    lines += ["", "#: reply code -> its name as peers print it"]
    names = [f"{c['value']}: {quoted(constant(c['name']))}" for c in replies]
    lines += multiline(0, "REPLY_NAMES: Final[dict[int, str]] = {", names, "}")
    for kind, scope in (("soft", "channel"), ("hard", "connection")):
        values = [str(c["value"]) for c in errors if c["class"] == f"{kind}-error"]
        lines += ["", f"#: reply codes that end the {scope}"]
        lines += display(0, f"{kind.upper()}_ERRORS: Final = frozenset({{", values, "})")
    lines += [""]
    lines += [f"CLASS_{constant(c['name'])}: Final = {c['id']}" for c in facts["classes"]]
    lines += ["", "#: class id -> name"]
    classes = [f"{c['id']}: {quoted(c['name'])}" for c in facts["classes"]]
    lines += multiline(0, "CLASS_NAMES: Final[dict[int, str]] = {", classes, "}")
    lines += ["", "#: class id << 16 | method id -> name"]
    methods = [
        f"0x{c['id'] << 16 | m['id']:08X}: {quoted(c['name'] + '.' + m['name'])}"
        for c in facts["classes"]
        for m in c.get("methods", [])
    ]
    lines += multiline(0, "METHOD_NAMES: Final[dict[int, str]] = {", methods, "}")
    return module_text(f"The numbers and names of {dialect.title}.", lines, dialect.source)


def emit_0_9_x(dialect: Dialect, facts: Facts) -> dict[str, str]:
    """Module name -> text."""
    package = f"fakeamqp.protocols.codec.{dialect.package}"
    properties = [camel(c["name"], "properties") for c in facts["classes"] if "properties" in c]
    import_line = f"from {package}.properties import {', '.join(sorted(properties))}"
    if len(import_line) > LINE_LENGTH:
        imports = multiline(0, f"from {package}.properties import (", sorted(properties), ")")
    else:
        imports = [import_line]
    init = [
        f"from {package}.methods import METHODS",
        *imports,
        "",
        *exported(["METHODS", *properties]),
    ]
    title = f"{dialect.title} on the wire: constants, methods, properties."
    return {
        "__init__.py": module_text(title, init, dialect.source),
        "constants.py": emit_constants(dialect, facts),
        "methods.py": emit_methods(dialect, facts),
        "properties.py": emit_properties(dialect, facts),
    }
