"""How the workers of Spark get the package: the commands of docs/spark-operations.md, on a cluster."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from compat_tests.packaging.test_packaging import ROOT, build, copied_to
from fakeamqp import Broker

pyspark = pytest.importorskip("pyspark")

from fakeamqp.spark import SessionError  # noqa: E402
from fakeamqp.spark.session.installation import find_installation  # noqa: E402

JOBS = Path(__file__).parent / "jobs"
CLUSTER = "local-cluster[2,1,1024]"
CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "pandas", "zstandard")
"""What Spark Connect needs beside PySpark and pyarrow."""

# Each of these starts a Java, and those on a cluster start four.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module", autouse=True)
def java() -> None:
    try:
        find_installation()
    except SessionError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", copied_to(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Spark home of links, because a cluster writes logs into it. Its default is a cluster of processes."""
    home = tmp_path_factory.mktemp("spark")
    for name in ("bin", "jars", "python"):
        home.joinpath(name).symlink_to(Path(pyspark.__file__).parent / name)
    home.joinpath("conf").mkdir()
    settings = {
        "spark.master": CLUSTER,
        "spark.ui.enabled": "false",
        # As on another machine: executors must not find what the driver does.
        "spark.executorEnv.PYTHONPATH": "/nowhere",
    }
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    home.joinpath("conf", "spark-defaults.conf").write_text(text)
    return home


@pytest.fixture(scope="module")
def environment(home: Path) -> dict[str, str]:
    """The variables of a shell, whose `python3` is one without packages."""
    kept = {key: value for key, value in os.environ.items() if key in ("HOME", "JAVA_HOME", "LANG", "TMPDIR")}
    java = str(find_installation().java.parent)
    bare = home / "bare"
    venv.create(bare, symlinks=True)
    path = os.pathsep.join([str(bare / "bin"), str(home / "bin"), java, "/usr/bin", "/bin"])
    return {**kept, "PATH": path, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.fixture
def broker() -> Broker:
    names = ("orders", "written", "streamed", "batches", "totals", "large")
    with Broker(definitions={"queues": [{"name": name, "durable": True} for name in names]}) as broker:
        for number in range(3):
            broker.publish(f"order {number}", routing_key="orders")
        yield broker


def make_python(folder: Path, *packages: str | Path, paths: str = "") -> Path:
    """A virtual environment with copies of packages, a wheel, and other folders to import from."""
    venv.create(folder, symlinks=True)
    [target] = folder.glob("lib/python*/site-packages")
    for package in packages:
        if isinstance(package, Path):
            command = [sys.executable, "-m", "pip", f"--python={folder}/bin/python", "install", "--quiet"]
            subprocess.run([*command, "--no-deps", "--no-index", package], check=True)
        else:
            copy_package(package, target)
    target.joinpath("more.pth").write_text(paths)
    return folder / "bin" / "python"


def copy_package(name: str, target: Path) -> None:
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None
    origin = Path(spec.origin)
    if origin.name == "__init__.py":
        unused = shutil.ignore_patterns("__pycache__", "include", "tests")
        shutil.copytree(origin.parent, target / name, ignore=unused)
    else:
        shutil.copy(origin, target)


def documented(program: str) -> list[str]:
    """The commands of the section 'On a cluster' from the line after its installation of packages."""
    section = (ROOT / "docs" / "spark-operations.md").read_text().partition("\n## On a cluster\n")[2]
    blocks = re.findall(r"```sh\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    [block] = [block for block in blocks if program in block]
    return [line for line in block.splitlines() if "install" not in line]


def run(commands: list[str], folder: Path, environment: dict[str, str], broker: Broker) -> str:
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)],
        cwd=folder,
        env={**environment, "BROKER": broker.url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(said: str, broker: Broker) -> None:
    assert "orders: 3\n" in said
    assert broker.queue("orders").ready == 0
    written = {bytes(message.body) for message in broker.queue("written").messages}
    assert written == {str(number).encode() for number in range(10)}


def streamed(broker: Broker, queue: str = "streamed") -> list[bytes]:
    return sorted(bytes(message.body) for message in broker.queue(queue).messages)


ORDERS = [b"order 0", b"order 1", b"order 2"]


def test_py_files_option_gives_package_to_spark_executors(wheel, environment, broker, tmp_path):
    """Executors have pyarrow, which is not pure Python, and get the rest."""
    python = make_python(tmp_path / "base", "pyarrow")
    shutil.unpack_archive(wheel, tmp_path / "packages", "zip")
    copy_package("typing_extensions", tmp_path / "packages")
    shutil.copy(JOBS / "cluster.py", tmp_path / "job.py")
    said = run(documented("--py-files"), tmp_path, {**environment, "PYSPARK_PYTHON": str(python)}, broker)
    check(said, broker)
    assert streamed(broker) == ORDERS


def test_packed_environment_gives_package_to_spark_executors(wheel, environment, broker, tmp_path):
    venv_pack = pytest.importorskip("venv_pack")
    found = Path(venv_pack.__file__).parents[1]
    packer = f"#!/bin/sh\nPYTHONPATH='{found}' exec '{sys.executable}' -m venv_pack \"$@\"\n"
    python = make_python(tmp_path / "environment", wheel, "pyarrow", "typing_extensions")
    python.with_name("venv-pack").write_text(packer)
    python.with_name("venv-pack").chmod(0o755)
    shutil.copy(JOBS / "cluster.py", tmp_path / "job.py")
    check(run(documented("--archives"), tmp_path, environment, broker), broker)
    assert streamed(broker) == ORDERS


@pytest.fixture(scope="module")
def connect_packages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folders with what Spark Connect needs: where it is installed, or one from the package index."""
    found = [find_spec(name) for name in ("grpc_status", "pandas")]
    if all(found):
        return "".join(f"{Path(spec.origin).parents[1]}\n" for spec in found)
    folder = tmp_path_factory.mktemp("connect")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *CONNECT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"the packages of Spark Connect cannot be had: {done.stderr.strip()[-200:]}")
    return f"{folder}\n"


def test_spark_connect_server_with_package_runs_job_of_client(
    wheel, environment, connect_packages, broker, tmp_path
):
    """The server's Python has the package; the format is known to clients by its name."""
    installed = Path(pyspark.__file__).parents[1]
    python = make_python(tmp_path / "server", wheel, paths=f"{connect_packages}{installed}\n")
    command = f"PYSPARK_PYTHON={python} {python} {JOBS / 'cluster.py'} --connect"
    check(run([command], tmp_path, environment, broker), broker)
    assert streamed(broker) == []
    assert streamed(broker, "batches") == ORDERS


class TestRegister:
    """A program that is run by a Python whose environment is not active: Spark's `python3` is another one."""

    @pytest.mark.parametrize("kind", ["wheel", "editable"])
    def test_local_spark_session_reads_and_writes_in_a_later_thread(
        self, kind, environment, broker, tmp_path, tmp_path_factory
    ):
        installed = Path(pyspark.__file__).parents[1]
        package = build(kind, copied_to(tmp_path_factory.mktemp("source")), tmp_path)
        python = make_python(tmp_path / "own", package, paths=f"{installed}\n")
        assert "orders: 3\n" in run([f"{python} {JOBS / 'plain.py'}"], tmp_path, environment, broker)
        assert streamed(broker, "written") == ORDERS

    def test_cluster_without_package_raises_session_error_naming_pyspark_python(
        self, wheel, environment, broker, tmp_path
    ):
        installed = Path(pyspark.__file__).parents[1]
        python = make_python(tmp_path / "own", wheel, paths=f"{installed}\n")
        command = f"MASTER='{CLUSTER}' {python} {JOBS / 'plain.py'} 2>&1 || true"
        said = run([command], tmp_path, environment, broker)
        assert "SessionError: Spark's workers run 'python3', which lacks fakeamqp, pyarrow; " in said
        assert "set PYSPARK_PYTHON, before the session starts, to a Python with fakeamqp[spark]" in said


def test_declarative_pipeline_reads_queue_and_publishes_to_another(
    wheel, environment, connect_packages, broker, tmp_path
):
    """The files are those of docs/spark-pipelines.md."""
    yaml = pytest.importorskip("yaml", reason="spark-pipelines reads YAML")
    pytest.importorskip("pyspark.pipelines", reason="PySpark has pipelines from 4.1 on")
    page = (ROOT / "docs" / "spark-pipelines.md").read_text()
    files = dict(re.findall(r"```\w+\n# ([\w.-]+)\n(.*?)```", page, re.DOTALL))
    storage = (tmp_path / "storage").as_uri()
    specification = files["spark-pipeline.yml"].replace("file:///var/lib/orders/pipeline", storage)
    (tmp_path / "spark-pipeline.yml").write_text(specification)
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "orders.py").write_text(files["transformations.py"])
    installed = Path(pyspark.__file__).parents[1]
    paths = f"{connect_packages}{installed}\n{Path(yaml.__file__).parents[1]}\n"
    python = make_python(tmp_path / "python", wheel, paths=paths)
    variables = {
        **environment,
        "PATH": f"{python.parent}:{environment['PATH']}",
        "PYSPARK_PYTHON": str(python),
        "SPARK_HOME": str(installed / "pyspark"),
        "AMQP_URL": broker.url,
        "SPOOL_DIR": str(tmp_path / "spool"),
    }
    for total in (12, 250, 30, 180):
        broker.publish(b'{"total": %d}' % total, routing_key="totals", message_id=f"order-{total}")
    command = f"{installed}/pyspark/bin/spark-pipelines run --spec spark-pipeline.yml"
    run([command], tmp_path, variables, broker)
    assert broker.queue("totals").ready == 0
    large = {message.message_id: message.json() for message in broker.queue("large").messages}
    assert large == {"order-250": {"total": 250}, "order-180": {"total": 180}}
