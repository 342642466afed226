"""The layouts and bytes of 1.0 beside the published XML, by a reader and an encoder of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.golden import amqp_1_0, tables_1_0 as tables
from compat_tests.scripted.amqp_1_0 import Server, check_by_proton
from compat_tests.tools.matrix import cases
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import PROTOCOL_HEADER, SASL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.codec.types import TYPE_OF_CODE, read_value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPEC = Path(__file__).parents[2] / "spec" / "amqp-1-0.toml"

needs_xml = pytest.mark.skipif(
    not amqp_1_0.SPECS.exists(), reason="the published XML is in Debian's package amqp-specs"
)


@needs_xml
@pytest.mark.parametrize("kind", c.COMPOSITES.values(), ids=lambda kind: kind.NAME)
def test_composite_has_descriptor_and_fields_of_the_published_xml(kind: type[c.Composite]) -> None:
    (declared,) = (each for each in amqp_1_0.read_layouts() if each.name == kind.NAME)
    assert (declared.symbol, declared.code) == (kind.DESCRIPTOR, kind.CODE)
    fields = [(each.name, each.type, each.mandatory, each.multiple) for each in kind.FIELDS]
    assert fields == [tuple(each) for each in declared.fields]


@needs_xml
def test_golden_table_equals_output_from_published_definitions() -> None:
    made = amqp_1_0.text()
    assert amqp_1_0.PATH.read_text("utf-8") == made, "run python -m compat_tests.golden.amqp_1_0"


def test_table_maker_does_not_import_fakeamqp() -> None:
    code = "import sys, compat_tests.golden.amqp_1_0; print(*sys.modules)"
    root = SPEC.parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "compat_tests" in loaded
    assert "fakeamqp" not in loaded


def test_codec_makes_and_reads_golden_bytes() -> None:
    with cases() as case:
        for number, row in enumerate(tables.rows()):
            with case(number, tables.kind_of(row), row.get("composite", row.get("type"))):
                tables.check(row)


def test_golden_table_has_each_composite_section_type_and_code() -> None:
    assert {row["code"] for row in tables.rows("composite")} == set(c.COMPOSITES)
    assert {row["code"] for row in tables.rows("section")} | {0x70, 0x73} == set(c.SECTIONS)
    codes = {bytes.fromhex(row["octets"])[0] for row in tables.rows("type")}
    assert codes == set(TYPE_OF_CODE)


def test_protocol_headers_of_table_and_codec_are_equal() -> None:
    headers = {name: bytes.fromhex(octets) for name, octets in tables.all_rows()[0]["headers"].items()}
    assert headers == {"amqp": PROTOCOL_HEADER, "sasl": SASL_HEADER}


def test_every_mutant_of_a_composite_is_killed() -> None:
    every = list(tables.all_mutants())
    assert [str(mutant) for mutant in every if not tables.is_killed(mutant)] == []
    assert len(every) == 1035


def test_every_mutant_with_two_exchanged_encodings_is_killed() -> None:
    every = list(tables.type_mutants())
    assert [str(mutant) for mutant in every if not tables.is_type_killed(mutant)] == []
    assert len(every) == 1291


def test_composite_without_a_change_is_not_killed() -> None:
    """Mutants die of the change, not of the way in which it is made."""
    for row in tables.rows("composite"):
        fields = c.COMPOSITES[row["code"]].FIELDS
        assert not tables.is_killed(tables.Mutant(row, "none", {"FIELDS": tuple(fields)}))


def test_killed_mutants_leave_composites_unchanged() -> None:
    before = {kind: dict(vars(kind)) for kind in c.COMPOSITES.values()}
    for mutant in tables.all_mutants():
        tables.is_killed(mutant)
    assert {kind: dict(vars(kind)) for kind in c.COMPOSITES.values()} == before


def test_layouts_are_those_of_the_specification_in_the_project() -> None:
    spec = tomllib.loads(SPEC.read_text("utf-8"))
    composites = {each["name"]: each for each in spec["composites"]}
    for kind in c.COMPOSITES.values():
        said = composites[kind.NAME]
        assert (said["code"], said["descriptor"]) == (kind.CODE, kind.DESCRIPTOR)
        fields = [
            (each["name"], each.get("mandatory", False), each.get("multiple", False))
            for each in said.get("fields", ())
        ]
        assert [(each.name, each.mandatory, each.multiple) for each in kind.FIELDS] == fields
    sections = {each["code"]: each["name"] for each in spec["composites"] if 0x70 <= each["code"] <= 0x78}
    assert {code: name for code, (name, _) in c.SECTIONS.items()} == sections


@pytest.mark.parametrize("settled", [True, False])
def test_transfer_that_the_broker_sends_has_the_bytes_of_its_declaration(settled: bool) -> None:
    server = Server("rabbitmq-4.3")
    server.vhost.queues.create("q")
    client = server.session()
    client.sender().publish()
    before = len(client.bytes_in)
    (got,) = client.receiver(handle=7, credit=1, snd_settle_mode=int(settled)).client.take_all()
    said = {"handle": 7, "delivery_id": 0, "message_format": 0, "settled": settled, "more": False}
    transfer = c.Transfer(**said, delivery_tag=b"" if settled else bytes(4))
    sent = client.bytes_in[before:]
    assert sent.endswith(frame(0, 0, transfer.encode() + got.payload))


# --- proton -------------------------------------------------------------------------------------------------


def test_proton_reads_golden_bytes_as_the_codec_does() -> None:
    data = pytest.importorskip("proton").Data()
    with cases() as case:
        for number, row in enumerate(tables.rows()):
            said = row["octets"] if isinstance(row["octets"], dict) else {"": row["octets"]}
            for name, text in said.items() if tables.kind_of(row) != "frame" else ():
                octets = bytes.fromhex(text)
                with case(number, name, text[:20]):
                    data.clear()
                    assert data.decode(octets) == len(octets)
                    if row.get("type") != "uuid":  # Its binding for Python does not write one.
                        assert tables.exactly(read_value(data.encode())[0], read_value(octets)[0])


def test_frame_that_proton_cannot_read_fails_the_test_that_gets_it() -> None:
    problem = pytest.importorskip("proton").DataException
    octets = c.Open(container_id="x").encode()
    check_by_proton(octets, len(octets))
    with pytest.raises(problem):
        check_by_proton(octets[:-1], len(octets) - 1)
    with pytest.raises(AssertionError, match="proton reads 9 of 8 bytes"):
        check_by_proton(octets, len(octets) - 1)
