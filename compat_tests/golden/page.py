"""Writes the tables of docs/golden-bytes.md: `python -m compat_tests.golden.page`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from compat_tests.golden import make, mutants, tables, tables_1_0
from compat_tests.tools import tables as pages

__all__ = ["PAGE", "counts", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "golden-bytes.md"


def counts() -> str:
    """What the golden tables have, by protocol."""
    lines = []
    for protocol in make.PROTOCOLS:
        rows = tables.rows(protocol)
        records = [row for row in rows if tables.kind_of(row) == "record"]
        fields = sum(len(row["fields"]) for row in records)
        cases = sum(len(row["octets"]) for row in records)
        lines.append([protocol, *map(str, (len(records), fields, cases, len(rows) - len(records)))])
    rows = tables_1_0.rows()
    records = tables_1_0.rows("composite")
    fields = sum(len(row["fields"]) for row in records)
    cases = sum(len(row["octets"]) for row in records)
    lines.append(["1-0", *map(str, (len(records), fields, cases, len(rows) - len(records)))])
    return pages.table(["Protocol", "Records", "Fields", "Cases", "Other rows"], lines)


def deaths() -> str:
    """Every mutant run, by protocol."""
    lines = []
    for protocol in mutants.PROTOCOLS:
        every = list(mutants.all_mutants(protocol))
        kinds = Counter(mutant.change.split()[0] for mutant in every)
        living = sum(not mutants.is_killed(mutant) for mutant in every)
        told = (kinds["swap"], kinds["widen"], kinds["drop"], len(every), living)
        lines.append([protocol, *map(str, told)])
    of_1_0 = list(tables_1_0.all_mutants())
    kinds = Counter(mutant.change.split()[0] for mutant in of_1_0)
    living = sum(not tables_1_0.is_killed(mutant) for mutant in of_1_0)
    lines.append(["1-0", *map(str, (kinds["swap"], kinds["retype"], kinds["drop"], len(of_1_0), living))])
    exchanges = list(mutants.type_mutants())
    living = sum(not mutants.is_type_killed(mutant) for mutant in exchanges)
    lines.append(["types", str(len(exchanges)), "", "", str(len(exchanges)), str(living)])
    encodings = list(tables_1_0.type_mutants())
    living = sum(not tables_1_0.is_type_killed(mutant) for mutant in encodings)
    lines.append(["types of 1-0", str(len(encodings)), "", "", str(len(encodings)), str(living)])
    return pages.table(["Protocol", "Swapped", "Widened", "Dropped", "Mutants", "Survivors"], lines)


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    return pages.with_tables(page, {"counts": counts, "mutants": deaths})


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
