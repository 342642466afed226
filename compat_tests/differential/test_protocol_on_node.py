"""`--on`: protocol tests run on a node of RabbitMQ."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.differential.rabbitmq_node import available

ROOT = Path(__file__).parents[2]
FILES = ("test_basic_get.py", "test_basic_settle.py", "test_cc_bcc.py")


def test_protocol_tests_pass_on_rabbitmq_node_and_skips_name_missing_personality() -> None:
    if (reason := available("4.3")) is not None:
        pytest.skip(reason)
    files = [f"compat_tests/protocol/{file}" for file in FILES]
    options = ("--on", "rabbitmq-4.3", "-q", "-rs", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) > 40, done.stdout
    assert "personality spec" in done.stdout or "personality rabbitmq-4.2" in done.stdout
