"""The generator: its output is fresh, formatted and equal to the facts."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fakeamqp.protocols.amqp_0_10.codec import constants as constants_0_10
from fakeamqp.protocols.amqp_0_10.codec.commands import COMMANDS
from fakeamqp.protocols.amqp_0_10.codec.controls import CONTROLS
from fakeamqp.protocols.amqp_0_10.codec.packed import NESTED, Command, Packed
from fakeamqp.protocols.amqp_0_10.codec.scalars import SCALARS
from fakeamqp.protocols.amqp_0_10.codec.structs import STRUCTS
from fakeamqp.protocols.amqp_0_10.codec.types import CODES

ROOT = Path(__file__).resolve().parents[3]
GENERATED = [
    f"fakeamqp/protocols/amqp_0_10/codec/{name}.py"
    for name in ("commands", "constants", "controls", "structs")
]


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
        for name in (spec.name, "layout", "emit_0_10"):
            del sys.modules[name]


def test_the_checked_in_modules_are_fresh(generate: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_module_is_named_and_rewritten(
    generate: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    generated = generate.generate().items()
    texts = {path.name: text for path, text in generated if path.parent.name == "amqp_0_10"}
    monkeypatch.setattr(generate, "SPEC", tmp_path / "spec")
    monkeypatch.setattr(generate, "generate", lambda: {tmp_path / "wire" / n: t for n, t in texts.items()})
    assert generate.main(["--check"]) == 1
    assert not (tmp_path / "wire").exists()
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    stale = tmp_path / "wire" / "controls.py"
    stale.write_text(stale.read_text() + "# edited\n")
    capsys.readouterr()
    assert generate.main(["--check"]) == 1
    assert "stale" in (out := capsys.readouterr().out) and "controls.py" in out
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


# --- AMQP 0-10 -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def facts_0_10(generate: ModuleType) -> dict:
    return generate.tomllib.loads((ROOT / "spec" / "amqp-0-10.toml").read_text(encoding="utf-8"))


def spelled(name: str) -> str:
    name = name.replace("-", "_")
    return f"{name}_" if name in ("global", "class") else name


def domain_of(facts: dict, owner: str, field: dict) -> list[int]:
    names = (f"{owner}.{field['type']}", field["type"])
    listed = [domain.get("values", []) for domain in facts["domains"] if domain["name"] in names]
    return sorted(value["value"] for value in listed[0]) if listed else []


def assert_fields(record: type[Packed], facts: dict, owner: str, fields: list[dict]) -> None:
    """Names, types, what is required and what a field may have, as the facts say."""
    assert [name for name, _ in record.FIELDS] == [spelled(field["name"]) for field in fields]
    assert tuple(spelled(field["name"]) for field in fields if field.get("required")) == record.REQUIRED
    for (name, kind), field in zip(record.FIELDS, fields, strict=True):
        if kind != "array:session.command-fragment":
            assert kind == field.get("resolved", field["type"])
        if field["type"] != "delivery-priority":
            assert sorted(record.DOMAINS.get(name, [])) == domain_of(facts, owner, field)


def test_controls_and_commands_of_0_10_are_those_of_the_facts(facts_0_10: dict) -> None:
    for what, known in (("controls", CONTROLS), ("commands", COMMANDS)):
        count = 0
        for owner in facts_0_10["classes"]:
            for fact in owner.get(what, []):
                count += 1
                record = known[owner["code"] << 8 | fact["code"]]
                assert f"{owner['name']}.{fact['name']}" == record.NAME
                assert (owner["code"], fact["code"]) == (record.CLASS, record.CODE)
                assert tuple(fact.get("handled_by", {})) == record.RECEIVED_BY
                assert tuple(f"{owner['name']}.{r}" for r in fact.get("responses", [])) == record.RESPONSES
                if issubclass(record, Command):
                    assert fact.get("result") == record.RESULT
                    header = fact.get("segments", {}).get("header")
                    assert (None if header is None else tuple(header)) == record.HEADER
                    assert record.BODY is fact.get("segments", {}).get("body", False)
                assert_fields(record, facts_0_10, owner["name"], fact["fields"])
        assert len(known) == count == {"controls": 25, "commands": 59}[what]


def test_structs_of_0_10_are_those_of_the_facts(facts_0_10: dict) -> None:
    known = {struct.NAME: struct for struct in (*STRUCTS.values(), *NESTED.values())}
    for fact in facts_0_10["structs"]:
        if fact["name"] == "session.header":  # a part of every command
            continue
        struct = known.pop(fact["name"])
        assert_fields(struct, facts_0_10, fact["name"].split(".")[0], fact["fields"])
        fact = {**fact, **fact.get("errata", {})}
        assert (fact["size"], fact.get("class_code", 0), fact.get("code", 0)) == (
            struct.SIZE_WIDTH,
            struct.CLASS,
            struct.CODE,
        )
        assert (struct.FLAGS_AT is None) is (fact["pack"] == 0)
    assert known == {}


def test_types_and_enumerations_of_0_10_are_those_of_the_facts(
    facts_0_10: dict, generate: ModuleType
) -> None:
    coded = {fact["name"]: fact for fact in facts_0_10["types"] if "code" in fact}
    assert {name: fact["code"] for name, fact in coded.items()} == CODES
    for scalar in SCALARS.values():
        fact = coded[scalar.name]
        assert (scalar.width, scalar.prefix) == (fact.get("fixed_width", 0), fact.get("variable_width", 0))
    domains = {domain["name"]: domain for domain in facts_0_10["domains"] if "values" in domain}
    for name, domain in sys.modules["emit_0_10"].ENUMERATIONS.items():
        members = {member.name: member.value for member in getattr(constants_0_10, name)}
        listed = {v["name"].replace("-", "_").upper(): v["value"] for v in domains.pop(domain)["values"]}
        assert members == listed
    assert list(domains) == ["stream.return-code"]  # that of file, once more
    assert domains["stream.return-code"]["values"] == [
        {"name": member.name.lower().replace("_", "-"), "value": member.value}
        for member in constants_0_10.ReturnCode
    ]
    assert constants_0_10.PROTOCOL_HEADER == b"AMQP\x01\x01\x00\x0a"
    assert constants_0_10.MIN_MAX_FRAME_SIZE == 4096
    assert {owner["code"]: owner["name"] for owner in facts_0_10["classes"]} == constants_0_10.CLASS_NAMES


@pytest.mark.parametrize("change", [{"pack": 1}, {"pack": 4}, {"size": 2, "class_code": 4, "code": 9}])
def test_a_struct_without_emitter_stops_the_generator(
    generate: ModuleType, facts_0_10: dict, change: dict
) -> None:
    emitter = sys.modules["emit_0_10"]
    protocol = generate.FaultAdapter(source="x.toml", package="x", emit=emitter.emit_0_10, title="x")
    struct = {"name": "message.strange", "size": 4, "pack": 2, "fields": [], **change}
    with pytest.raises(SystemExit, match=r"message\.strange"):
        emitter.emit_structs(protocol, {**facts_0_10, "structs": [struct]})


def test_importing_the_wire_of_0_10_loads_no_machinery() -> None:
    code = (
        "import sys; before = set(sys.modules); import fakeamqp.protocols.amqp_0_10.codec.properties;"
        "import fakeamqp.protocols.amqp_0_10.codec.commands, fakeamqp.protocols.amqp_0_10.codec.controls;"
        "heavy = {'asyncio', 'socket', 'ssl', 'threading', 'datetime', 'uuid', 'dataclasses', 'logging'};"
        "print(*sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
