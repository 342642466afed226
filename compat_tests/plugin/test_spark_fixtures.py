"""The fixtures for Spark. Java is slow to start: most tests see what happens before it would be."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.plugin.conftest import WriteTests

pytest.importorskip("pyspark")

STOP = "raise AssertionError('not to be run')"


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine where there is none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_missing_pyspark_is_an_error_with_install_advice(write_tests: WriteTests) -> None:
    write_tests(f"""
        import sys

        sys.modules["pyspark"] = None

        def test_it(amqp_spark):
            {STOP}

        def test_stream(amqp_stream):
            {STOP}
    """).run_apart(
        errors=2,
        said=["*amqp_spark: PySpark is not installed; install it with: pip install 'fakeamqp?spark?'"],
    )


def test_too_old_pyspark_is_an_error_that_names_its_version(write_tests: WriteTests) -> None:
    write_tests(f"""
        import pyspark

        pyspark.__version__ = "3.5.4"

        def test_it(amqp_spark):
            {STOP}
    """).run_apart(errors=1, said=["*PySpark 3.5.4 is installed, but fakeamqp needs PySpark 4;*"])


def test_without_java_tests_are_skipped_with_a_reason(write_tests: WriteTests, without_java: None) -> None:
    write_tests(f"""
        def test_it(amqp_spark):
            {STOP}

        def test_stream(amqp_stream):
            {STOP}
    """).run_apart(
        "-rs", skipped=2, said=["*Spark needs Java 17 or later, but there is no java on the PATH*"]
    )


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
    write_tests: WriteTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, said: str
) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    write_tests(f"def test_it(amqp_spark): {STOP}").run_apart("-rs", skipped=1, said=[f"*{said}*"])


def test_a_java_home_without_java_is_named(
    write_tests: WriteTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    write_tests(f"def test_it(amqp_spark): {STOP}").run_apart(
        "-rs", skipped=1, said=["*JAVA_HOME is*which has no executable bin/java*"]
    )


SESSION = """
    class Session:
        readStream = None

        class dataSource:
            registered = []

            @classmethod
            def register(cls, source):
                cls.registered.append(source.name())
"""


@pytest.mark.parametrize("name", ["spark", "spark_session"])
def test_the_projects_own_session_is_used(write_tests: WriteTests, without_java: None, name: str) -> None:
    write_tests(
        SESSION
        + f"""
    @pytest.fixture(scope="session")
    def {name}():
        return Session()

    def test_it(amqp_spark, {name}):
        assert amqp_spark is {name}
        assert {name}.dataSource.registered == ["amqp"]
    """
    ).run_apart(passed=1)


def test_spark_fixture_of_another_type_is_not_used_as_session(
    write_tests: WriteTests, without_java: None
) -> None:
    write_tests("""
        @pytest.fixture(scope="session")
        def spark():
            return "plug"

        def test_it(amqp_spark):
            raise AssertionError("not to be run")
    """).run_apart(skipped=1)  # For want of Java: it was about to start its own.


@pytest.mark.parametrize("first", ["spark", "amqp_spark"])
def test_a_fixture_made_of_ours_is_another_name_for_it(
    write_tests: WriteTests, without_java: None, first: str
) -> None:
    write_tests(f"""
        @pytest.fixture(scope="session")
        def tuned(amqp_spark):
            return amqp_spark

        @pytest.fixture(scope="session")
        def spark(tuned):
            return tuned

        def test_it({first}):
            {STOP}

        def test_both(spark, amqp_spark):
            {STOP}
    """).run_apart("-rs", skipped=2, said=["*there is no java on the PATH*"])


def test_a_session_of_narrower_scope_is_refused(write_tests: WriteTests) -> None:
    write_tests(
        SESSION
        + f"""
    @pytest.fixture
    def spark():
        return Session()

    def test_it(amqp_spark):
        {STOP}
    """
    ).run_apart(errors=1, said=["*fixture 'spark' (*test_inner.py:*), whose scope is function: make it*"])


@pytest.mark.parametrize(
    ("arguments", "fast"),
    [([], False), (["--amqp-spark-fast"], True), (["-o", "amqp_spark_fast=true"], True)],
)
def test_fast_mode_is_asked_for_by_option_or_ini(write_tests: WriteTests, arguments: str, fast: bool) -> None:
    write_tests(f"""
        import contextlib

        import fakeamqp.spark

        @contextlib.contextmanager
        def local_session(**arguments):
            yield arguments

        fakeamqp.spark.local_session = local_session

        def test_it(amqp_spark):
            assert amqp_spark["fast"] is {fast}
            assert amqp_spark["folder"].is_dir()
    """).run_apart(*arguments, passed=1)
