"""Transcripts of RabbitMQ 4.3.6 that are kept: which filters are in force, and what passes them.

`python -m compat_tests.differential.amqp_1_0.recorded PORT` writes them anew, from a node.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from compat_tests.differential.amqp_1_0.compare import on_node

SCENARIOS = (
    *(f"property_filters-{name}" for name in ("ids", "texts", "others")),
    "application_property_filters",
    "combined_property_filters",
    *(f"sql_filters-{name}" for name in ("arithmetic", "strings", "types", "sections")),
    "sql_filters_in_force",
)
_PATH = Path(__file__).with_name("filters-4.3.json")


def transcript(scenario: str) -> list[str]:
    lines: list[str] = json.loads(_PATH.read_text(encoding="utf-8"))[scenario]
    return lines


if __name__ == "__main__":
    found = {name: on_node(name, int(sys.argv[1])) for name in SCENARIOS}
    _PATH.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
