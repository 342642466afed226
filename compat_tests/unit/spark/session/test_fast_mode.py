"""The cache of fast mode, with a stand-in for the session that writes the archive."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("py4j")

from fakeamqp.spark import FastModeWarning
from fakeamqp.spark.session import fast, local
from fakeamqp.spark.session.errors import UnknownLayout
from fakeamqp.spark.session.fast import FastModeUnavailable, archive, cache, home
from fakeamqp.spark.session.installation import Installation


@pytest.fixture
def installation(tmp_path):
    """A PySpark and a Java, as far as fast mode looks at them."""
    spark = tmp_path / "site-packages" / "pyspark"
    for name in ("bin", "jars", "sbin", "data", "python/lib"):
        spark.joinpath(name).mkdir(parents=True)
    for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip", "other.zip"):
        spark.joinpath("python", "lib", name).touch()
    java = tmp_path / "java"
    java.touch()
    return Installation((4, 3, 0), spark, True, java, "17.0.15")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The folder of the cache, for an archive that exists."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "fakeamqp" / "spark" / "one"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def training(monkeypatch):
    """Notes how often an archive is made; `training.says` is what the program ends with, if it fails."""

    class Training(list):
        says = ""

    calls = Training()

    def run(command, environment):
        calls.append(environment["SPARK_HOME"])
        if not calls.says:
            Path(command[-1]).write_text("archive")
        return subprocess.CompletedProcess(command, bool(calls.says), calls.says)

    monkeypatch.setattr(archive, "_run", run)
    return calls


def test_the_home_leads_to_the_installed_packages(installation, folder):
    import py4j

    made = home.the_home(installation, folder)
    links = {path.name: path.is_symlink() for path in made.iterdir()}
    assert links == {"bin": True, "data": True, "jars": True, "sbin": True, "python": False}
    libraries = made / "python" / "lib"
    assert libraries.joinpath("pyspark.zip", "pyspark").resolve() == installation.home
    assert libraries.joinpath("py4j-0.10.9.9-src.zip", "py4j").resolve() == Path(py4j.__file__).parent
    assert libraries.joinpath("other.zip").resolve() == installation.home / "python" / "lib" / "other.zip"
    assert home.the_home(installation, folder) == made
    assert [path.name for path in folder.iterdir()] == ["home"]


def test_a_home_that_another_process_makes_first_is_used(installation, folder, monkeypatch):
    def rename(making, place):
        assert making.name.startswith("home-")
        Path(place, "theirs").mkdir(parents=True)
        raise FileExistsError

    monkeypatch.setattr(home.os, "rename", rename)
    assert home.the_home(installation, folder).joinpath("theirs").is_dir()
    assert [path.name for path in folder.iterdir()] == ["home"]


def test_pyspark_without_zip_file_makes_fast_mode_unavailable(installation, folder):
    installation.home.joinpath("python", "lib", "pyspark.zip").unlink()
    with pytest.raises(UnknownLayout, match="no zip file of pyspark"):
        home.the_home(installation, folder)
    assert list(folder.iterdir()) == []
    with pytest.raises(FastModeUnavailable, match="no zip file of pyspark"):
        fast.prepare(installation)


def test_an_archive_is_made_once(folder, training):
    found = {archive.the_archive(folder / "home", folder) for _ in range(3)}
    assert found == {folder / "classes.jsa"}
    assert training == [str(folder / "home")]
    assert {path.name for path in folder.iterdir()} == {"classes.jsa", "lock", "used"}


def test_processes_that_want_it_at_once_wait_for_the_one_that_makes_it(folder, training, monkeypatch):
    run, threads = archive._run, []

    def slowly(command, environment):
        # The others are at the lock, or come later: for either of them it has to be made already.
        threads.extend(threading.Thread(target=archive.the_archive, args=(folder, folder)) for _ in range(3))
        for thread in threads:
            thread.start()
        return run(command, environment)

    monkeypatch.setattr(archive, "_run", slowly)
    archive.the_archive(folder, folder)
    for thread in threads:
        thread.join()
    assert len(training) == 1


def test_failed_archive_is_not_made_again_and_raises_same_reason(folder, training):
    training.says = "Error: no archive today\n\n"
    for _ in range(2):
        with pytest.raises(FastModeUnavailable, match="no archive today"):
            archive.the_archive(folder, folder)
    assert len(training) == 1
    with pytest.raises(FastModeUnavailable, match=r"delete .* to try again"):
        archive.the_archive(folder, folder)


def test_a_failure_is_tried_again_after_an_hour(folder, training):
    training.says = "Error: the machine is busy"
    with pytest.raises(FastModeUnavailable, match="busy"):
        archive.the_archive(folder, folder)
    training.says = ""
    then = folder.joinpath("failed").stat().st_mtime - 3601
    os.utime(folder / "failed", (then, then))
    assert archive.the_archive(folder, folder).read_text() == "archive"
    assert {path.name for path in folder.iterdir()} == {"classes.jsa", "lock", "used"}


def test_a_program_that_takes_too_long_ends_with_the_processes_that_it_started(monkeypatch):
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    children = []

    def take_too_long(running, timeout):
        children.append(os.pidfd_open(int(running.stdout.readline())))
        raise subprocess.TimeoutExpired(running.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", take_too_long)
    with pytest.raises(subprocess.TimeoutExpired):
        archive._run([sys.executable, "-c", program], dict(os.environ))
    [child] = children
    ended, _, _ = select.select([child], [], [], 60)
    os.close(child)
    assert ended


def test_archive_creation_timeout_makes_fast_mode_unavailable(folder, monkeypatch):
    def run(command, environment):
        Path(command[-1]).touch()
        raise subprocess.TimeoutExpired(command, 180)

    monkeypatch.setattr(archive, "_run", run)
    with pytest.raises(FastModeUnavailable, match="took longer than 180 s"):
        archive.the_archive(folder, folder)
    assert {path.name for path in folder.iterdir()} == {"failed", "lock"}


def test_another_installation_has_another_folder(installation, folder):
    first = cache.cache_folder(installation)
    assert first.parent == folder.parent
    assert first.name.startswith("spark-4.3.0-java-17.0.15-")
    os.utime(installation.home / "jars", (0, 0))
    assert cache.cache_folder(installation) != first


def test_cache_folder_unused_for_a_month_is_removed(folder):
    for name, age in (("old", 31), ("newer", 29), ("unfinished", None)):
        other = folder.parent / name
        other.mkdir()
        if age is not None:
            cache.note_use(other)
            then = other.joinpath("used").stat().st_mtime - age * 24 * 3600
            os.utime(other / "used", (then, then))
    cache.forget_the_unused(folder)
    assert {path.name for path in folder.parent.iterdir()} == {"one", "newer", "unfinished"}


def test_unusable_cache_folder_makes_fast_mode_unavailable(installation, monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with pytest.raises(FastModeUnavailable, match="the cache cannot be used"):
        fast.prepare(installation)


def test_a_spark_home_of_ones_own_is_left_alone(installation, monkeypatch):
    # Tests before this one may have left one in this process.
    monkeypatch.setattr(local.jvm, "is_running", lambda: False)
    mine = Installation((4, 3, 0), installation.home, False, installation.java, "17")
    with pytest.raises(FastModeUnavailable, match="SPARK_HOME is set"):
        fast.prepare(mine)
    with pytest.warns(
        FastModeWarning, match="the session starts without fast mode: SPARK_HOME is set"
    ) as warned:
        assert local._fitted(mine) is None
    assert len(warned) == 1


def test_an_archive_that_java_does_not_start_with_is_thrown_away(folder, monkeypatch):
    fitted = fast.Fast(folder / "home", folder / "classes.jsa")
    fitted.archive.touch()
    ended, homes = [], []

    def start(settings):
        homes.append(os.environ["SPARK_HOME"])
        raise RuntimeError("no gateway")

    monkeypatch.setattr(local, "_start", start)
    monkeypatch.setattr(local.jvm, "end", lambda: ended.append(True))
    with pytest.warns(FastModeWarning, match="does not start with the cache: no gateway"):
        assert local._start_fast({"spark.driver.extraJavaOptions": "-Da=b"}, fitted) is None
    assert homes == [str(folder / "home")]
    assert ended == [True]
    assert not fitted.archive.exists()
    assert "SPARK_HOME" not in os.environ


def test_a_program_runs_without_input_in_a_session_of_its_own():
    program = (
        "import os, sys\n"
        "sys.stdout.buffer.write(b'\\xff' + os.environ['WORD'].encode() + sys.stdin.read().encode())\n"
        "sys.stdout.flush()\n"
        "print(' on stderr', os.getsid(0) == os.getpid(), file=sys.stderr)\n"
        "sys.exit(3)\n"
    )
    done = archive._run([sys.executable, "-c", program], {**os.environ, "WORD": "said"})
    assert (done.returncode, done.stdout) == (3, "\ufffdsaid on stderr True\n")


def test_the_reason_of_a_failure_is_the_last_line_or_the_exit_code(folder, monkeypatch):
    answer = {}

    def run(command, environment):
        if answer["writes"]:
            Path(command[-1]).write_text("archive")
        return subprocess.CompletedProcess(command, answer["status"], answer["said"])

    monkeypatch.setattr(archive, "_run", run)
    for writes, status, said, reason in [
        (False, 1, "a\n  b  \n \n", "b"),
        (True, 1, "a", "a"),
        (False, 7, " \n", "exit code 7"),
        (False, 0, "", "exit code 0"),
    ]:
        answer |= {"writes": writes, "status": status, "said": said}
        with pytest.raises(FastModeUnavailable, match=f"^Java wrote no class-data archive: {reason}$"):
            archive._make(folder / "classes.jsa", folder)
        assert list(folder.iterdir()) == []


def test_only_failures_of_the_last_hour_are_recent(tmp_path, monkeypatch):
    failure = tmp_path / "failed"
    assert not archive._is_recent(failure)
    failure.touch()
    then = failure.stat().st_mtime
    for seconds, recent in [(0, True), (3599, True), (3600, False), (-3599, True), (-3601, False)]:
        monkeypatch.setattr(archive.time, "time", lambda seconds=seconds: then + seconds)
        assert archive._is_recent(failure) == recent


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for given, found in [("/x", "/x"), ("relative", f"{tmp_path}/.cache"), ("", f"{tmp_path}/.cache")]:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache._root() == Path(found, "fakeamqp", "spark")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache._root() == tmp_path / ".cache" / "fakeamqp" / "spark"


def test_fast_mode_is_prepared_in_the_folder_of_the_installation(installation, folder, training):
    found = fast.prepare(installation)
    place = cache.cache_folder(installation)
    assert found == fast.Fast(place / "home", place / "classes.jsa")
    assert training == [str(place / "home")]
    assert found.java_options[0] == f"-XX:SharedArchiveFile={found.archive}"
    assert "-Xshare:auto" in found.java_options
    assert oct((place / "home").stat().st_mode)[-3:] == "755"
    assert sorted(path.name for path in place.iterdir()) == ["classes.jsa", "home", "lock", "used"]
    found.discard()
    found.discard()
    assert fast.prepare(installation) == found
    assert len(training) == 2
