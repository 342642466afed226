"""The fixtures for Spark. Java is slow to start: most tests see what happens before it would be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat_tests.plugin.conftest import RunTests

pytest.importorskip("pyspark")

STOP = "raise AssertionError('not to be run')"


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine where there is none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_pyspark_the_fixture_says_what_to_install(run_tests_apart: RunTests) -> None:
    result = run_tests_apart(
        f"""
        import sys

        sys.modules["pyspark"] = None

        def test_it(spark_amqp):
            {STOP}

        def test_stream(amqp_stream):
            {STOP}
        """
    )
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        ["*spark_amqp: PySpark is not installed; install it with: pip install 'fakeamqp?spark?'"]
    )


def test_a_pyspark_that_is_too_old_is_named(run_tests_apart: RunTests) -> None:
    result = run_tests_apart(
        f"""
        import pyspark

        pyspark.__version__ = "3.5.4"

        def test_it(spark_amqp):
            {STOP}
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*PySpark 3.5.4 is installed, and fakeamqp needs one from 4.0 on*"])


def test_without_java_tests_are_skipped_with_a_reason(run_tests_apart: RunTests, without_java: None) -> None:
    result = run_tests_apart(
        f"""
        def test_it(spark_amqp):
            {STOP}

        def test_stream(amqp_stream):
            {STOP}
        """,
        "-rs",
    )
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*Spark needs Java 17 or later, and there is no java on the PATH*"])


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is version 11.0.2"),
        ("echo 'java version \"1.8.0_292\"' >&2", "is version 1.8.0_292"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "does not run; install a JRE"),
    ],
    ids=["11", "8", "none"],
)
def test_a_java_that_spark_cannot_use_is_named(
    run_tests_apart: RunTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, said: str
) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    result = run_tests_apart(f"def test_it(spark_amqp): {STOP}", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_a_java_home_without_java_is_named(
    run_tests_apart: RunTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = run_tests_apart(f"def test_it(spark_amqp): {STOP}", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*JAVA_HOME is*where there is no bin/java*"])


SESSION = """
    import pytest

    class Session:
        readStream = None

        class dataSource:
            registered = []

            @classmethod
            def register(cls, source):
                cls.registered.append(source.name())
"""


@pytest.mark.parametrize("name", ["spark", "spark_session"])
def test_the_projects_own_session_is_used(run_tests_apart: RunTests, without_java: None, name: str) -> None:
    result = run_tests_apart(
        SESSION
        + f"""
    @pytest.fixture(scope="session")
    def {name}():
        return Session()

    def test_it(spark_amqp, {name}):
        assert spark_amqp is {name}
        assert {name}.dataSource.registered == ["amqp"]
    """
    )
    result.assert_outcomes(passed=1)


def test_a_fixture_that_is_no_session_is_left_alone(run_tests_apart: RunTests, without_java: None) -> None:
    result = run_tests_apart(
        """
        import pytest

        @pytest.fixture(scope="session")
        def spark():
            return "plug"

        def test_it(spark_amqp):
            raise AssertionError("not to be run")
        """
    )
    result.assert_outcomes(skipped=1)  # For want of Java: it was about to start its own.


@pytest.mark.parametrize("first", ["spark", "spark_amqp"])
def test_a_fixture_made_of_ours_is_another_name_for_it(
    run_tests_apart: RunTests, without_java: None, first: str
) -> None:
    result = run_tests_apart(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def tuned(spark_amqp):
            return spark_amqp

        @pytest.fixture(scope="session")
        def spark(tuned):
            return tuned

        def test_it({first}):
            {STOP}

        def test_both(spark, spark_amqp):
            {STOP}
        """,
        "-rs",
    )
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*there is no java on the PATH*"])


def test_a_session_of_narrower_scope_is_refused(run_tests_apart: RunTests) -> None:
    result = run_tests_apart(
        SESSION
        + f"""
    @pytest.fixture
    def spark():
        return Session()

    def test_it(spark_amqp):
        {STOP}
    """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'spark' (*test_inner.py:*), whose scope is function: make it*"])


@pytest.mark.parametrize(
    ("arguments", "fast"),
    [([], False), (["--amqp-spark-fast"], True), (["-o", "amqp_spark_fast=true"], True)],
)
def test_fast_mode_is_asked_for_by_option_or_ini(
    run_tests_apart: RunTests, arguments: str, fast: bool
) -> None:
    result = run_tests_apart(
        f"""
        import contextlib

        import fakeamqp.spark

        @contextlib.contextmanager
        def local_session(**arguments):
            yield arguments

        fakeamqp.spark.local_session = local_session

        def test_it(spark_amqp):
            assert spark_amqp["fast"] is {fast}
            assert spark_amqp["folder"].is_dir()
        """,
        *arguments,
    )
    result.assert_outcomes(passed=1)


class TestWithJava:
    """Each of these starts a Java of its own."""

    def test_a_session_leaves_nothing_behind(
        self, run_tests_apart: RunTests, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TZ", "America/New_York")
        result = run_tests_apart(
            """
            import os
            import signal
            import sys
            import time

            import pytest

            from fakeamqp.spark import SessionRunning, local_session

            def state():
                return dict(os.environ), list(sys.path), time.tzname, signal.getsignal(signal.SIGINT)

            def test_it(tmp_path):
                time.tzset()
                before = state()
                folder = tmp_path / "place"
                for turn in range(2):  # The second starts a Java of its own.
                    partitions = {"spark.sql.shuffle.partitions": 3 + turn}
                    with local_session(app_name="mine", config=partitions, folder=folder) as spark:
                        java = spark.sparkContext._gateway.proc
                        assert spark.sparkContext.appName == "mine"
                        assert spark.conf.get("spark.sql.shuffle.partitions") == str(3 + turn)
                        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
                        assert time.tzname[0] == "UTC"
                        spark.range(3).write.saveAsTable(f"numbers{turn}")
                        with pytest.raises(SessionRunning, match="'mine'"), local_session():
                            pass
                    assert java.returncode is not None
                    assert state()[1:] == before[1:]
                    differing = {k for k, v in state()[0].items() if before[0].get(k) != v}
                    assert differing <= {"PYTEST_CURRENT_TEST"} and set(before[0]) <= set(state()[0])
                assert {each.name for each in (folder / "warehouse").iterdir()} == {"numbers0", "numbers1"}
                assert not list((folder / "local").iterdir())
            """
        )
        result.assert_outcomes(passed=1)
        pytests_own = {"tox.ini", "test_inner.py", "__pycache__", "stdout", "stderr"}
        left = {path.name for path in pytester.path.iterdir()} - pytests_own
        assert {name for name in left if not name.startswith("runpytest-")} == set()
        assert "WARN" not in result.stderr.str()

    def test_fast_mode_uses_its_cache_and_bears_with_a_broken_one(
        self, run_tests_apart: RunTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark_cache: Path
    ) -> None:
        own = shutil.copytree(spark_cache, tmp_path / "own", symlinks=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(own))
        result = run_tests_apart(
            """
            import os
            import pathlib

            from fakeamqp.spark import local_session

            def pyspark_of_a_worker(spark):
                def find(_):
                    import pyspark

                    return pyspark.__file__

                return spark.sparkContext.parallelize([0], 1).map(find).first()

            def test_it():
                # Java ends at once if it cannot use the archive.
                strict = {"spark.driver.extraJavaOptions": "-Xshare:on"}
                with local_session(fast=True, config=strict) as spark:
                    home = os.environ["SPARK_HOME"]
                    assert pyspark_of_a_worker(spark).startswith(home)
                assert "SPARK_HOME" not in os.environ
                [cache] = pathlib.Path(os.environ["XDG_CACHE_HOME"], "fakeamqp", "spark").iterdir()
                assert home == str(cache / "home")
                archive = cache / "classes.jsa"
                assert archive.stat().st_mtime < os.stat(__file__).st_mtime, "made again"
                archive.chmod(0o644)
                with archive.open("r+b") as file:
                    file.write(bytes(4096))
                with local_session(fast=True) as spark:
                    assert spark.range(3).count() == 3
            """
        )
        result.assert_outcomes(passed=1)
