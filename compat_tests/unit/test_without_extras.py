"""What a machine lacks makes the tests that need it skip, and never fails a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NO_PYSPARK = """
import importlib.util, sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyspark":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pyspark" else found(name, package)
"""


def test_spark_tests_are_collected_without_pyspark(tmp_path: Path) -> None:
    tmp_path.joinpath("no_pyspark.py").write_text(NO_PYSPARK, "utf-8")
    options = ["-p", "no_pyspark", "-p", "no:cacheprovider", "--collect-only", "-q"]
    folders = ["compat_tests/unit/spark", "compat_tests/spark", "compat_tests/crashes"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *folders],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout


NO_FCNTL = """
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "fcntl" else found(name, *rest)
"""


def test_importing_spark_without_fcntl_is_refused_with_explanation() -> None:
    program = NO_FCNTL + "import fakeamqp, pytest_fakeamqp\nimport fakeamqp.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert done.stderr.splitlines()[-1].startswith("ImportError: fakeamqp.spark locks its spool with fcntl")


def test_doctor_without_fcntl_runs_and_reports_spark_requirement() -> None:
    program = NO_FCNTL + "from fakeamqp.cli import main\nmain(['doctor'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert "fakeamqp.spark locks its spool with fcntl" in " ".join(done.stdout.split())
