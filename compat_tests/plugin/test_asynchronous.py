from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import WriteTests

PUBLISH_AND_GET = """
    async def round_trip(connection):
        channel = await connection.channel()
        queue = await channel.declare_queue("orders", auto_delete=True)
        await channel.default_exchange.publish(aio_pika.Message(b"one"), routing_key="orders")
        message = await queue.get(timeout=5)
        await message.ack()
        return message.body
"""


@pytest.mark.parametrize(
    ("mark", "option"),
    [
        pytest.param("@pytest.mark.asyncio", "--asyncio-mode=strict", id="strict mode"),
        pytest.param("", "--asyncio-mode=auto", id="auto mode"),
        pytest.param("@pytest.mark.asyncio", "-oasyncio_default_test_loop_scope=session", id="default scope"),
        *(
            pytest.param(f"@pytest.mark.asyncio(loop_scope={scope!r})", "--asyncio-mode=strict", id=scope)
            for scope in ("function", "class", "module", "package", "session")
        ),
    ],
)
def test_the_connection_is_on_the_loop_of_the_test(write_tests: WriteTests, mark: str, option: str) -> None:
    write_tests(
        PUBLISH_AND_GET
        + f"""
    class TestOrders:
        {mark}
        @pytest.mark.parametrize("turn", range(2))
        async def test_it(self, aio_pika_connection, turn):
            assert await round_trip(aio_pika_connection) == b"one"
    """
    ).run(option, "-W", "error", passed=2)


@pytest.mark.parametrize("without", [(), ("-p", "no:asyncio")], ids=["beside-pytest-asyncio", "alone"])
def test_anyio_runs_on_asyncio_and_skips_trio(write_tests: WriteTests, without: str) -> None:
    write_tests(
        PUBLISH_AND_GET
        + """
    pytestmark = pytest.mark.anyio

    async def test_it(aio_pika_connection):
        assert await round_trip(aio_pika_connection) == b"one"
    """
    ).run("-rs", *without, passed=1, skipped=1, said=["*aio_pika_connection runs on asyncio only*"])


def test_anyio_with_a_backend_of_the_users_choice(write_tests: WriteTests) -> None:
    write_tests(
        PUBLISH_AND_GET
        + """
    @pytest.fixture
    def anyio_backend():
        return "asyncio", {"debug": True}

    @pytest.mark.anyio
    async def test_it(aio_pika_connection):
        assert await round_trip(aio_pika_connection) == b"one"
    """
    ).run(passed=1)


def test_a_trio_test_can_use_the_broker_itself(write_tests: WriteTests) -> None:
    write_tests("""
        import trio

        @pytest.fixture
        def anyio_backend():
            return "trio"

        @pytest.mark.anyio
        async def test_it(amqp_broker):
            stream = await trio.open_tcp_stream(amqp_broker.host, amqp_broker.port)
            async with stream:
                await stream.send_all(b"AMQP\\0\\0\\x09\\x01")
                assert (await stream.receive_some(1)) == b"\\x01"
    """).run(passed=1)


def test_asynchronous_fixtures_of_the_user_may_build_on_ours(write_tests: WriteTests) -> None:
    write_tests("""
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def channel(aio_pika_connection):
            async with aio_pika_connection.channel() as channel:
                yield channel

        @pytest.mark.asyncio
        async def test_it(channel):
            await channel.declare_queue("orders")
    """).run(passed=1)


def test_a_test_may_close_the_connection_or_the_broker(write_tests: WriteTests) -> None:
    # Apart, and without an eye on sockets: aiormq before 7 leaves its socket open when the broker ends the
    # connection, here as with any other broker.
    write_tests("""
        pytestmark = pytest.mark.asyncio

        async def test_closes_it(aio_pika_connection):
            await aio_pika_connection.close()

        async def test_stops_the_broker(amqp_broker, aio_pika_connection):
            amqp_broker.stop()
    """).run_apart(
        "-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning", passed=2
    )


def test_the_broker_is_also_an_asynchronous_context_manager(write_tests: WriteTests) -> None:
    write_tests(
        PUBLISH_AND_GET
        + """
    from fakeamqp import Broker

    @pytest.mark.asyncio
    async def test_it():
        async with Broker() as broker:
            async with await aio_pika.connect(broker.url) as connection:
                assert await round_trip(connection) == b"one"
    """
    ).run(passed=1)


def test_aio_pika_fixture_without_an_async_plugin_errors_with_install_advice(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(aio_pika_connection):
            pass
    """).run(
        "-p",
        "no:asyncio",
        "-p",
        "no:anyio",
        errors=1,
        said=["*install pytest-asyncio and mark the test with @pytest.mark.asyncio*"],
    )


def test_an_isolated_asyncio_test_case_is_told_to_connect_itself(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.usefixtures("aio_pika_connection")
        class Orders(unittest.IsolatedAsyncioTestCase):
            async def test_it(self):
                pass
    """).run(errors=1, said=["*connect in asyncSetUp*"])


@pytest.mark.long
def test_too_old_pytest_asyncio_is_an_error_only_for_asynchronous_fixtures(
    write_tests: WriteTests, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        import pytest
        import pytest_asyncio

        def fixture(function=None, *, scope="function", name=None):
            return pytest.fixture(function, scope=scope, name=name)

        pytest_asyncio.fixture = fixture
        """
    )
    write_tests("""
        def test_pika(pika_channel):
            pika_channel.queue_declare("orders")

        @pytest.mark.asyncio
        async def test_aio_pika(aio_pika_connection):
            raise AssertionError("not to be run")
    """).run_apart(passed=1, errors=1, said=["*aio_pika_connection needs pytest-asyncio 0.24 or later*"])
