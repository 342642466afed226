"""The fixtures for Spark with a real session: each of these tests starts a Java of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat_tests.plugin.conftest import WriteTests

pytest.importorskip("pyspark")


class TestWithJava:
    """Each of these starts a Java of its own."""

    def test_local_session_restores_process_state_and_leaves_no_files(
        self, write_tests: WriteTests, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TZ", "America/New_York")
        result = write_tests("""
            import os
            import signal
            import sys
            import time


            from fakeamqp.spark import SessionRunning, local_session

            def state():
                return dict(os.environ), list(sys.path), time.tzname, signal.getsignal(signal.SIGINT)

            def test_it(tmp_path):
                time.tzset()
                before = state()
                folder = tmp_path / "place"
                for turn in range(2):  # The second starts a Java of its own.
                    config = {"spark.sql.shuffle.partitions": 3 + turn, "spark.sql.ansi.enabled": False}
                    with local_session(app_name="mine", config=config, folder=folder) as spark:
                        java = spark.sparkContext._gateway.proc
                        assert spark.sparkContext.appName == "mine"
                        assert spark.conf.get("spark.sql.shuffle.partitions") == str(3 + turn)
                        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
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
    """).run_apart(passed=1)
        pytests_own = {"tox.ini", "test_inner.py", "__pycache__", "stdout", "stderr"}
        left = {path.name for path in pytester.path.iterdir()} - pytests_own
        assert {name for name in left if not name.startswith("runpytest-")} == set()
        assert "WARN" not in result.stderr.str()

    def test_fast_mode_uses_its_cache_and_works_with_a_broken_archive(
        self, write_tests: WriteTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark_cache: Path
    ) -> None:
        own = shutil.copytree(spark_cache, tmp_path / "own", symlinks=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(own))
        write_tests("""
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
    """).run_apart(passed=1)
