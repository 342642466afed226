"""What mypy says of a test that uses an installed fakeamqp, in a project without stubs for its clients.

And what pyright says of the types of all public names: `make lint` runs that test, too.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.packaging.test_packaging import build, copied_to, installed
from compat_tests.tools.api_page import MODULES

Check = Callable[[str], list[tuple[int, str]]]


@pytest.fixture(scope="module", params=["wheel", "strict editable"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has fakeamqp and nothing else."""
    folder = tmp_path_factory.mktemp("types")
    source = copied_to(tmp_path_factory.mktemp("source"))
    kind, *settings = ["wheel"] if request.param == "wheel" else ["editable", "editable_mode=strict"]
    return installed(build(kind, source, folder, *settings), folder)


@pytest.fixture
def check(python: Path, tmp_path: Path) -> Check:
    """Runs mypy on a file, and returns the line and the kind of each error."""

    def check(text: str) -> list[tuple[int, str]]:
        (tmp_path / "test_orders.py").write_text(text)
        options = ["--config-file=", "--ignore-missing-imports", "--strict", f"--python-executable={python}"]
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, "test_orders.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = re.findall(r"^test_orders\.py:(\d+): error: .* \[([a-z-]+)\]$", done.stdout, re.MULTILINE)
        assert len(found) == done.stdout.count(" error: "), done.stdout
        return [(int(line), kind) for line, kind in found]

    return check


WRONG = """\
import fakeamqp
from fakeamqp import Broker, Brokr, Personality
from fakeamqp.inspect import QueueVew
from pytest_fakeamqp import MakeBroker, MakeBrker

fakeamqp.Brokr
Broker(hartbeat=0)
Broker(port="5672")
Broker(clock="virtul")
Broker(users=["guest"])
Broker(bounds={"consumers_per_channel": 1})
Broker(memory_limit="all")

def test_orders(amqp_broker: Broker, make_amqp_broker: MakeBroker) -> None:
    make_amqp_broker(persnality="spec")
    make_amqp_broker(trace="off")
    amqp_broker.quue("orders")
    amqp_broker.publish(5)
    amqp_broker.publish(b"", priorty=3)
    amqp_broker.queue("orders").wait_for(count=3)
    amqp_broker.expect_published(routing_kee="orders")
    amqp_broker.faults.on("basic.publish").nak()
    amqp_broker.clock.advance("60")
    amqp_broker.faults.on("basic.pubish")
    amqp_broker.faults.on("basic.publish", routing_ky="orders")
    Broker(personality="rabbitmq-4.9")
    Personality("rabbitmq-4.9")
    Personality("spec").with_(hartbeat=0)

async def test_coroutines(amqp_broker: Broker) -> None:
    await amqp_broker.queue("orders").wait_for.aio(count=3)
    await amqp_broker.expect_published.aio(routing_kee="orders")
    await amqp_broker.wait_for.aio(lambda: True, timout=3)
    await amqp_broker.clock.advance.aio("60")
"""

RIGHT = """\
from fakeamqp import Broker, Clock, Personality, User
from fakeamqp.faults import Faults
from pytest_fakeamqp import MakeBroker

def test_orders(
    amqp_broker: Broker, make_amqp_broker: MakeBroker, amqp_clock: Clock, amqp_faults: Faults, amqp_url: str
) -> None:
    make_amqp_broker(personality="spec", users={"app": "secret"})
    Broker(users=[User("app", "secret")], definitions={"queues": []}, memory_limit=None)
    amqp_broker.publish(json={"id": 1}, routing_key="orders", priority=3)
    amqp_broker.queue("orders").wait_for(ready=1)
    amqp_clock.advance(60)
    amqp_faults.on("basic.publish", "queue.*", routing_key="orders").once().nack()
    assert "orders" in amqp_broker.queues
    make_amqp_broker(personality=Personality("rabbitmq-4.3").with_(heartbeat=0))

async def test_coroutines(amqp_broker: Broker, amqp_clock: Clock, amqp_faults: Faults) -> None:
    found: int = await amqp_broker.wait_for.aio(lambda: len(amqp_broker.queues))
    ready: int = (await amqp_broker.queue("orders").wait_for.aio(ready=1)).ready
    await amqp_broker.expect_published.aio(routing_key="orders", count=found + ready)
    await amqp_clock.advance.aio(60)
    await amqp_faults.on("confirm").wait.aio(2)
    async with amqp_broker.expect_no_findings.during() as checked:
        checked.step()
"""


def test_mypy_reports_wrong_names_and_arguments(check: Check) -> None:
    assert check(WRONG) == [
        (2, "attr-defined"),
        (3, "attr-defined"),
        (4, "attr-defined"),
        (6, "attr-defined"),
        (7, "arg-type"),
        (8, "arg-type"),
        (9, "arg-type"),
        (10, "list-item"),
        (11, "arg-type"),
        (12, "arg-type"),
        (15, "call-arg"),
        (16, "arg-type"),
        (17, "attr-defined"),
        (18, "arg-type"),
        (19, "call-arg"),
        (20, "arg-type"),
        (21, "call-arg"),
        (22, "attr-defined"),
        (23, "arg-type"),
        (24, "arg-type"),
        (25, "call-arg"),
        (26, "arg-type"),
        (27, "arg-type"),
        (28, "call-arg"),
        (31, "arg-type"),
        (32, "call-arg"),
        (33, "call-arg"),
        (34, "arg-type"),
    ]


def test_mypy_reports_no_error_in_correct_test(check: Check) -> None:
    assert check(RIGHT) == []


def test_mypy_finds_type_of_every_public_name(check: Check) -> None:
    imports = [
        f"from {module} import {name} as _"
        for module in MODULES
        for name in importlib.import_module(module).__all__
    ]
    text = "\n".join(f"def f{number}() -> None:\n    {line}" for number, line in enumerate(imports))
    assert check(text) == []


@pytest.fixture
def pyright(python: Path, tmp_path: Path) -> Callable[[str], list[int]]:
    """Runs pyright on a file, and returns the lines with an error."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("pyright needs Node.js and npm")

    def check(text: str) -> list[int]:
        (tmp_path / "test_orders.py").write_text(text)
        arguments = ["--pythonpath", str(python), "--outputjson", "test_orders.py"]
        done = subprocess.run(
            [sys.executable, "-m", "pyright", *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        found = json.loads(done.stdout[done.stdout.index("{") :])["generalDiagnostics"]
        errors = [each for each in found if each["severity"] == "error"]
        return sorted({each["range"]["start"]["line"] + 1 for each in errors})

    return check


@pytest.mark.parametrize("python", ["wheel"], indirect=True)
def test_pyright_reports_wrong_names_and_arguments(pyright: Callable[[str], list[int]]) -> None:
    assert pyright(WRONG) == [2, 3, 4, *range(6, 13), *range(15, 29), *range(31, 35)]


@pytest.mark.parametrize("python", ["wheel"], indirect=True)
def test_pyright_reports_no_error_in_correct_test(pyright: Callable[[str], list[int]]) -> None:
    assert pyright(RIGHT) == []


@pytest.mark.parametrize("python", ["wheel"], indirect=True)
@pytest.mark.parametrize("package", ["fakeamqp", "pytest_fakeamqp"])
def test_pyright_finds_declared_type_of_every_public_name(package: str, python: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="pyright is not installed")
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("pyright needs Node.js and npm")
    # Libraries whose types are public ones of ours come from the environment of the tests.
    libraries = next((python.parents[1] / "lib").glob("*/site-packages")) / "libraries.pth"
    libraries.write_text(sysconfig.get_path("purelib"))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"],
            cwd=tmp_path,
            env={**os.environ, "PATH": os.pathsep.join((str(python.parent), os.environ["PATH"]))},
            capture_output=True,
            text=True,
        )
    finally:
        libraries.unlink()
    report = json.loads(done.stdout[done.stdout.index("{") :])["typeCompleteness"]
    untyped = [each["name"] for each in report["symbols"] if each["isExported"] and not each["isTypeKnown"]]
    assert untyped == []
    assert report["exportedSymbolCounts"]["withKnownType"] > 300
