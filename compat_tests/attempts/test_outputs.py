"""What a peer has named cannot act in a terminal or on a page, and passwords are in no output of commands."""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pika
import pytest

from compat_tests.tools.matrix import cases
from compat_tests.unit.trace.pages import elements_of
from fakeamqp import Broker
from fakeamqp.errors import FakeAMQPError
from fakeamqp.replay import replay
from fakeamqp.trace import load

ESCAPES = (
    "\x1b]0;owned\x07\x1b[31m\u202e\x9b2J\u2028</script><script>owned=1</script><img src=x onerror=owned=1>"
)
"""Sets the title of a terminal, its colour, the direction of its text, clears it, and ends a script."""
ACTS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
PASSWORD = "kanarienvogel-19c2"
TIMEOUT = 60


def quiet(text: str) -> None:
    """Nothing in the text does anything in a terminal."""
    found = ACTS.search(text)
    assert not found, repr(text[max(0, found.start() - 80) : found.end() + 40])


@pytest.fixture
def broker(caplog: pytest.LogCaptureFixture) -> Iterator[Broker]:
    """Its clients use hostile names wherever they can give one."""
    caplog.set_level(logging.DEBUG, "fakeamqp")
    with Broker() as broker:
        parameters: dict[str, Any] = {"host": broker.host, "port": broker.port}
        properties = {"connection_name": ESCAPES, "product": ESCAPES, ESCAPES: [ESCAPES]}
        connection = pika.BlockingConnection(
            pika.ConnectionParameters(**parameters, client_properties=properties)
        )
        channel = connection.channel()
        channel.exchange_declare(ESCAPES, "topic", arguments={"alternate-exchange": "e" + ESCAPES})
        channel.queue_declare(ESCAPES, arguments={"x-dead-letter-exchange": ESCAPES, ESCAPES: ESCAPES})
        channel.queue_bind(ESCAPES, ESCAPES, ESCAPES, {ESCAPES: ESCAPES})
        headers = pika.BasicProperties(headers={ESCAPES: ESCAPES}, app_id=ESCAPES, message_id=ESCAPES)
        for exchange in (ESCAPES, ""):
            channel.basic_publish(exchange, ESCAPES, ESCAPES.encode(), headers)
        channel.basic_publish("", "no" + ESCAPES, b"dropped", headers)
        channel.basic_consume(ESCAPES, lambda *_: None, consumer_tag=ESCAPES)
        channel.basic_reject(1, requeue=False)
        with suppress(pika.exceptions.AMQPError):
            connection.channel().queue_declare("no" + ESCAPES, passive=True)
        for wrong in ({"credentials": pika.PlainCredentials(ESCAPES, "x")}, {"virtual_host": ESCAPES}):
            with suppress(pika.exceptions.AMQPError):
                pika.BlockingConnection(pika.ConnectionParameters(**parameters, **wrong))
        with socket.create_connection((broker.host, broker.port)) as other:
            other.sendall(ESCAPES.encode())
            other.recv(8)
        broker.wait_until_idle(timeout=30)
        yield broker
        connection.close()


def test_hostile_names_in_views_and_logs_have_no_terminal_escape(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    rule = broker.faults.on("basic.publish", queue=ESCAPES).nack()
    queue, exchange = broker.queue(ESCAPES), broker.exchange(ESCAPES)
    views: dict[str, Callable[[], object]] = {
        "queues": lambda: broker.queues,
        "messages": lambda: queue.messages,
        "consumers": lambda: queue.consumers,
        "exchanges": lambda: broker.exchanges,
        "bindings": lambda: exchange.bindings,
        "connections": lambda: broker.connections,
        "channels": lambda: broker.channels,
        "published": lambda: broker.published,
        "published ones": lambda: list(broker.published),
        "dropped": lambda: list(broker.dropped),
        "dead-lettered": lambda: list(broker.dead_lettered),
        "faults": lambda: broker.faults,
        "a rule": lambda: rule,
        "timeline": broker.trace.timeline,
        "events": lambda: broker.trace.events,
        "explained": lambda: broker.exchange(ESCAPES).explain(ESCAPES),
        "topology": lambda: broker.admin.topology(),
        "logs": lambda: "\n".join(
            record.getMessage()
            for record in caplog.get_records("setup")
            if record.name.startswith("fakeamqp")
        ),
    }
    with cases() as case:
        for name, view in views.items():
            with case(name):
                shown = view()
                quiet(str(shown))
                quiet(shown if isinstance(shown, str) else repr(shown))


def test_hostile_names_in_error_messages_have_no_terminal_escape(broker: Broker) -> None:
    mistakes: dict[str, Callable[[], object]] = {
        "expected": lambda: broker.expect_published(exchange=ESCAPES, routing_key="another", count=1),
        "waited for": lambda: broker.queue(ESCAPES).wait_for(ready=99, timeout=0.01),
        "no queue": lambda: broker.queue(ESCAPES + "x").messages,
        "no exchange": lambda: broker.exchange(ESCAPES + "x").bindings,
        "no virtual host": lambda: broker.load_definitions({"queues": [{"name": ESCAPES, "vhost": ESCAPES}]}),
        "a key": lambda: broker.load_definitions({"queues": [{"name": "q", ESCAPES: 1}]}),
        "a section": lambda: broker.load_definitions({ESCAPES: []}),
        "a user": lambda: Broker(users={ESCAPES: {"pasword": "x"}}),
        "a personality": lambda: Broker(personality=ESCAPES),
        "a method": lambda: broker.faults.on("basic.publsh" + ESCAPES),
        "a field": lambda: broker.faults.on("basic.publish", **{"qeue" + ESCAPES: 1}),
    }
    with cases() as case:
        for name, mistake in mistakes.items():
            with case(name):
                with pytest.raises((FakeAMQPError, AssertionError)) as caught:
                    mistake()
                quiet(str(caught.value))


def test_hostile_names_add_no_element_to_trace_page(broker: Broker) -> None:
    """Whether a browser runs any of it is tested in `compat_tests/pages`."""
    page = elements_of(broker.trace.html(title=ESCAPES))
    assert not page.all("img")
    plain = elements_of(Broker().trace.html(title="t"))
    assert len(page.all("script")) == len(plain.all("script"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fakeamqp", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
    )


def test_commands_print_hostile_names_without_terminal_escape(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    broker.trace.jsonl(path)
    for arguments in (
        ["trace", str(path)],
        ["trace", str(path), "--connection", ESCAPES],
        ["trace", str(tmp_path / ESCAPES.replace("/", ""))],
        ["serve", "--personality", ESCAPES],
        ["serve", "--definitions", ESCAPES],
    ):
        done = run(*arguments)
        quiet(done.stdout + done.stderr)
        assert "Traceback" not in done.stderr


def test_replay_outcome_has_no_terminal_escape(broker: Broker, tmp_path: Path) -> None:
    broker.trace.jsonl(tmp_path / "trace.jsonl")
    text = (tmp_path / "trace.jsonl").read_text()
    first, _, rest = text.partition("\n")
    name = re.search(r'"connection":"([^"]*)"', rest)
    assert name
    hostile = rest.replace(f'"connection":"{name[1]}"', '"connection":"\\u001b]0;owned\\u0007\\ud800"')
    (tmp_path / "hostile.jsonl").write_text(f"{first}\n{hostile}")
    outcome = str(replay(load(tmp_path / "hostile.jsonl"), personality="spec", timeout=2))
    assert "owned" in outcome
    quiet(outcome)


# --- passwords -------------------------------------------------------------------------------------------


def test_trace_and_replay_commands_print_no_password(tmp_path: Path) -> None:
    with Broker(users={"app": PASSWORD}) as broker:
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()
        for redact in (True, False):
            broker.trace.jsonl(tmp_path / f"{redact}.jsonl", redact=redact)
        url = broker.url
        outputs = [run("replay", str(tmp_path / "True.jsonl"), "--url", url)]
    for name in ("True", "False"):
        for arguments in (["trace"], ["replay"]):
            outputs.append(run(*arguments, str(tmp_path / f"{name}.jsonl")))
    outputs.append(run("replay", str(tmp_path / "True.jsonl"), "--url", url.replace("amqp:", "amqq:")))
    outputs.append(run("replay", str(tmp_path / "True.jsonl"), "--url", url))  # Nobody listens any more.
    for done in outputs:
        assert done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr, done


@pytest.mark.parametrize("text", [f"amqp://app:{PASSWORD}@host/x", f"amqp://app:{PASSWORD}@"])
def test_invalid_url_error_hides_password(text: str) -> None:
    with Broker() as broker, pytest.raises(FakeAMQPError, match=r"\*\*\*@") as caught:
        broker.intercept(text).__enter__()
    assert PASSWORD not in str(caught.value)


def test_failure_report_and_trace_files_contain_no_password(pytester: pytest.Pytester) -> None:
    """With its timeline, the values of local variables, logs, and what --amqp-trace keeps."""
    pytester.makepyfile(
        """
        import os, pika, pytest

        @pytest.mark.amqp(users={"app": os.environ["SECRET"]})
        def test_it(amqp_broker):
            amqp_broker.admin.add_user("other", os.environ["SECRET"])
            connection = pika.BlockingConnection(pika.URLParameters(amqp_broker.url))
            with pytest.raises(pika.exceptions.AMQPError):
                pika.BlockingConnection(pika.ConnectionParameters(
                    amqp_broker.host, amqp_broker.port, virtual_host="missing",
                    credentials=pika.PlainCredentials("app", os.environ["SECRET"])))
            broker, clock, faults, shown = amqp_broker, amqp_broker.clock, amqp_broker.faults, connection
            definitions = amqp_broker.definitions()
            amqp_broker.expect_published(routing_key="nothing", count=1)
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET", PASSWORD)
        done = pytester.runpytest_subprocess( "-l", "-vv", "--log-level=DEBUG", "--log-cli-level=DEBUG",
            "--amqp-trace=traces", "-p", "no:randomly",
        )  # fmt: skip
    done.assert_outcomes(failed=1)
    written = [path.read_bytes() for path in pytester.path.rglob("traces/**/*") if path.is_file()]
    assert written
    for text in (str(done.stdout), str(done.stderr), *(each.decode("latin-1") for each in written)):
        assert PASSWORD not in text


def test_process_title_threads_and_environment_contain_no_password() -> None:
    """Its title and arguments are as they were; environment variables are not set."""
    before = Path("/proc/self/cmdline").read_bytes(), Path("/proc/self/comm").read_text()
    with Broker(users={"app": PASSWORD}) as broker:
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()
        after = Path("/proc/self/cmdline").read_bytes(), Path("/proc/self/comm").read_text()
        threads = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    assert after == before
    assert PASSWORD not in "".join(threads)
    assert PASSWORD not in str(dict(os.environ))


def test_exception_chains_contain_no_password() -> None:
    """Not even with the values of local variables that reports of failures show: those are reprs."""
    wrong: list[Callable[[], object]] = [
        lambda: Broker(users={"app": {"pasword": PASSWORD}}),
        lambda: Broker(definitions={"users": [{"name": "app", "password": PASSWORD, "tags": 5}]}),
        lambda: Broker(definitions={"users": [{"name": 5, "password": PASSWORD}]}),
    ]
    for mistake in wrong:
        try:
            mistake()
        except Exception as error:
            told = "".join(traceback.format_exception(error))
        else:
            raise AssertionError("there is no error")
        # The lines of this file have the name of the variable, not its value.
        assert PASSWORD not in told
