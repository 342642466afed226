"""The distribution: what a wheel holds, what an editable install finds, what an import costs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from datetime import date
from email.message import Message
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

import pytest
import typing_extensions

ROOT = Path(__file__).parents[2]
PACKAGES = {  # import name: folder
    "fakeamqp": "fakeamqp",
    "pytest_fakeamqp": "pytest_plugin",
    "pyspark_fakeamqp": "fakeamqp/spark/registration",
}
TYPED = ("fakeamqp", "pytest_fakeamqp")
SOURCE_FOLDERS = ("compat_tests", "docs", "examples", "spec")
ALSO_IN_SOURCES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Containerfile",
    "Makefile",
    "mkdocs.yml",
    ".ci/run",
)
SUFFIXES = (".py", ".html", ".css", ".js", ".sql", ".properties", ".typed")

BUILD = """
import sys
from setuptools import build_meta
settings = dict(setting.split("=") for setting in sys.argv[3:])
print(getattr(build_meta, "build_" + sys.argv[1])(sys.argv[2], settings))
"""

SMOKE = """
from fakeamqp import Broker, FakeAMQPError

with Broker(clock="virtual") as broker:
    with broker.connect() as client:
        client.sendall(b"AMQP\\x00\\x00\\x09\\x01")
        print(client.recv(3))
    broker.load_definitions({
        "vhosts": [{"name": "/"}],
        "queues": [{
            "name": "orders", "vhost": "/", "durable": True, "auto_delete": False,
            "arguments": {"x-message-ttl": 3600000},
        }],
    })
    broker.publish("two apples", routing_key="orders")
    print(broker.queue("orders").ready, "ready")
    broker.clock.advance(3600)
    print(broker.queue("orders").ready, "ready after an hour")
try:
    Broker(tls=True).start()
except FakeAMQPError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied_to(tmp_path_factory.mktemp("source"))


def copied_to(copy: Path) -> Path:
    """A copy of what is packaged, so that building leaves nothing in the checkout."""
    for package in TYPED:
        folder = PACKAGES[package]
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in", *ALSO_IN_SOURCES):
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    for name in SOURCE_FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def build(kind: str, source: Path, target: Path, *settings: str) -> Path:
    command = [sys.executable, "-c", BUILD, kind, str(target), *settings]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target / done.stdout.split()[-1]


def installed(built: Path, folder: Path) -> Path:
    """The interpreter of an environment that has a wheel and nothing else."""
    python = folder / "environment" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    venv.create(folder / "environment", with_pip=False)
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(built)], check=True, capture_output=True)
    return python


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def sources(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", source, tmp_path_factory.mktemp("sdist"))


def packaged_files() -> set[str]:
    """What a wheel must hold, by the path it has there."""
    found = {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES
    }
    return {name for name in found if not name.startswith("fakeamqp/spark/registration/")}


def test_wheel_contains_exactly_modules_type_markers_and_pages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        types = {f"{package}/py.typed" for package in TYPED}
        assert types <= names
        assert names == packaged_files()


def test_size_of_the_wheel_is_on_the_page_about_operating_spark_jobs(wheel):
    page = (ROOT / "docs" / "spark-operations.md").read_text()
    [said] = re.findall(r"The wheel of fakeamqp has about (\S+) MB", page)
    assert abs(wheel.stat().st_size / 1e6 - float(said)) < 0.1


def test_wheel_declares_console_command_and_pytest_plugin(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        text = archive.read(name).decode()
    assert re.search(r"\[console_scripts\]\nfakeamqp = fakeamqp\.cli:main\n", text)
    assert re.search(r"\[pytest11\]\nfakeamqp = pytest_fakeamqp\n", text)


def test_wheel_contains_apache_licence(wheel, metadata):
    assert metadata["License-Expression"] == "Apache-2.0"
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("licenses/LICENSE"))
        assert "Apache License" in archive.read(name).decode()


def test_the_only_requirement_is_typing_extensions(metadata):
    unconditional = [item for item in metadata.get_all("Requires-Dist") if "extra ==" not in item]
    assert [re.split(r"[<>=!~ ;]", item)[0] for item in unconditional] == ["typing-extensions"]
    assert metadata["Requires-Python"] == ">=3.10"


def test_wheel_version_is_latest_dated_changelog_version(metadata):
    changelog = (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## (\d\S*) - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    version, day = released[0]
    assert metadata["Version"] == version
    date.fromisoformat(day)
    assert (ROOT / "docs" / "release-notes.md").read_text().count(f"## {version}\n") == 1


def test_wheel_metadata_have_author_project_urls_and_keywords(metadata):
    assert metadata["Author"] == "fakeamqp developers"
    urls = dict(each.split(", ") for each in metadata.get_all("Project-URL"))
    assert set(urls) == {"Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith("https://") for url in urls.values())
    assert {"amqp", "rabbitmq", "pytest"} <= set(metadata["Keywords"].split(","))


def test_the_long_description_is_the_readme_with_absolute_links(metadata):
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert all(link.startswith("https://") for link in links)
    base = "https://github.com/fakeamqp/fakeamqp/blob/main/"
    assert text.replace(base, "").strip() == (ROOT / "README.md").read_text().strip()


def test_source_distribution_contains_tests_docs_and_changelog(sources):
    with tarfile.open(sources) as archive:
        files = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    wanted = set(ALSO_IN_SOURCES) | {
        path.relative_to(ROOT).as_posix()
        for folder in SOURCE_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - files == set()


def test_two_builds_of_same_commit_are_byte_identical(tmp_path):
    built = []
    for name, modified in (("one", 1_000_000_000), ("other", 1_700_000_000)):
        checkout = copied_to(tmp_path / name)
        commit_all(checkout)
        for path in checkout.rglob("*"):
            os.utime(path, (modified, modified))
        sources = build("sdist", checkout, tmp_path / name)
        with tarfile.open(sources) as archive:
            archive.extractall(tmp_path / f"{name}-unpacked", filter="data")
        [unpacked] = (tmp_path / f"{name}-unpacked").iterdir()
        wheels = [
            build("wheel", each, tmp_path / f"{name}-wheel-{each.name}") for each in (checkout, unpacked)
        ]
        built += [sources.read_bytes(), *(wheel.read_bytes() for wheel in wheels)]
    sources, *wheels = built[:3]
    assert built[3] == sources
    assert {*wheels, *built[4:]} == {wheels[0]}


def commit_all(folder: Path) -> None:
    date = "2026-01-02T03:04:06Z"
    identity = ("-c", "user.name=developers", "-c", "user.email=developers@localhost")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "All")):
        subprocess.run(
            ["git", *command], cwd=folder, check=True, env={**os.environ, "GIT_COMMITTER_DATE": date}
        )


def test_broker_and_command_work_in_installation_without_extras(wheel, tmp_path):
    """A clean environment: nothing but the wheel and its only requirement."""
    python = installed(wheel, tmp_path)
    [packages] = (tmp_path / "environment").glob("lib/python*/site-packages")
    shutil.copy(typing_extensions.__file__, packages)

    done = subprocess.run(
        [python, "-I", "-W", "error", "-c", SMOKE], capture_output=True, text=True, cwd=tmp_path
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "b'\\x01\\x00\\x00'",
        "1 ready",
        "0 ready after an hour",
        "TLS without a certificate of your own needs the package trustme: pip install 'fakeamqp[tls]', "
        "or give a certificate and a key",
    ]
    command = python.with_name("fakeamqp")
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"fakeamqp {version('fakeamqp')}\n"
    with subprocess.Popen([command, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout.readline().startswith("listening on amqp://guest:guest@127.0.0.1:")
        served.terminate()
        assert served.wait(60) == 0


def test_wheel_metadata_list_exactly_the_expected_extras(metadata):
    assert set(metadata.get_all("Provides-Extra")) == {
        "aio-pika",
        "amqp-1-0",
        "bench",
        "docs",
        "management",
        "pika",
        "pytest",
        "recipes",
        "release",
        "spark",
        "test",
        "tls",
        "trace",
    }


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_wheel_and_editable_installation_find_every_package(kind, source, tmp_path):
    python = installed(build(kind, source, tmp_path), tmp_path)
    program = (
        "import importlib.util, pathlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    for folder in importlib.util.find_spec(name).submodule_search_locations:\n"
        "        for path in pathlib.Path(folder).rglob('*'):\n"
        f"            if path.suffix in {SUFFIXES}:\n"
        "                print(name + '/' + path.relative_to(folder).as_posix())\n"
    )
    done = subprocess.run(
        [str(python), "-I", "-c", program, *PACKAGES],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    found = {name for name in done.stdout.split() if not name.startswith("fakeamqp/spark/registration/")}
    assert found == packaged_files()


def test_package_that_spark_looks_for_is_listed_in_an_installed_wheel(wheel, tmp_path):
    program = "import pkgutil; print(*(module.name for module in pkgutil.iter_modules()))"
    python = installed(wheel, tmp_path)
    done = subprocess.run([python, "-I", "-c", program], check=True, capture_output=True, text=True)
    assert "pyspark_fakeamqp" in done.stdout.split()


def test_import_of_fakeamqp_loads_no_optional_or_heavy_module():
    program = (
        "import sys; before = set(sys.modules); import fakeamqp;"
        "print('\\n'.join(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    added = set(done.stdout.split())
    assert not added & {"asyncio", "ssl", "json", "http", "logging", "xml", "email", "urllib", "concurrent"}
    assert added <= {"fakeamqp", "typing_extensions"} | set(sys.stdlib_module_names)


def test_every_module_can_be_imported_without_optional_libraries():
    """Modules import other libraries where they are used, except in the packages that are about a library."""
    program = (
        "import importlib, pkgutil, sys\n"
        "import typing_extensions, fakeamqp\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        top = name.partition('.')[0]\n"
        "        ours = top in ('fakeamqp', 'typing_extensions')\n"
        # A module of the standard library has the name of the platform.
        "        standard = top in sys.stdlib_module_names or top.startswith('_sysconfigdata')\n"
        "        if not (ours or standard):\n"
        "            raise ImportError(f'{name} was imported')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "for module in pkgutil.walk_packages(fakeamqp.__path__, 'fakeamqp.'):\n"
        "    about_a_library = module.name.startswith(('fakeamqp.spark.', 'fakeamqp.management.'))\n"
        "    if module.name != 'fakeamqp.__main__' and not about_a_library:\n"
        "        importlib.import_module(module.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
