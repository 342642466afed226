"""The client's suites for brokers that speak AMQP 0-8 and 0-9, run over 0-9: that is what the client speaks.

They are of Apache's brokers of that time, and a few tests are about what only these did.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from compat_tests.clients.qpid import suite
from compat_tests.clients.qpid.python27 import Python27
from compat_tests.clients.qpid.suite import Outcome
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9.choices import letter_of

__all__ = ["MODULES", "NOT_RUN", "run_all"]

_0_8, _0_9 = "qpid_tests.broker_0_8", "qpid_tests.broker_0_9"

MODULES = {
    f"{_0_8}.basic": 11,
    f"{_0_8}.broker": 6,
    f"{_0_8}.example": 1,
    f"{_0_8}.exchange": 18,
    f"{_0_8}.queue": 7,
    f"{_0_8}.testlib": 3,
    f"{_0_8}.tx": 4,
    f"{_0_9}.echo": 5,
    f"{_0_9}.messageheader": 4,
    f"{_0_9}.query": 5,
    f"{_0_9}.queue": 6,
}
"""The modules of both suites, and how many tests each has."""

_NO_SUCH_METHOD = "the definitions that the client comes with have no such method"

NOT_RUN = {
    f"{_0_8}.basic.BasicTests.test_reconnect_to_durable_subscription": (
        "a rule of Apache's brokers: an exclusive queue that is durable outlives its connection"
    ),
    f"{_0_9}.queue.QueueTests.test_flow_control": (
        "a rule of Apache's brokers: the queue argument x-qpid-capacity stops publishers"
    ),
    f"{_0_9}.query.QueryTests.test_exchange_query": _NO_SUCH_METHOD,
    f"{_0_9}.query.QueryTests.test_binding_query_direct": _NO_SUCH_METHOD,
    f"{_0_9}.query.QueryTests.test_binding_query_fanout": _NO_SUCH_METHOD,
    f"{_0_9}.query.QueryTests.test_binding_query_header": _NO_SUCH_METHOD,
    f"{_0_9}.query.QueryTests.test_binding_query_topic": _NO_SUCH_METHOD,
}
"""Tests, and why they are not run."""

_LOTS = (
    (_0_9, ("echo", "messageheader", "queue")),
    (_0_8, ("basic", "example")),
    (_0_8, ("broker", "exchange", "testlib")),
    (_0_8, ("queue", "tx")),
)
"""Which modules a process runs: most of the time they wait for a second to see that nothing comes."""


def run_all(client: Python27) -> dict[str, Outcome]:
    """Run all tests that nothing speaks against; outcomes by name."""
    names = [name for module in (_0_8, _0_9) for name in suite.listed(client, module)]
    with ThreadPoolExecutor(len(_LOTS)) as pool:
        outcomes: dict[str, Outcome] = {}
        for each in pool.map(lambda lot: _run_on_own_broker(client, names, *lot), _LOTS):
            outcomes |= each
    return outcomes


def _run_on_own_broker(
    client: Python27, names: list[str], module: str, parts: tuple[str, ...]
) -> dict[str, Outcome]:
    of_lot = tuple(f"{module}.{part}." for part in parts)
    chosen = [name for name in names if name.startswith(of_lot) and name not in NOT_RUN]
    with Broker(seed=1, personality=letter_of("rabbitmq-4.2")) as broker:
        outcomes = suite.run(client, broker.host, broker.port, chosen, modules=(module,))
        failures = broker.admin.failures
    if failures:
        return dict.fromkeys(outcomes, Outcome("fail", f"the broker failed: {failures}"))
    return outcomes
