"""The codec makes the golden bytes of the golden values, and reads them back; mutants of it do not."""

from __future__ import annotations

import random
import subprocess
import sys
from types import FunctionType

import pytest

from compat_tests.golden import make, mutants, page, tables
from compat_tests.golden.published import SPECS
from compat_tests.tools.matrix import cases
from fakeamqp.protocols.amqp_0_9.codec import constants as constants_0_9
from fakeamqp.protocols.amqp_0_9.codec.contents import PROPERTIES
from fakeamqp.protocols.amqp_0_9.codec.version_0_8 import PROTOCOL_HEADERS
from fakeamqp.protocols.amqp_0_9_1.codec import constants as constants_0_9_1
from fakeamqp.protocols.amqp_0_10.codec import constants as constants_0_10
from fakeamqp.protocols.amqp_0_10.codec.commands import COMMANDS
from fakeamqp.protocols.amqp_0_10.codec.controls import CONTROLS
from fakeamqp.protocols.amqp_0_10.codec.structs import NESTED
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, SCALARS

each_protocol = pytest.mark.parametrize("protocol", make.PROTOCOLS)


@each_protocol
def test_codec_makes_and_reads_golden_bytes(protocol: str) -> None:
    with cases() as case:
        for number, row in enumerate(tables.rows(protocol)):
            with case(number, row.get("name", tables.kind_of(row))):
                tables.check(protocol, row)


@each_protocol
def test_golden_tables_have_row_for_every_record_of_codec(protocol: str) -> None:
    rows = tables.rows(protocol)
    records = {tables.record(protocol, row) for row in _records(protocol)}
    if protocol == "0-10":
        assert records == {*CONTROLS.values(), *COMMANDS.values(), *NESTED.values()}
        assert {row["code"] for row in rows if tables.kind_of(row) == "type"} == set(CODES.values())
        assert set(SCALARS) < set(CODES.values())
    else:
        classes = [60] if protocol == "0-9-1" else PROPERTIES
        assert records == {*tables.METHODS[protocol].values(), *(PROPERTIES[each] for each in classes)}


@each_protocol
def test_fields_of_same_type_in_record_have_different_values(protocol: str) -> None:
    with cases() as case:
        for row in _records(protocol):
            with case(row["name"]):
                values = [(kind, repr(value)) for _, kind, value in row["fields"] if kind != "bit"]
                assert len(set(values)) == len(values)
                bits = [f"only {name}" for name, kind, _ in row["fields"] if kind == "bit"]
                assert len(bits) < 2 or set(bits) <= set(row["octets"])
                alone = [octets for name, octets in row["octets"].items() if name.startswith("only ")]
                assert len(set(alone)) == len(alone)


def _records(protocol: str) -> list[tables.Row]:
    return [row for row in tables.rows(protocol) if tables.kind_of(row) == "record"]


def test_protocol_headers_of_tables_and_codecs_are_equal() -> None:
    headers = {protocol: bytes.fromhex(tables.head(protocol)["header"]) for protocol in make.PROTOCOLS}
    assert headers == {
        "0-8": PROTOCOL_HEADERS[0],
        "0-9": constants_0_9.PROTOCOL_HEADER,
        "0-9-1": constants_0_9_1.PROTOCOL_HEADER,
        "0-10": constants_0_10.PROTOCOL_HEADER,
    }


@pytest.mark.skipif(
    not SPECS.is_dir(), reason="amqp-specs is not installed (Debian: apt-get install amqp-specs)"
)
@each_protocol
def test_golden_tables_equal_output_from_published_definitions(protocol: str) -> None:
    path = make.FOLDER / f"amqp-{protocol}.jsonl"
    made = make.text_of(protocol)
    assert path.read_text(encoding="utf-8") == made, "run python -m compat_tests.golden.make"


def test_table_maker_does_not_import_fakeamqp() -> None:
    code = "import sys, compat_tests.golden.make; print(*sys.modules)"
    root = make.FOLDER.parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "compat_tests" in loaded
    assert "fakeamqp" not in loaded


# --- mutants -----------------------------------------------------------------------------------------------

SAMPLE = 150


@pytest.mark.parametrize("protocol", mutants.PROTOCOLS)
def test_sample_of_codec_mutants_is_killed(protocol: str) -> None:
    drawn = random.Random(protocol).sample(list(mutants.all_mutants(protocol)), SAMPLE)
    assert [str(mutant) for mutant in drawn if not mutants.is_killed(mutant)] == []


@pytest.mark.long
def test_documentation_page_has_current_counts_of_tables() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.with_tables(text), "run python -m compat_tests.golden.page"


@pytest.mark.long
@pytest.mark.parametrize("protocol", mutants.PROTOCOLS)
def test_every_codec_mutant_is_killed(protocol: str) -> None:
    every = list(mutants.all_mutants(protocol))
    assert len(every) == {"0-9-1": 685, "0-9": 1348, "0-10": 968}[protocol]
    assert [str(mutant) for mutant in every if not mutants.is_killed(mutant)] == []


def test_every_mutant_with_two_exchanged_types_is_killed() -> None:
    every = list(mutants.type_mutants())
    assert [str(mutant) for mutant in every if not mutants.is_type_killed(mutant)] == []
    assert len(every) == 71


@pytest.mark.parametrize("protocol", mutants.PROTOCOLS)
def test_recompiled_declaration_without_change_is_not_killed(protocol: str) -> None:
    """Mutants die of the change, not of the way in which it is made."""
    with cases() as case:
        for row in _records(protocol):
            record = tables.record(protocol, row)
            with case(row["name"]):
                same = mutants.Mutant(protocol, row["name"], "none", row, record, tuple(record.FIELDS))
                assert not mutants.is_killed(same)


@pytest.mark.parametrize("protocol", mutants.PROTOCOLS)
def test_killed_mutants_leave_records_unchanged(protocol: str) -> None:
    records = [tables.record(protocol, row) for row in _records(protocol)]
    before = {record: (record.FIELDS, dict(vars(record))) for record in records}
    for mutant in random.Random(1).sample(list(mutants.all_mutants(protocol)), 30):
        assert mutants.is_killed(mutant)
    for record, (fields, attributes) in before.items():
        assert fields == record.FIELDS
        found = dict(vars(record))
        for name in ("__init__", "encode", "decode"):  # Compiled on first use, perhaps since.
            assert type(found.pop(name, None)) in (type(attributes.pop(name, None)), *_COMPILED)
        assert found == attributes


_COMPILED = (FunctionType, classmethod)
