"""The session for tests as far as it needs no Spark: what is installed, its settings, and its end."""

from __future__ import annotations

import builtins
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

pyspark = pytest.importorskip("pyspark")

# ruff: noqa: E402
from pyspark import SparkContext

from compat_tests.tools.matrix import cases
from fakeamqp.spark.session import fast, installation, local, settings
from fakeamqp.spark.session.errors import JavaMissing, SessionRunning, SparkMissing
from fakeamqp.spark.session.installation import Installation, find_installation, find_java
from fakeamqp.spark.session.process import end_java, java_is_running, process_environment
from fakeamqp.spark.session.settings import ENVIRONMENT, JAVA_OPTIONS, SETTINGS, Setting

MakeJava = Callable[..., Path]


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A function that makes the Java of JAVA_HOME, with what it says about its version."""

    def make(says="", mode=0o755):
        home = tmp_path / f"jdk-{len(list(tmp_path.iterdir()))}"
        program = home / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n[ $1 = -version ] && printf '{says}' >&2\n")
        program.chmod(mode)
        monkeypatch.setenv("JAVA_HOME", str(home))
        return program

    return make


def test_java_version_is_read_from_the_output_of_java(java):
    with cases() as case:
        for says, version in [
            ('\\377 version "17.0.9" 2023-10-17\\n', "17.0.9"),
            ('java version "25-ea"', "25-ea"),
            ('openjdk version "21.0.2+13"', "21.0.2+13"),
        ]:
            with case(says):
                program = java(says)
                assert find_java() == (program, version)
        for given, said in [
            (('version "16.0.1"',), "needs Java 17 or later, but .*java is version 16.0.1. Set JAVA_HOME"),
            (('java version "1.8.0_392"',), "is version 1.8.0_392"),
            (('openjdk version "1.7.0"',), "is version 1.7.0"),
            (("No Java runtime present",), "java does not run; install a JRE"),
            (('version "17"', 0o644), "JAVA_HOME is '.*', which has no executable bin/java"),
        ]:
            with case(given):
                java(*given)
                with pytest.raises(JavaMissing, match=said):
                    find_java()


def test_a_java_that_does_not_answer_does_not_run(java, monkeypatch):
    program = java()
    asked = []

    def run(command, **given):
        asked.append((command, given["timeout"]))
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(installation.subprocess, "run", run)
    with pytest.raises(JavaMissing, match="does not run"):
        find_java()
    assert asked == [([str(program), "-version"], 60)]


def test_java_is_that_of_the_path_without_java_home(java, monkeypatch):
    program = java('version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_java() == (program, "17.0.1")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JavaMissing, match="17 or later, but there is no java on the PATH; install a JRE"):
        find_java()


def test_find_installation_accepts_pyspark_4_and_refuses_other_versions(java, monkeypatch, tmp_path):
    program = java('version "17.0.1"')
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with cases() as case:
        for version, found in [("4.0.0", (4, 0, 0)), ("4.3.0.dev12", (4, 3, 0)), ("4.10", (4, 10))]:
            with case(version):
                monkeypatch.setattr(pyspark, "__version__", version)
                expected = Installation(found, Path(pyspark.__file__).parent, True, program, "17.0.1")
                assert find_installation() == expected
        for version in ("3.5.9", "5.0.0", "3"):
            monkeypatch.setattr(pyspark, "__version__", version)
            text = f"^PySpark {version} is installed, but fakeamqp needs PySpark 4; install it with: pip"
            with case(version), pytest.raises(SparkMissing, match=text):
                find_installation()
    monkeypatch.setattr(pyspark, "__version__", "4.1.0")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    found = find_installation()
    assert (found.home, found.own_home) == (tmp_path, False)


@pytest.mark.parametrize(
    ("missing", "error"), [("pyspark", SparkMissing), ("py4j", SparkMissing), ("zlib", ImportError)]
)
def test_missing_pyspark_or_py4j_raises_spark_missing(missing, error, monkeypatch):
    real = builtins.__import__

    def fail(name, *more):
        if name == "pyspark":
            raise ImportError(f"No module named {missing!r}", name=missing)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", fail)
    text = "PySpark is not installed; install it with" if error is SparkMissing else "No module named 'zlib'"
    with pytest.raises(error, match=text) as caught:
        find_installation()
    monkeypatch.undo()
    assert type(caught.value) is error


# --- the session ------------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What happens to the session: its settings and the environment at its start, and its end."""
    events = []

    def start(settings, home):
        events.append((dict(settings), dict(os.environ), home))
        return SimpleNamespace(stop=lambda: events.append("stop"))

    def register(session):
        assert session.stop is not None
        events.append("registered")

    def link(_installed, home):
        home.joinpath("bin").mkdir()

    found = Installation((4, 3, 0), tmp_path / "pyspark", True, tmp_path / "java", "17")
    monkeypatch.setattr(local, "find_installation", lambda: found)
    monkeypatch.setattr(Installation, "link_home", link)
    monkeypatch.setattr(local, "_start", start)
    monkeypatch.setattr(local, "register", register)
    monkeypatch.setattr(local, "java_is_running", lambda: False)
    monkeypatch.setattr(local, "end_java", lambda: events.append("end of Java"))
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/elsewhere")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return events


def test_a_session_has_its_settings_and_its_own_folder(started, tmp_path):
    before = dict(os.environ)
    with local.local_session() as session:
        [(settings, environment, home), registered] = started
        folder = Path(settings["spark.local.dir"]).parent
        assert sorted(path.name for path in folder.iterdir()) == ["local", "tmp", "warehouse"]
        assert folder.name.startswith("fakeamqp-spark-")
        assert home.joinpath("bin").is_dir()
        expected = {each.key: str(each.value).format(folder=folder) for each in SETTINGS}
        module = Path(local.__file__).parent
        assert settings == {
            **expected,
            "spark.app.name": "tests",
            "spark.master": "local[2]",
            "spark.driver.extraJavaOptions": " ".join(
                each.key + (f"={each.value.format(folder=folder, module=module)}" if each.value else "")
                for each in JAVA_OPTIONS
            ),
        }
        for each in ENVIRONMENT:
            value = None if each.value is None else each.value.format(python=sys.executable)
            assert environment.get(each.key) == value
        assert (session.stop is not None, time.tzname[0]) == (True, "UTC")
        assert registered == "registered"
    assert started[2:] == ["stop", "end of Java"]
    assert dict(os.environ) == before
    assert not folder.exists()
    assert not home.exists()


def test_local_session_uses_given_name_master_config_and_folder(started, tmp_path):
    folder = tmp_path / "mine"
    config = {"spark.ui.enabled": True, "spark.x": 7, "spark.driver.extraJavaOptions": "-Da=b"}
    with local.local_session(app_name="a", master="local[1]", config=config, folder=folder):
        (settings, _, _), _ = started
    assert {
        key: settings[key] for key in ("spark.app.name", "spark.master", "spark.ui.enabled", "spark.x")
    } == {
        "spark.app.name": "a",
        "spark.master": "local[1]",
        "spark.ui.enabled": True,
        "spark.x": 7,
    }
    options = settings["spark.driver.extraJavaOptions"].split()
    assert options[0] == JAVA_OPTIONS[0].key
    assert options[-1] == "-Da=b"
    assert settings["spark.sql.warehouse.dir"] == f"{folder}/warehouse"
    with local.local_session(folder=folder):
        assert folder.joinpath("warehouse").is_dir()
    assert sorted(path.name for path in folder.iterdir()) == ["local", "tmp", "warehouse"]


def test_messages_travel_in_files_of_the_spool_only_with_local_master(started):
    remote = "spark://h:7077"
    for more in (
        {"master": remote},
        {"config": {"spark.master": remote}},
        {"master": "local-cluster[2,1,9]"},
    ):
        with local.local_session(**more):
            pass
    found = [each[1].get("FAKEAMQP_SPARK_TRANSPORT") for each in started if isinstance(each, tuple)]
    assert found == [None, None, "file"]


def test_the_class_of_checkpoints_is_set_if_this_spark_has_it(started, monkeypatch):
    setting = Setting("spark.manager", "x", "why")
    monkeypatch.setattr(local, "checkpoint_file_manager", lambda _: [setting])
    with local.local_session():
        assert started[0][0]["spark.manager"] == "x"


@pytest.mark.parametrize("why", ["a home of the user", "no links", "Java runs"])
def test_session_without_own_spark_home_sets_no_spark_home_variable(started, monkeypatch, why):
    ends = ["stop", "end of Java"]
    if why == "a home of the user":
        found = Installation((4, 3, 0), Path("/spark"), False, Path("/java"), "17")
        monkeypatch.setattr(local, "find_installation", lambda: found)
    elif why == "Java runs":
        monkeypatch.setattr(local, "java_is_running", lambda: True)
        ends = ["stop"]
    else:

        def fail(*_):
            raise OSError("no privilege")

        monkeypatch.setattr(Installation, "link_home", fail)
    with local.local_session():
        (_, _, home), _ = started
        assert home is None
    assert started[2:] == ends


def test_fast_mode_starts_with_the_cache(started, monkeypatch, tmp_path):
    fitted = fast.Fast(tmp_path / "home", tmp_path / "classes.jsa")
    monkeypatch.setattr(fast, "prepare", lambda _: fitted)
    with local.local_session(fast=True):
        (settings, _, home), _ = started
    options = settings["spark.driver.extraJavaOptions"]
    assert options.startswith(JAVA_OPTIONS[0].key)
    assert options.endswith(fitted.java_options)
    assert str(fitted.archive) in options
    assert home == fitted.home
    started.clear()
    with local.local_session():
        assert str(fitted.archive) not in started[0][0]["spark.driver.extraJavaOptions"]


def test_fast_mode_is_given_up_with_a_warning(started, monkeypatch, tmp_path):
    monkeypatch.setattr(local, "java_is_running", lambda: True)
    with (
        pytest.warns(local.FastModeWarning, match="already has a Java process, from an earlier session"),
        local.local_session(fast=True),
    ):
        assert len(started) == 2
    monkeypatch.setattr(local, "java_is_running", lambda: False)
    monkeypatch.setattr(fast, "prepare", lambda _: fast.Fast(tmp_path / "home", tmp_path / "classes.jsa"))
    start = local._start

    def fail_first(settings, home):
        os.environ["SPARK_HOME"] = str(home)
        monkeypatch.setattr(local, "_start", start)
        raise RuntimeError("no gateway")

    monkeypatch.setattr(local, "_start", fail_first)
    started.clear()
    with pytest.warns(local.FastModeWarning, match="no gateway"), local.local_session(fast=True):
        end, (settings, environment, home), _ = started
        assert end == "end of Java"
        assert "SPARK_HOME" not in environment
        assert home not in (None, tmp_path / "home")
        assert "classes.jsa" not in settings["spark.driver.extraJavaOptions"]


def test_second_spark_session_in_process_is_refused(started, monkeypatch):
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(appName="other"))
    with (
        pytest.raises(SessionRunning, match=r"already has a Spark session \('other'\)"),
        local.local_session(),
    ):
        pass
    assert started == []


def test_failed_session_start_removes_folder_and_restores_environment(started, monkeypatch):
    def fail(settings, home):
        started.append(settings["spark.local.dir"])
        raise RuntimeError("no gateway")

    monkeypatch.setattr(local, "_start", fail)
    before = dict(os.environ)
    with pytest.raises(RuntimeError, match="no gateway"), local.local_session():
        pass
    folder, end = started
    assert end == "end of Java"
    assert not Path(folder).parent.exists()
    assert dict(os.environ) == before


def test_all_settings_go_to_the_builder(monkeypatch):
    given = []

    class Builder:
        def config(self, *setting):
            given.append(setting)
            return Builder()

        def getOrCreate(self):
            return len(given)

    monkeypatch.setattr("pyspark.sql.SparkSession", SimpleNamespace(builder=Builder()))
    monkeypatch.setenv("SPARK_HOME", "before")
    assert local._start({"a": "1", "b": "2"}, Path("/links")) == 2
    assert given == [("a", "1"), ("b", "2")]
    assert os.environ["SPARK_HOME"] == "/links"


# --- the process ------------------------------------------------------------------------------------------


def test_process_environment_restores_own_changes_and_keeps_foreign_changes(
    monkeypatch,
):
    """What the block and Spark have changed, but nothing that others have."""
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("REMOVED", "2")
    monkeypatch.setenv("SPARK_HOME", "/mine")
    for name in ("ADDED", "PYTHONHASHSEED", "OTHERS"):
        monkeypatch.delenv(name, raising=False)
    path, handler = list(sys.path), signal.getsignal(signal.SIGINT)
    with process_environment({"ADDED": "3", "REMOVED": None, "MISSING": None, "TZ": "Etc/GMT+7"}):
        found = [os.environ.get(name) for name in ("KEPT", "REMOVED", "ADDED", "MISSING")]
        assert found == ["1", None, "3", None]
        assert time.tzname[0] == "-07"
        os.environ.update({"PYTHONHASHSEED": "0", "SPARK_HOME": "/spark", "OTHERS": "4", "KEPT": "5"})
        sys.path[:0] = ["/x/spark-1/userFiles-2", "/others"]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    found = [os.environ.get(name) for name in ("KEPT", "REMOVED", "ADDED", "PYTHONHASHSEED", "SPARK_HOME")]
    assert found == ["5", "2", None, None, "/mine"]
    assert os.environ.pop("OTHERS") == "4"
    assert time.tzname[0] != "-07"
    assert sys.path == ["/others", *path]
    sys.path.remove("/others")
    assert signal.getsignal(signal.SIGINT) is handler


class Java:
    """A process that ends at the end of its input, unless it hangs."""

    def __init__(self, hangs=False):
        self.calls = []
        self.stdin = SimpleNamespace(close=lambda: self.calls.append("close"))
        self._hangs = hangs

    def wait(self, *timeout):
        self.calls.append(("wait", *timeout))
        if timeout and self._hangs:
            raise subprocess.TimeoutExpired("java", *timeout)

    def kill(self):
        self.calls.append("kill")


def test_end_of_session_shuts_down_java_or_kills_hanging_java(monkeypatch):
    with cases() as case:
        for process, calls in [
            (Java(), ["shutdown", "close", ("wait", 10.0)]),
            (Java(hangs=True), ["shutdown", "close", ("wait", 10.0), "kill", ("wait",)]),
        ]:
            with case(calls):
                gateway = SimpleNamespace(
                    proc=process, shutdown=lambda process=process: process.calls.append("shutdown")
                )
                monkeypatch.setattr(SparkContext, "_gateway", gateway)
                monkeypatch.setattr(SparkContext, "_jvm", object())
                assert java_is_running()
                end_java()
                assert process.calls == calls
                assert (SparkContext._gateway, SparkContext._jvm) == (None, None)
                assert not java_is_running()
        with case("no process of ours"):
            ended = []
            monkeypatch.setattr(
                SparkContext, "_gateway", SimpleNamespace(shutdown=lambda: ended.append(True))
            )
            end_java()
            end_java()
            assert ended == [True]
        with case("no input"):
            silent = Java()
            silent.stdin = None
            monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=silent, shutdown=lambda: None))
            end_java()
            assert silent.calls == [("wait", 10.0)]


def test_the_class_of_checkpoints_is_that_of_the_jar_of_spark(tmp_path):
    package = "org.apache.spark.sql.execution.streaming"
    name = "FileSystemBasedCheckpointFileManager"
    (tmp_path / "jars").mkdir()
    found = Installation((4, 3, 0), tmp_path, True, tmp_path / "java", "17")
    assert settings.checkpoint_file_manager(found) == []
    with cases() as case:
        for classes, expected in [
            (["other"], None),
            ([f"{package}.{name}"], f"{package}.{name}"),
            ([f"{package}.{name}", f"{package}.checkpointing.{name}"], f"{package}.checkpointing.{name}"),
        ]:
            with case(classes), zipfile.ZipFile(tmp_path / "jars" / "spark-sql_2.jar", "w") as jar:
                for each in classes:
                    jar.writestr(f"{each.replace('.', '/')}.class", b"")
                jar.close()
                found_settings = settings.checkpoint_file_manager(found)
                key = "spark.sql.streaming.checkpointFileManagerClass"
                expected_settings = [] if expected is None else [(key, expected)]
                assert [(each.key, each.value) for each in found_settings] == expected_settings
