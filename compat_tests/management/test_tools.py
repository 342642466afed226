"""The tools themselves: rabbitmqadmin in both forms, pyrabbit, kombu's manager, amqpstorm, flower."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from compat_tests.management import tools
from compat_tests.management.client import Api
from fakeamqp import Broker

SECONDS = 60


def run(command, *arguments, cwd=None):
    """The output of a program that must succeed."""
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=SECONDS, cwd=cwd, check=False
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


class Test_rabbitmqadmin:
    @pytest.fixture(params=tools.rabbitmqadmins() or [None], ids=lambda each: each and each[1].split("/")[-8])
    def admin(self, request, broker):
        if request.param is None:
            pytest.skip("rabbitmqadmin in Python is not installed; RabbitMQ's management plugin has it")
        command = [
            *request.param,
            "-H",
            "127.0.0.1",
            "-P",
            str(broker.admin.management_port),
            "-f",
            "raw_json",
        ]
        return lambda *arguments, **more: run(command, *arguments, **more)

    def test_declares_publishes_gets_and_deletes(self, admin, broker):
        admin("declare", "queue", "name=q", "durable=true", 'arguments={"x-max-length": 5}')
        admin("declare", "exchange", "name=x", "type=topic")
        admin("declare", "binding", "source=x", "destination=q", "routing_key=a.#")
        admin("publish", "exchange=x", "routing_key=a.b", "payload=hello")
        assert broker.queue("q").ready == 1
        [queue] = json.loads(admin("list", "queues"))
        assert (queue["name"], queue["messages"]) == ("q", 1)
        [message] = json.loads(admin("get", "queue=q", "ackmode=ack_requeue_false"))
        assert message["payload"] == "hello"
        admin("publish", "exchange=x", "routing_key=a.b", "payload=hello")
        admin("purge", "queue", "name=q")
        assert broker.queue("q").ready == 0
        admin(
            "delete", "binding", "source=x", "destination_type=queue", "destination=q", "properties_key=a.%23"
        )
        admin("delete", "queue", "name=q")
        admin("delete", "exchange", "name=x")
        assert broker.queues == ()

    def test_manages_users_policies_and_virtual_hosts(self, admin, broker):
        admin("declare", "vhost", "name=v")
        admin("declare", "user", "name=u", "password=p", "tags=monitoring")
        admin("declare", "permission", "vhost=v", "user=u", "configure=.*", "write=.*", "read=.*")
        admin("declare", "policy", "name=p", "pattern=^t", 'definition={"max-length":5}')
        admin("declare", "operator_policy", "name=o", "pattern=^t", 'definition={"max-length":3}')
        admin("declare", "vhost_limit", "vhost=v", "name=max-queues", "value=5")
        assert [each["name"] for each in json.loads(admin("list", "policies"))] == ["p"]
        assert json.loads(admin("list", "vhost_limits")) == [{"vhost": "v", "value": {"max-queues": 5}}]
        assert {each["user"] for each in json.loads(admin("list", "permissions"))} == {"guest", "u"}
        for kind, name in (("policy", "p"), ("operator_policy", "o"), ("user", "u"), ("vhost", "v")):
            admin("delete", kind, f"name={name}")
        assert broker.policies == ()
        assert broker.admin.virtual_hosts == ("/",)

    def test_exports_and_imports_definitions(self, admin, broker, tmp_path):
        admin("declare", "queue", "name=q", "durable=true")
        admin("export", "definitions.json", cwd=tmp_path)
        broker.reset()
        assert broker.queues == ()
        admin("import", "definitions.json", cwd=tmp_path)
        assert [each.name for each in broker.queues] == ["q"]

    def test_shows_connections_and_nodes(self, admin, broker):
        with broker.connect():
            assert json.loads(admin("list", "connections")) == []  # None has logged in.
        assert json.loads(admin("list", "nodes"))[0]["running"] is True
        assert json.loads(admin("show", "overview"))[0]["product_name"] == "RabbitMQ"


class Test_rabbitmqadmin_ng:
    @pytest.fixture
    def admin(self, broker):
        command = tools.rabbitmqadmin_ng()
        if command is None:
            pytest.skip("rabbitmqadmin in Rust (rabbitmqadmin-ng) is not installed")
        address = ("--host", "127.0.0.1", "--port", str(broker.admin.management_port))
        login = ("--username", "guest", "--password", "guest")
        return lambda *arguments: run([*command, *address, *login], *arguments)

    def test_declares_publishes_gets_and_deletes(self, admin, broker):
        admin("declare", "queue", "--name", "q", "--type", "quorum", "--durable", "true")
        admin("declare", "exchange", "--name", "x", "--type", "topic")
        admin(
            "declare",
            "binding",
            "--source",
            "x",
            "--destination-type",
            "queue",
            "--destination",
            "q",
            "--routing-key",
            "a.#",
        )
        admin("publish", "message", "--exchange", "x", "--routing-key", "a.b", "--payload", "hello")
        assert broker.queue("q").ready == 1
        assert "hello" in admin("get", "messages", "--queue", "q", "--ack-mode", "ack_requeue_false")
        assert broker.queue("q").ready == 0
        admin("delete", "queue", "--name", "q")
        assert broker.queues == ()

    @pytest.mark.parametrize(
        "command",
        [
            "show overview", "show churn", "nodes list", "vhosts list", "users list", "connections list",
            "channels list", "queues list", "exchanges list", "bindings list", "permissions list",
            "policies list", "operator_policies list", "parameters list_all", "global_parameters list",
            "feature_flags list", "deprecated_features list", "user_limits list", "vhost_limits list",
            "health_check local_alarms", "health_check cluster_wide_alarms",
            "health_check node_is_quorum_critical", "plugins list_all", "streams list",
            "show memory_breakdown_in_bytes --node fakeamqp@localhost", "definitions export --stdout",
        ],
    )  # fmt: skip
    def test_each_read_command_succeeds(self, admin, command):
        assert admin(*command.split())


def test_pyrabbit2_manages_the_broker(broker):
    api = pytest.importorskip("pyrabbit2.api")
    client = api.Client(f"127.0.0.1:{broker.admin.management_port}", "guest", "guest")
    exercise_pyrabbit(client, broker)


def exercise_pyrabbit(client, broker):
    assert client.is_alive()
    client.create_vhost("v")
    client.create_queue("v", "q", durable=True)
    client.create_exchange("v", "x", "topic")
    client.create_binding("v", "x", "q", "a.#")
    assert client.publish("v", "x", "a.b", "hello")
    assert client.get_queue_depth("v", "q") == 1
    assert [each["payload"] for each in client.get_messages("v", "q", count=1, requeue=True)] == ["hello"]
    assert [each["routing_key"] for each in client.get_queue_bindings("v", "q")] == ["q", "a.#"]
    client.purge_queue("v", "q")
    client.delete_queue("v", "q")
    client.create_user("u", "p", "monitoring")
    client.set_vhost_permissions("v", "u", ".*", ".*", ".*")
    assert client.get_user_permissions("u")[0]["vhost"] == "v"
    client.delete_user("u")
    assert client.get_overview()["product_name"] == "RabbitMQ"
    assert client.get_connections() in ([], None)
    client.delete_vhost("v")
    assert broker.admin.virtual_hosts == ("/",)


def test_kombu_manager_lists_and_purges_queues(broker):
    pytest.importorskip("pyrabbit")
    kombu = pytest.importorskip("kombu")
    options = {"manager_port": broker.admin.management_port, "manager_hostname": "127.0.0.1"}
    with kombu.Connection(broker.url, transport_options=options) as connection:
        manager = connection.get_manager()
        connection.SimpleQueue("q").put("hello")
        # pyrabbit expects the tags of a user as one text, as RabbitMQ 3.10 and later do not send them,
        # and thinks that nobody is an administrator: `is_alive` and others refuse.
        assert [each["name"] for each in manager.get_queues()] == ["q"]
        assert len(manager.get_connections()) == 1
        manager.purge_queue("/", "q")
        assert broker.queue("q").ready == 0
        manager.http.client.close()


class Test_amqpstorm:
    """Its own tests of its management client. They connect to port 5672 of the host that they get."""

    HOST = "127.0.55.1"
    #: The name of the author's broker, and an address of another network.
    ELSEWHERE = ("test_api_cluster_name", "test_api_with_inaccessible")

    def test_amqpstorm_management_tests_pass(self):
        amqpstorm = pytest.importorskip("amqpstorm")
        pytest.importorskip("requests", reason="amqpstorm's management client needs requests")
        try:
            socket.create_server((self.HOST, 5672)).close()
        except OSError as problem:
            pytest.skip(f"port 5672 of {self.HOST} cannot be had: {problem}")
        folder = os.path.join(os.path.dirname(amqpstorm.__file__), "tests", "functional")
        with Broker(self.HOST, 5672, management=True) as broker:
            where = {
                "AMQP_HOST": self.HOST,
                "AMQP_USERNAME": "guest",
                "AMQP_PASSWORD": "guest",
                "AMQP_URI": broker.url,
                "AMQP_SSL_HOST": self.HOST,
                "AMQP_SSL_URI": broker.url,
                "AMQP_HTTP_URL": f"http://{self.HOST}:{broker.admin.management_port}",
            }
            names = " and ".join(f"not {name}" for name in self.ELSEWHERE)
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:fakeamqp", "-k", names),
                    *("-p", "no:cacheprovider", f"{folder}/management", f"{folder}/test_web_based.py"),
                ],
                env={**os.environ, **where},
                cwd="/",
                capture_output=True,
                text=True,
                timeout=5 * SECONDS,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-3000:]
            assert "57 passed" in done.stdout
            assert broker.admin.failures == ()


def test_flower_shows_the_length_of_a_queue(broker, tmp_path):
    pytest.importorskip("flower")
    (tmp_path / "shop.py").write_text(f"from celery import Celery\napp = Celery(broker={broker.url!r})\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    Api(broker.admin.management_url).put("queues/%2F/celery", {"durable": True})
    broker.publish(b"{}", routing_key="celery")
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "shop", "flower", f"--port={port}"),
            *("--address=127.0.0.1", f"--broker-api={broker.admin.management_url}/api/"),
        ],
        cwd=tmp_path,
        env={**os.environ, "FLOWER_UNAUTHENTICATED_API": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as flower:
        try:
            found = _answer_of(f"http://127.0.0.1:{port}/api/queues/length", flower)
        finally:
            flower.kill()
    assert [(each["name"], each["messages"]) for each in found["active_queues"]] == [("celery", 1)]


def _answer_of(url, process):
    """The JSON at an address of a server that is starting."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=SECONDS) as answer:
                return json.load(answer)
        except (URLError, ConnectionError):
            time.sleep(0.1)
    process.kill()
    raise AssertionError(process.communicate()[0])
