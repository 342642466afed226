"""`from fakeamqp import Broker` loads what a broker needs to exist; everything else comes on first use."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

LATER = {
    "datetime",
    "fakeamqp.faults",
    "fakeamqp.inspect.topology",
    "fakeamqp.inspect.expectations",
    "fakeamqp.inspect.handles",
    "fakeamqp.inspect.messages",
    "fakeamqp.model.definitions",
    "fakeamqp.model.exchanges.hashing",
    "fakeamqp.protocols.negotiation",
    "fakeamqp.runtime.thread.loop",
    "fakeamqp.trace.timeline",
    "fakeamqp.trace.events",
    "json",
    "logging",
    "pathlib",
    "socket",
    "typing_extensions",
    "urllib.parse",
}
PACKAGES = ["fakeamqp", "fakeamqp.inspect", "fakeamqp.spark", "fakeamqp.trace"]


def test_importing_broker_does_not_load_deferred_modules() -> None:
    program = "import sys; from fakeamqp import Broker; print(*sys.modules)"
    # Without `site`, which loads modules for editable installations.
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "fakeamqp.broker" in loaded
    assert sorted(loaded & LATER) == []


COMPILER_OF_PATTERNS = """
import re, sys
compiler = sys.modules.get("re._compiler") or sys.modules["sre_compile"]
lines = 0

def count(frame, event, argument):
    global lines
    if frame.f_code.co_filename == compiler.__file__:
        lines += 1
        return count

sys.settrace(count)
from fakeamqp import Broker
sys.settrace(None)
print(lines)
"""


def test_importing_broker_compiles_no_costly_regular_expression() -> None:
    done = subprocess.run([sys.executable, "-S", "-c", COMPILER_OF_PATTERNS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # A class of characters beyond Latin-1 takes 128 000 lines, the small patterns together 3 500.
    assert 0 < int(done.stdout) < 20_000


FIRST_DELIVERY = """
import sys, pika
from fakeamqp import Broker

with Broker() as broker:
    started = set(sys.modules)
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"m")
    delivered = next(channel.consume("q"))
    print(*sorted(set(sys.modules) - started))
    print(*sys.modules)
    connection.close()
"""


def test_first_client_triggers_no_import_of_fakeamqp_modules() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_DELIVERY], capture_output=True, text=True, check=True)
    late, loaded = (set(line.split()) for line in done.stdout.split("\n")[:2])
    assert sorted(each for each in late if each.startswith("fakeamqp")) == []
    assert "fakeamqp.protocols.amqp_0_9_1.server_connection" in loaded
    assert not any(each.startswith("fakeamqp.protocols.amqp_0_10") for each in loaded)


def test_password_login_does_not_load_openssl() -> None:
    program = """
import sys
from fakeamqp import Broker
with Broker() as broker:
    assert broker._state.access.authenticate("guest", "guest").name == "guest"
    print(*{"hashlib", "hmac", "ssl"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", PACKAGES)
def test_lazily_imported_names_equal_names_seen_by_type_checkers(name: str) -> None:
    if name.startswith("fakeamqp.spark"):
        import compat_tests.tools.needs_pyspark  # noqa: F401

    # In a new interpreter: tests of plugins take modules out of `sys.modules` that a package keeps a name of.
    program = f"from {__name__} import check_names; check_names({name!r})"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr


def check_names(name: str) -> None:
    """Compare the names that a package imports on first use with its imports for type checkers."""
    package = import_module(name)
    assert package.__file__ is not None
    imported = {
        alias.asname or alias.name: node.module
        for node in ast.walk(ast.parse(Path(package.__file__).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fakeamqp.")
        for alias in node.names
    }
    for each in package.__all__:
        home = import_module(imported.get(each) or name)
        assert getattr(package, each) is getattr(home, each)
    assert dir(package) == sorted(package.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_unknown_name_in_package_raises_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Brocker'"):
        import_module(name).Brocker  # noqa: B018
