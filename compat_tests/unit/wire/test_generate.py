"""The generators: their output is fresh, formatted and right for layouts that no protocol happens to have."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import BasicProperties, constants
from fakeamqp.protocols.amqp_0_9_1.codec import methods as generated
from fakeamqp.protocols.codec.errors import FieldError, FrameError
from fakeamqp.protocols.framed.codec.tables import RABBITMQ

ROOT = Path(__file__).resolve().parents[3]
GENERATED = ["fakeamqp/protocols/codec/amqp_0_9_1"]
GENERATED += [
    f"fakeamqp/protocols/amqp_0_9/codec/{name}.py"
    for name in ("__init__", "constants", "methods", "properties")
]
rule = pytest.mark.rule


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    sys.path.insert(0, str(ROOT / "spec"))  # where a script finds its neighbours
    spec = importlib.util.spec_from_file_location("spec_generate", ROOT / "spec" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(ROOT / "spec"))
        for name in (spec.name, "layout", "emit_0_9_x"):
            del sys.modules[name]


@pytest.fixture(scope="module")
def emitter(generate: ModuleType) -> ModuleType:
    """The emitter of 0-9-x."""
    return sys.modules["emit_0_9_x"]


@pytest.fixture(scope="module")
def facts(generate: ModuleType) -> dict:
    return generate.tomllib.loads((ROOT / "spec" / "amqp-0-9-1.toml").read_text(encoding="utf-8"))


def test_the_checked_in_modules_are_fresh(generate: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_module_is_named_and_rewritten(
    generate: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    generated = generate.generate().items()
    texts = {path.name: text for path, text in generated if path.parent.name == "amqp_0_9_1"}
    monkeypatch.setattr(generate, "SPEC", tmp_path / "spec")
    monkeypatch.setattr(generate, "generate", lambda: {tmp_path / "wire" / n: t for n, t in texts.items()})
    assert generate.main(["--check"]) == 1
    assert not (tmp_path / "wire").exists()
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    stale = tmp_path / "wire" / "methods.py"
    stale.write_text(stale.read_text() + "# edited\n")
    capsys.readouterr()
    assert generate.main(["--check"]) == 1
    assert "stale" in (out := capsys.readouterr().out) and "methods.py" in out
    assert out.count("\n") == 1
    assert stale.read_text().endswith("# edited\n")


@pytest.mark.parametrize("command", [["format", "--check"], ["check"]], ids=" ".join)
def test_the_modules_are_written_as_the_formatter_would(command: list[str]) -> None:
    pytest.importorskip("ruff")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--no-cache", *GENERATED],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_constants_are_those_of_the_facts(facts: dict) -> None:
    assert constants.PROTOCOL_HEADER == b"AMQP\x00\x00\x09\x01"
    for fact in facts["constants"]:
        name = fact["name"].replace("-", "_").upper()
        assert getattr(constants, name) == fact["value"]
        if fact["value"] in constants.REPLY_NAMES:
            assert constants.REPLY_NAMES[fact["value"]] == name
        assert (fact["value"] in constants.SOFT_ERRORS) == (fact.get("class") == "soft-error")
        assert (fact["value"] in constants.HARD_ERRORS) == (fact.get("class") == "hard-error")
    assert constants.REPLY_NAMES[404] == "NOT_FOUND"
    assert set(constants.REPLY_NAMES) == constants.SOFT_ERRORS | constants.HARD_ERRORS | {200}
    assert {owner["id"]: owner["name"] for owner in facts["classes"]} == constants.CLASS_NAMES
    assert constants.CLASS_BASIC == 60


def test_methods_are_those_of_the_facts(facts: dict) -> None:
    count = 0
    for owner in facts["classes"]:
        for fact in owner["methods"]:
            count += 1
            method = generated.METHODS[owner["id"] << 16 | fact["id"]]
            assert f"{owner['name']}.{fact['name']}" == method.NAME
            assert method.SYNCHRONOUS is fact["synchronous"]
            assert method.HAS_CONTENT is fact["content"]
            assert tuple(fact["received_by"]) == method.RECEIVED_BY
            assert tuple(f"{owner['name']}.{r}" for r in fact.get("responses", [])) == method.RESPONSES
            assert [kind for _, kind in method.LAYOUT] == [field["type"] for field in fact["fields"]]
            names = [field["name"].replace("-", "_").replace("nowait", "no_wait") for field in fact["fields"]]
            assert [name.rstrip("_") for name, _ in method.LAYOUT] == names
    assert len(generated.METHODS) == count == 66


def test_properties_are_those_of_the_facts(facts: dict) -> None:
    (basic,) = [owner for owner in facts["classes"] if owner["name"] == "basic"]
    expected = [(p["name"].replace("-", "_"), p["type"]) for p in basic["properties"]]
    assert list(BasicProperties.LAYOUT) == [*expected[:-1], ("cluster_id", "shortstr")]


ODD_LAYOUTS = {
    "nine-bits": ["bit"] * 9,
    "bits-apart": ["bit", "octet", "bit", "bit", "shortstr", "bit"],
    "seventeen-bits-and-more": ["short", *["bit"] * 17, "longlong", "bit"],
    "two-tables": ["table", "bit", "table", "octet", "table"],
    "strings-in-a-row": ["longstr", "shortstr", "shortstr", "longstr", "longstr", "octet"],
    "string-after-numbers": [
        "longlong",
        "octet",
        "shortstr",
        "long",
        "short",
        "longstr",
        "timestamp",
        "shortstr",
    ],
    "table-then-string": ["table", "shortstr", "table", "longstr"],
    "numbers-after-string": ["shortstr", "octet", "octet", "octet", "shortstr", "octet"],
    "one-octet": ["octet"],
    "words": ["bit", "long"],
    "bodies": ["content", "bit", "content"],
    "long-statements": ["shortstr", *["longlong"] * 9, "shortstr"],
}


@pytest.fixture(scope="module")
def odd(generate: ModuleType, emitter: ModuleType) -> ModuleType:
    """Methods with layouts that AMQP 0-9-1 does not have, as the generator writes them."""
    methods = []
    for number, (name, kinds) in enumerate(ODD_LAYOUTS.items()):
        fields = [{"name": f"f-{n}", "type": kind} for n, kind in enumerate(kinds)]
        if name == "words":
            fields[0]["name"], fields[1]["name"] = "global", "class"
        methods.append(
            {
                "name": name,
                "id": number,
                "synchronous": False,
                "content": False,
                "received_by": ["server"],
                "fields": fields,
            }
        )
    protocol = generate.FaultAdapter(source="odd.toml", package="odd", emit=generate.emit_0_9_x, title="odd")
    text = emitter.emit_methods(protocol, {"classes": [{"name": "odd", "id": 7, "methods": methods}]})
    module = ModuleType("odd_methods")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, "odd_methods.py", "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[module.__name__]


VALUES = {
    "octet": 0xA1,
    "short": 0xB1B2,
    "long": 0xC1C2C3C4,
    "longlong": 0xD1D2D3D4D5D6D7D8,
    "timestamp": 0xE1E2E3E4E5E6E7E8,
    "shortstr": "short é",
    "longstr": b"long \xff",
    "table": {"k": [1, {"n": None}]},
    "content": Body(b"\x00body", by_reference=True),
}


@rule("0-9-1/types/bits-break")
@pytest.mark.parametrize(
    ("name", "bits", "octets"),
    [
        ("OddNineBits", range(9), b"\xff\x01"),
        ("OddNineBits", [8], b"\x00\x01"),
        ("OddNineBits", [7], b"\x80\x00"),
        ("OddBitsApart", [0, 3, 5], b"\x01\x00\x02\x00\x01"),
        ("OddSeventeenBitsAndMore", [1, 9, 17, 19], b"\x00\x00\x01\x01\x01" + bytes(8) + b"\x01"),
    ],
)
def test_a_ninth_bit_or_another_type_starts_a_new_octet(
    odd: ModuleType, name: str, bits: list[int], octets: bytes
) -> None:
    method = getattr(odd, name)(**{f"f_{bit}": True for bit in bits})
    assert method.encode()[4:] == octets
    assert type(method).decode(method.encode(), RABBITMQ) == method


@pytest.mark.parametrize("number", range(len(ODD_LAYOUTS)), ids=list(ODD_LAYOUTS))
def test_any_layout_is_written_read_and_checked(odd: ModuleType, number: int) -> None:
    method = odd.METHODS[7 << 16 | number]
    for on in (0, 1, 2):
        values = {
            name: (n + on) % 3 == 0 if kind == "bit" else VALUES[kind]
            for n, (name, kind) in enumerate(method.LAYOUT)
        }
        value = method(**values)
        payload = value.encode()
        assert method.decode(payload, RABBITMQ) == value
        for cut in range(4, len(payload)):
            with pytest.raises(FrameError, match=rf"^{method.NAME}, field "):
                method.decode(payload[:cut], RABBITMQ)
        with pytest.raises(FrameError, match="left over"):
            method.decode(payload + b"\0", RABBITMQ)
    for name, kind in method.LAYOUT:
        if kind != "bit":
            with pytest.raises(FieldError, match=f"field {name}: "):
                method(**{name: object()}).encode()


def test_words_of_the_language_get_an_underscore(odd: ModuleType) -> None:
    assert [name for name, _ in odd.OddWords.LAYOUT] == ["global_", "class_"]


@pytest.mark.parametrize("kind", ["array", "struct"])
def test_a_wire_type_without_emitter_stops_the_generator(emitter: ModuleType, kind: str) -> None:
    field = emitter.Field("f", kind)
    with pytest.raises(SystemExit, match=kind):
        emitter.MethodReader(emitter.Structs()).emit([field])
    with pytest.raises(SystemExit, match=kind):
        emitter.method_writer(emitter.Structs(), 1, 1, [field])


def test_importing_the_wire_room_loads_no_machinery() -> None:
    code = (
        "import sys; before = set(sys.modules); import fakeamqp.protocols.amqp_0_9_1.codec;"
        "print(*sorted({'asyncio', 'socket', 'ssl', 'threading', 'datetime', 'typing_extensions', 'logging'}"
        " & (set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
