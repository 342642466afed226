"""How the process of a source ends: with `stop`, by whatever Spark sends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from compat_tests.tools.matrix import cases
from fakeamqp import Broker
from fakeamqp.spark import query_process
from fakeamqp.spark.query_process import exit_on_sigterm, runs_tasks_here

# As PySpark's loop: it blocks in a read, and stops the reader whatever ends it.
SOURCE = """
import sys
from fakeamqp.spark.columns import chosen_columns
from fakeamqp.spark.options import read_options
from fakeamqp.spark.stream_queue import StreamMicroBatchReader

options = read_options({"amqp.url": sys.argv[1], "stream": "log"}, streaming=True)
reader = StreamMicroBatchReader(options, chosen_columns(options))
try:
    print(reader.latestOffset({"log": 0}), flush=True)
    sys.stdin.read()
finally:
    reader.stop()
    print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_a_source_that_spark_ends_says_goodbye_to_the_broker():
    import compat_tests.tools.needs_pyspark  # noqa: F401

    stream = {"name": "log", "durable": True, "arguments": {"x-queue-type": "stream"}}
    with (
        Broker(definitions={"queues": [stream]}) as broker,
        subprocess.Popen(
            [sys.executable, "-c", SOURCE, broker.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as source,
    ):
        assert source.stdout is not None
        assert source.stdout.readline() == "{'log': 0}\n"
        assert len(broker.connections) == 1
        source.send_signal(signal.SIGTERM)
        source.send_signal(signal.SIGTERM)  # Spark sends a second one at once.
        assert source.stdout.readline() == "stopped\n"
        assert source.wait() == 128 + signal.SIGTERM
        broker.wait_until_idle()
        assert not broker.connections


@pytest.fixture
def sigterm():
    """Sets the handler of SIGTERM, which is put back after the test."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda handler: signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGTERM, before)


def test_handlers_are_put_back(sigterm):
    sigterm(signal.SIG_DFL)
    restore = exit_on_sigterm()
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    restore()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_first_sigterm_ends_process_and_later_ones_are_ignored(sigterm):
    sigterm(signal.SIG_DFL)
    restore = exit_on_sigterm()
    with pytest.raises(SystemExit) as caught:
        signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None)
    assert caught.value.code == 143
    for _ in range(2):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        restore()


def test_foreign_sigterm_handler_is_not_replaced(sigterm):
    def theirs(_number, _frame):
        """Theirs."""

    sigterm(theirs)
    exit_on_sigterm()()
    assert signal.getsignal(signal.SIGTERM) is theirs


def test_only_a_main_thread_has_handlers():
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=lambda: exit_on_sigterm()())
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the parent's command line is read in /proc")
@pytest.mark.parametrize(
    ("arguments", "here"),
    [(["--master", "local[*,4]"], True), (["--master", "yarn"], False)],
)
def test_the_master_is_known_from_the_parent_process(arguments, here):
    child = "from fakeamqp.spark.query_process import runs_tasks_here; print(runs_tasks_here())"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    said = subprocess.run(
        [sys.executable, "-c", parent, *arguments], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(here)
    assert runs_tasks_here() is False


def test_the_master_is_in_a_command_line(monkeypatch):
    read = []

    def path(name):
        read.append(name)
        return SimpleNamespace(read_bytes=lambda: "\0".join([*arguments, ""]).encode())

    monkeypatch.setattr(query_process, "Path", path)
    arguments = []
    with cases() as case:
        for given, here in [
            (["java", "--master", "local[2]", "x"], True),
            (["java", "--conf", "spark.master=local"], True),
            (["java", "--conf", "spark.master=local[2]", "pyspark-shell"], True),
            (["java", "--master", "local", "--master", "yarn"], False),
            (["java", "--master", "local", "--conf", "spark.master=spark://host:7077", "job.py"], False),
            (["java", "--master", "local-cluster[2,1,1024]", "job.py"], False),
            (["java", "--master", "local[2]x"], False),
            (["java", "--conf", "not.spark.master=local"], False),
            (["java"], False),
        ]:
            with case(given):
                arguments[:] = given
                assert runs_tasks_here() is here
    assert set(read) == {f"/proc/{os.getppid()}/cmdline"}
    monkeypatch.undo()
    monkeypatch.setattr(os, "getppid", lambda: 2**30)
    assert runs_tasks_here() is False
