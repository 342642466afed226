"""pytest plugin of fakeamqp: fixtures, marker and options.

pytest loads this module by its entry point and takes the hooks and fixtures from it, so it imports all of
them. Client libraries, asyncio and the broker are imported only when a test uses them.
"""

from __future__ import annotations

from .fixtures.aio_pika_client import (
    aio_pika_connection,
    aio_pika_connection_in_plain_loop as _aio_pika_connection_in_plain_loop,  # noqa: F401
)
from .fixtures.broker import (
    MakeBroker,
    amqp_broker,
    amqp_broker_in_plain_loop as _amqp_broker_in_plain_loop,  # noqa: F401
    amqp_broker_session,
    amqp_clock,
    amqp_env,
    amqp_faults,
    amqp_url,
    amqp_url_session,
    make_amqp_broker,
)
from .fixtures.pika_client import pika_channel, pika_connection
from .fixtures.proxy import (
    MakeProxy,
    amqp_proxy,
    amqp_proxy_in_plain_loop as _amqp_proxy_in_plain_loop,  # noqa: F401
    make_amqp_proxy,
)
from .fixtures.queues import MakeQueue, amqp_queue
from .fixtures.simulation import amqp_simulation
from .fixtures.spark_session import amqp_spark, spark_amqp as _spark_amqp  # noqa: F401
from .fixtures.spark_stream import MakeStream, amqp_stream, make_amqp_stream
from .fixtures.started import start_amqp_endpoint as _start_amqp_endpoint  # noqa: F401
from .plugin import (
    pytest_addoption,
    pytest_configure,
    pytest_exception_interact,
    pytest_fixture_setup,
    pytest_generate_tests,
    pytest_load_initial_conftests,
    pytest_pyfunc_call,
    pytest_report_teststatus,
    pytest_runtest_call,
    pytest_runtest_makereport,
    pytest_runtest_protocol,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    pytest_terminal_summary,
)

__all__ = [
    "MakeBroker",
    "MakeProxy",
    "MakeQueue",
    "MakeStream",
    "aio_pika_connection",
    "amqp_broker",
    "amqp_broker_session",
    "amqp_clock",
    "amqp_env",
    "amqp_faults",
    "amqp_proxy",
    "amqp_queue",
    "amqp_simulation",
    "amqp_spark",
    "amqp_stream",
    "amqp_url",
    "amqp_url_session",
    "make_amqp_broker",
    "make_amqp_proxy",
    "make_amqp_stream",
    "pika_channel",
    "pika_connection",
    "pytest_addoption",
    "pytest_configure",
    "pytest_exception_interact",
    "pytest_fixture_setup",
    "pytest_generate_tests",
    "pytest_load_initial_conftests",
    "pytest_pyfunc_call",
    "pytest_report_teststatus",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_terminal_summary",
]
