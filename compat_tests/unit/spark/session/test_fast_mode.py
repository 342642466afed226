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
from fakeamqp.spark.session.errors import FastModeUnavailable
from fakeamqp.spark.session.fast import Fast
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
        return bool(calls.says), calls.says

    monkeypatch.setattr(fast, "_run", run)
    return calls


@pytest.fixture
def parts(folder):
    """The parts of fast mode in that folder."""
    return Fast(folder / "home", folder / "classes.jsa")


def test_the_home_leads_to_the_installed_packages(installation, folder):
    import py4j

    made = folder / "home"
    fast._make_home(installation, made)
    links = {path.name: path.is_symlink() for path in made.iterdir()}
    assert links == {"bin": True, "data": True, "jars": True, "sbin": True, "python": False}
    libraries = made / "python" / "lib"
    assert libraries.joinpath("pyspark.zip", "pyspark").resolve() == installation.home
    assert libraries.joinpath("py4j-0.10.9.9-src.zip", "py4j").resolve() == Path(py4j.__file__).parent
    assert libraries.joinpath("other.zip").resolve() == installation.home / "python" / "lib" / "other.zip"
    fast._make_home(installation, made)
    assert [path.name for path in folder.iterdir()] == ["home"]


def test_a_home_that_another_process_makes_first_is_used(installation, folder, monkeypatch):
    def rename(making, place):
        assert making.name.startswith("home-")
        Path(place, "theirs").mkdir(parents=True)
        raise FileExistsError

    monkeypatch.setattr(os, "rename", rename)
    fast._make_home(installation, folder / "home")
    assert folder.joinpath("home", "theirs").is_dir()
    assert [path.name for path in folder.iterdir()] == ["home"]


def test_pyspark_without_zip_file_makes_fast_mode_unavailable(installation, folder):
    installation.home.joinpath("python", "lib", "pyspark.zip").unlink()
    with pytest.raises(OSError, match="no zip file of pyspark"):
        fast._make_home(installation, folder / "home")
    assert list(folder.iterdir()) == []
    with pytest.raises(FastModeUnavailable, match="no zip file of pyspark"):
        fast.prepare(installation)


def test_an_archive_is_made_once(parts, folder, training):
    for _ in range(3):
        fast._make_archive(parts)
    assert training == [str(parts.home)]
    assert {path.name for path in folder.iterdir()} == {"classes.jsa", "lock"}


def test_processes_that_want_it_at_once_wait_for_the_one_that_makes_it(parts, training, monkeypatch):
    run, threads = fast._run, []

    def slowly(command, environment):
        # The others are at the lock, or come later: for either of them it has to be made already.
        threads.extend(threading.Thread(target=fast._make_archive, args=(parts,)) for _ in range(3))
        for thread in threads:
            thread.start()
        return run(command, environment)

    monkeypatch.setattr(fast, "_run", slowly)
    fast._make_archive(parts)
    for thread in threads:
        thread.join()
    assert len(training) == 1


def test_failed_archive_is_not_made_again_and_raises_same_reason(parts, training):
    training.says = "Error: no archive today\n\n"
    for _ in range(2):
        with pytest.raises(FastModeUnavailable, match="no archive today"):
            fast._make_archive(parts)
    assert len(training) == 1
    with pytest.raises(FastModeUnavailable, match=r"delete .* to try again"):
        fast._make_archive(parts)


def test_a_failure_is_tried_again_after_an_hour(parts, folder, training):
    training.says = "Error: the machine is busy"
    with pytest.raises(FastModeUnavailable, match="busy"):
        fast._make_archive(parts)
    training.says = ""
    then = folder.joinpath("failed").stat().st_mtime - 3601
    os.utime(folder / "failed", (then, then))
    fast._make_archive(parts)
    assert parts.archive.read_text() == "archive"
    assert {path.name for path in folder.iterdir()} == {"classes.jsa", "lock"}


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
        fast._run([sys.executable, "-c", program], dict(os.environ))
    [child] = children
    ended, _, _ = select.select([child], [], [], 60)
    os.close(child)
    assert ended


def test_archive_creation_timeout_makes_fast_mode_unavailable(parts, folder, monkeypatch):
    def run(command, environment):
        Path(command[-1]).touch()
        raise subprocess.TimeoutExpired(command, 180)

    monkeypatch.setattr(fast, "_run", run)
    with pytest.raises(FastModeUnavailable, match="took longer than 180 s"):
        fast._make_archive(parts)
    assert {path.name for path in folder.iterdir()} == {"failed", "lock"}


def test_another_installation_has_another_folder(installation, folder):
    first = fast.cache_folder(installation)
    assert first.parent == folder.parent
    assert first.name.startswith("spark-4.3.0-java-17.0.15-")
    os.utime(installation.home / "jars", (0, 0))
    assert fast.cache_folder(installation) != first


def test_cache_folder_unused_for_a_month_is_removed(folder):
    for name, age in (("old", 31), ("newer", 29), ("unfinished", None)):
        other = folder.parent / name
        other.mkdir()
        if age is not None:
            other.joinpath("used").touch()
            then = other.joinpath("used").stat().st_mtime - age * 24 * 3600
            os.utime(other / "used", (then, then))
    fast._delete_unused(folder)
    assert {path.name for path in folder.parent.iterdir()} == {"one", "newer", "unfinished"}


def test_unusable_cache_folder_makes_fast_mode_unavailable(installation, monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with pytest.raises(FastModeUnavailable, match="the cache cannot be used"):
        fast.prepare(installation)


def test_a_spark_home_of_ones_own_is_left_alone(installation, monkeypatch):
    # Tests before this one may have left one in this process.
    monkeypatch.setattr(local, "java_is_running", lambda: False)
    mine = Installation((4, 3, 0), installation.home, False, installation.java, "17")
    with pytest.raises(FastModeUnavailable, match="SPARK_HOME is set"):
        fast.prepare(mine)
    with pytest.warns(
        FastModeWarning, match="the session starts without fast mode: SPARK_HOME is set"
    ) as warned:
        assert local._fast_parts(mine) is None
    assert len(warned) == 1


def test_an_archive_that_java_does_not_start_with_is_thrown_away(parts, monkeypatch):
    parts.archive.touch()
    ended, homes = [], []

    def start(settings, home):
        homes.append(home)
        os.environ["SPARK_HOME"] = str(home)
        raise RuntimeError("no gateway")

    monkeypatch.setattr(local, "_start", start)
    monkeypatch.setattr(local, "end_java", lambda: ended.append(True))
    with pytest.warns(FastModeWarning, match="does not start with the cache: no gateway"):
        assert local._start_fast({"spark.driver.extraJavaOptions": "-Da=b"}, parts) is None
    assert homes == [parts.home]
    assert ended == [True]
    assert not parts.archive.exists()
    assert "SPARK_HOME" not in os.environ


def test_a_program_runs_without_input_in_a_session_of_its_own():
    program = (
        "import os, sys\n"
        "sys.stdout.buffer.write(b'\\xff' + os.environ['WORD'].encode() + sys.stdin.read().encode())\n"
        "sys.stdout.flush()\n"
        "print(' on stderr', os.getsid(0) == os.getpid(), file=sys.stderr)\n"
        "sys.exit(3)\n"
    )
    done = fast._run([sys.executable, "-c", program], {**os.environ, "WORD": "said"})
    assert done == (3, "\ufffdsaid on stderr True\n")


def test_the_reason_of_a_failure_is_the_last_line_or_the_exit_code(parts, folder, monkeypatch):
    answer = {}

    def run(command, environment):
        if answer["writes"]:
            Path(command[-1]).write_text("archive")
        return answer["status"], answer["said"]

    monkeypatch.setattr(fast, "_run", run)
    for writes, status, said, reason in [
        (False, 1, "a\n  b  \n \n", "b"),
        (True, 1, "a", "a"),
        (False, 7, " \n", "exit code 7"),
        (False, 0, "", "exit code 0"),
    ]:
        answer |= {"writes": writes, "status": status, "said": said}
        with pytest.raises(FastModeUnavailable, match=f"^Java wrote no class-data archive: {reason}$"):
            fast._train(parts)
        assert list(folder.iterdir()) == []


def test_only_failures_of_the_last_hour_are_recent(parts, folder, training, monkeypatch):
    failure = folder / "failed"
    for seconds, recent in [(0, True), (3599, True), (3600, False), (-3599, True), (-3601, False)]:
        failure.write_text("the machine is busy")
        then = failure.stat().st_mtime
        monkeypatch.setattr(fast.time, "time", lambda then=then, seconds=seconds: then + seconds)
        training.clear()
        if recent:
            with pytest.raises(FastModeUnavailable, match="busy"):
                fast._make_archive(parts)
        else:
            fast._make_archive(parts)
            parts.archive.unlink()
        assert bool(training) is not recent


def test_the_cache_is_where_the_environment_says(installation, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for given, found in [("/x", "/x"), ("relative", f"{tmp_path}/.cache"), ("", f"{tmp_path}/.cache")]:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert fast.cache_folder(installation).parent == Path(found, "fakeamqp", "spark")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert fast.cache_folder(installation).parent == tmp_path / ".cache" / "fakeamqp" / "spark"


def test_fast_mode_is_prepared_in_the_folder_of_the_installation(installation, folder, training):
    found = fast.prepare(installation)
    place = fast.cache_folder(installation)
    assert found == Fast(place / "home", place / "classes.jsa")
    assert training == [str(place / "home")]
    assert found.java_options.startswith(f"-XX:SharedArchiveFile={found.archive} -Xshare:auto ")
    assert oct((place / "home").stat().st_mode)[-3:] == "755"
    assert sorted(path.name for path in place.iterdir()) == ["classes.jsa", "home", "lock", "used"]
    found.archive.unlink()
    assert fast.prepare(installation) == found
    assert len(training) == 2
