"""What `register` does with a session, as far as it needs no Spark."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.spark import AmqpDataSource, SessionError, register
from fakeamqp.spark.session import registering


class Session:
    """A session with these master and Python, whose tasks run here."""

    def __init__(self, master, python, failure="", refuses=""):
        self.failure, self.refuses = failure, refuses
        self.registered = []
        self.dataSource = self
        self._jsparkSession = MagicMock()
        self.sparkContext = SimpleNamespace(
            master=master,
            pythonExec=python,
            parallelize=self.parallelize,
            _jvm=MagicMock(),
            _gateway=MagicMock(),
        )

    @property
    def made_active(self):
        """The sessions of Java that were made active in this thread."""
        return [call.args[0] for call in self.sparkContext._jvm.SparkSession.setActiveSession.mock_calls]

    def register(self, source):
        self.registered.append(source)
        if self.refuses:
            raise RuntimeError(self.refuses)

    def parallelize(self, rows, tasks):
        assert len(rows) == tasks == 1

        def collect(function):
            if self.failure:
                raise RuntimeError(self.failure)
            return [function(row) for row in rows]

        return SimpleNamespace(map=lambda function: SimpleNamespace(collect=lambda: collect(function)))


@pytest.mark.parametrize("master", ["local", "local[2]", "local[2,4]"])
@pytest.mark.parametrize("python", ["/nowhere/python3", f"{Path(sys.executable).parent}/python3"])
def test_workers_of_a_local_session_run_this_python(master, python):
    """Also instead of another one in the same folder, where python3 may be of another version."""
    session = Session(master, python)
    register(session)
    assert session.sparkContext.pythonExec == sys.executable
    assert session.registered == [AmqpDataSource]


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://host:7077", "yarn"])
def test_workers_of_a_cluster_keep_theirs(master):
    session = Session(master, "sh")  # Any program that the driver has.
    register(session)
    assert session.sparkContext.pythonExec == "sh"
    assert session.registered == [AmqpDataSource]


def test_error_of_cluster_python_names_missing_modules(monkeypatch):
    monkeypatch.setattr(registering, "_REQUIRED", ("fakeamqp", "lacking1", "lacking2"))
    with pytest.raises(SessionError, match=r"run 'sh', which lacks lacking1, lacking2; set PYSPARK_PYTHON"):
        register(Session("yarn", "sh"))


@pytest.mark.parametrize(
    ("python", "failure", "said"),
    [
        (
            "./environment/bin/python",
            "",
            "driver does not have Spark's Python './environment/bin/python'",
        ),
        (
            "sh",
            'calling o1\n: Job aborted: Cannot run program "sh": error=2\nat x',
            "cannot run 'sh': Cannot run program \"sh\": error=2; set",
        ),
        (
            "sh",
            "calling o1\n[PYTHON_VERSION_MISMATCH] Python 3.9\n",
            r"'sh': \[PYTHON_VERSION_MISMATCH\] Python 3.9; set",
        ),
        ("sh", "no executors\nat x", "cannot run 'sh': no executors; set PYSPARK_PYTHON"),
    ],
)
def test_a_python_that_does_not_run_is_named(python, failure, said):
    with pytest.raises(SessionError, match=said):
        register(Session("yarn", python, failure))


def test_already_registered_source_is_no_error():
    register(Session("local", sys.executable, refuses="[DATA_SOURCE_ALREADY_EXISTS] amqp"))
    with pytest.raises(RuntimeError, match="another reason"):
        register(Session("local", sys.executable, refuses="another reason"))


def test_repeated_registration_makes_the_session_active_and_does_no_more():
    session = Session("yarn", "sh")
    for _ in range(2):
        register(session)
    assert session.made_active == [session._jsparkSession] * 2
    assert session.registered == [AmqpDataSource]
    server = session.sparkContext._gateway.java_gateway_server
    assert server.addListener.call_count == server.removeListener.call_count == 1


def test_failed_registration_is_tried_again():
    session = Session("local", sys.executable, refuses="another reason")
    with pytest.raises(RuntimeError):
        register(session)
    session.refuses = ""
    register(session)
    assert len(session.registered) == 2


@pytest.mark.parametrize(
    "error", [Py4JError("not allowed"), TypeError("'JavaPackage' object is not callable")]
)
def test_java_without_the_classes_of_the_listener_leaves_later_threads_to_register(error, caplog):
    session = Session("local", sys.executable)
    session.sparkContext._jvm.java.beans.EventHandler.create.side_effect = error
    with caplog.at_level(logging.INFO, "fakeamqp.spark"):
        register(session)
    assert session.registered == [AmqpDataSource]
    assert caplog.messages == [
        f"threads that begin to use Spark later call register before they write: {error}"
    ]


def test_session_of_spark_connect_is_registered_without_java():
    session = Session("local", sys.executable)
    del session.sparkContext
    register(session)
    assert session.registered == [AmqpDataSource]
