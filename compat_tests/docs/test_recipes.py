"""The code blocks of the recipes run, each page in a pytest of its own with the library that it is about."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from compat_tests.docs.recipes import Recipe, is_test, recipes

SECONDS = 240
RECIPES = recipes()
NAMES = [recipe.path.name for recipe in RECIPES]

#: What a page needs beside pytest, pika and aio-pika: modules, programs (/name), files of PHP (php:name).
NEEDS = {
    "aiormq.md": ("aiormq",),
    "amqpstorm.md": ("amqpstorm",),
    "celery.md": ("celery", "time_machine"),
    "django.md": ("django",),
    "dramatiq.md": ("dramatiq",),
    "fastapi.md": ("fastapi", "httpx"),
    "faststream.md": ("faststream",),
    "kombu.md": ("kombu",),
    "lost-connection.md": ("celery",),
    "other-languages.md": ("/node", "/npm", "/php", "php:PhpAmqpLib/autoload.php"),
    "prometheus.md": ("prometheus_client", "pyspark"),
    "proton.md": ("proton",),
    "rabbitmq-amqp-python-client.md": ("rabbitmq_amqp_python_client",),
    "taskiq.md": ("taskiq_aio_pika",),
}
#: Languages whose blocks are files that run, or that files that run need.
RUN = ("python", "ini", "js", "php", "sh", "go", "java")


@pytest.mark.parametrize(
    "recipe", [each for each in RECIPES if each.stages()], ids=lambda each: each.path.name
)
def test_code_of_recipe_page_runs(recipe: Recipe, tmp_path: Path) -> None:
    for need in NEEDS.get(recipe.path.name, ()):
        if reason := missing(need):
            pytest.skip(reason)
    for number, files in enumerate(recipe.stages()):
        folder = tmp_path / str(number)
        for name, code in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        if any(name.endswith(".mjs") for name in files):
            (folder / "node_modules").symlink_to(node_modules())
        tests = {name for name in files if is_test(name)}
        if tests:
            assert run_pytest(folder) == tests
        for name in files:
            if name.endswith(".test.mjs"):
                run(folder, "node", "--test", name)
            elif name.endswith(".sh"):
                run(folder, "sh", name)


def other_language(name: str, folder: Path) -> None:
    """Write a file of the page about other languages."""
    page = next(recipe for recipe in RECIPES if recipe.path.name == "other-languages.md")
    [code] = [code for _, code, named in page.blocks if named == name]
    (folder / name).write_text(code)


def test_node_test_of_recipe_moves_time_and_breaks_a_publish(tmp_path: Path) -> None:
    if reason := missing("/node") or missing("/npm"):
        pytest.skip(reason)
    other_language("control.test.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(node_modules())
    assert re.search(r"^. pass 1$", run(tmp_path, "node", "--test", "control.test.mjs"), re.MULTILINE)


def test_go_test_of_recipe_moves_time_and_breaks_a_publish(tmp_path: Path) -> None:
    sources = [Path(each) for each in (*os.environ.get("GOPATH", "").split(os.pathsep), "/usr/share/gocode")]
    if reason := missing("/go"):
        pytest.skip(reason)
    if not any((each / "src/github.com/rabbitmq/amqp091-go").is_dir() for each in sources):
        pytest.skip("needs amqp091-go: Debian package golang-github-rabbitmq-amqp091-go-dev")
    other_language("orders_test.go", tmp_path)
    # Debian's packages have no modules.
    path = os.pathsep.join(map(str, sources))
    settings = ("GO111MODULE=off", f"GOPATH={path}", f"GOCACHE={tmp_path / 'cache'}")
    assert "ok" in run(tmp_path, "env", *settings, "go", "test", "orders_test.go")


def test_java_test_of_recipe_moves_time_and_breaks_a_publish(tmp_path: Path) -> None:
    if reason := missing("/javac"):
        pytest.skip(reason)
    folders = [Path(each) for each in (*os.environ.get("CLASSPATH", "").split(os.pathsep), "/usr/share/java")]
    jars = {jar.stem: str(jar) for folder in reversed(folders) for jar in folder.glob("*.jar")}
    if absent := [
        each for each in ("amqp-client", "junit-jupiter", "junit-platform-console") if each not in jars
    ]:
        pytest.skip(f"needs {' and '.join(absent)}: Debian packages librabbitmq-client-java and junit5")
    other_language("OrdersTest.java", tmp_path)
    used = ("amqp", "apiguardian", "junit", "opentest4j", "picocli", "slf4j-api")
    path = os.pathsep.join([*(jar for name, jar in jars.items() if name.startswith(used)), "."])
    run(tmp_path, "javac", "-cp", path, "OrdersTest.java")
    console = "org.junit.platform.console.ConsoleLauncher"
    assert "1 tests successful" in run(tmp_path, "java", "-cp", path, console, "-c", "OrdersTest")


def missing(need: str) -> str:
    """Why a page cannot run, or ""."""
    if need.startswith("/"):
        return "" if shutil.which(need[1:]) else f"needs the program {need[1:]}"
    if need.startswith("php:"):
        found = ["php", "-r", f"exit((int) !stream_resolve_include_path('{need[4:]}'));"]
        there = subprocess.run(found, timeout=SECONDS, check=False).returncode == 0
        return "" if there else "needs php-amqplib: Debian package php-amqplib"
    # kombu puts a module without `__spec__` in its place.
    return "" if need in sys.modules or find_spec(need) else f"needs {need}: pip install 'fakeamqp[recipes]'"


def node_modules() -> Path:
    """The packages of npm that recipes need, in the cache of the user. Skips the test if there are none."""
    home = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(home) if home else Path.home() / ".cache") / "fakeamqp" / "recipes"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / "amqplib" / "package.json").is_file():
            command = ["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), "amqplib"]
            installed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            if installed.returncode:
                pytest.skip(f"npm cannot install amqplib: {installed.stderr.strip().splitlines()[-1:]}")
    return folder / "node_modules"


def environment() -> dict[str, str]:
    """The variables of a process that knows nothing of this run, and finds the command `fakeamqp`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**kept, "PATH": os.pathsep.join((str(Path(sys.executable).parent), kept["PATH"]))}


def run(folder: Path, *command: str) -> str:
    """The output of a command that succeeds."""
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def run_pytest(folder: Path) -> set[str]:
    """The test files in which a test has passed, where no other has not."""
    command = ["-m", "pytest", "-v", "-p", "no:cacheprovider", "--timeout=120"]
    said = run(folder, sys.executable, *command)
    outcomes = re.findall(r"^(\S+\.py)::.* (PASSED|SKIPPED|XFAIL)", said, re.MULTILINE)
    assert outcomes and {outcome for _, outcome in outcomes} == {"PASSED"}, said
    return {name for name, _ in outcomes}


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_each_runnable_recipe_block_has_file_name(recipe: Recipe) -> None:
    nameless = [code for language, code, name in recipe.blocks if language in RUN and name is None]
    assert nameless == []


def test_pytest_commands_of_ci_recipe_write_trace_files(tmp_path: Path) -> None:
    page = next(recipe for recipe in RECIPES if recipe.path.name == "ci.md")
    (tmp_path / "test_orders.py").write_text(
        "def test_it(pika_channel):\n    pika_channel.queue_declare('orders')\n"
    )
    commands = [
        found
        for _, code, _ in page.blocks
        for found in re.findall(r"- (?:run: )?(pytest .*)$", code, re.MULTILINE)
    ]
    assert len(commands) == 2
    for command in commands:
        run(tmp_path, sys.executable, "-m", *command.replace("-n auto", "-n 2").split())
        assert list(tmp_path.glob("traces/*.html"))
        shutil.rmtree(tmp_path / "traces")


def test_needs_of_recipes_name_existing_pages() -> None:
    assert set(NEEDS) <= set(NAMES)
