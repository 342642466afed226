from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.crashes.extent import AT_LENGTH
from compat_tests.crashes.lanes import Lane
from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from fakeamqp.spark import SessionError
from fakeamqp.spark.session.installation import find_installation

SERIES = "4.3"


@pytest.fixture(scope="session", autouse=True)
def java() -> None:
    """The pipelines need what Spark needs."""
    try:
        find_installation()
    except SessionError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", autouse=True)
def cache(java: None, request: pytest.FixtureRequest) -> Iterator[None]:
    """What the pipelines start from in fast mode."""
    with pytest.MonkeyPatch.context() as patch:
        if not AT_LENGTH:
            patch.setenv("XDG_CACHE_HOME", str(request.getfixturevalue("spark_cache")))
        yield


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[str | None]:
    """The URL of a node of RabbitMQ 4.3, the default personality; None where it cannot be had."""
    if available(SERIES) is not None:
        yield None
        return
    with RabbitMQNode(SERIES) as node:
        yield node.url


@pytest.fixture
def make_lane(tmp_path: Path) -> Callable[..., Lane]:
    def make(name: str, url: str, /, *, shards: int = 0, ids: int | None = None, **options: object) -> Lane:
        said = {key: str(value) for key, value in options.items()}
        return Lane(name, url, tmp_path / name, said, shards=shards, ids=ids)

    return make
