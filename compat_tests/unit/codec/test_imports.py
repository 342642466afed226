"""The codecs load no module that they do not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = "{'asyncio', 'socket', 'ssl', 'threading', 'datetime', 'uuid', 'logging', 'typing_extensions'}"
MODULES = {
    "0-9-1": "fakeamqp.protocols.amqp_0_9_1.codec",
    "0-9": "fakeamqp.protocols.amqp_0_9.codec",
    "0-10": "fakeamqp.protocols.amqp_0_10.properties, fakeamqp.protocols.amqp_0_10.codec.commands",
}


@pytest.mark.parametrize("modules", MODULES.values(), ids=MODULES)
def test_importing_a_codec_loads_no_heavy_modules(modules: str) -> None:
    code = (
        f"import sys; before = set(sys.modules); import {modules};"
        f"print(*sorted({HEAVY} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
