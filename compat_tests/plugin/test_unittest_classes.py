from __future__ import annotations

from compat_tests.plugin.conftest import WriteTests


def test_a_class_takes_the_broker_by_an_automatic_fixture(write_tests: WriteTests) -> None:
    write_tests("""
        class Orders(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def take_broker(self, amqp_broker, pika_channel):
                self.broker = amqp_broker
                self.channel = pika_channel

            def setUp(self):
                self.channel.queue_declare("orders")

            def test_it_is_there(self):
                self.assertEqual(self.broker.queue("orders").ready, 0)

            def test_it_is_fresh(self):
                self.channel.basic_publish("", "orders", b"one")
                self.broker.queue("orders").wait_for(ready=1, timeout=5)
    """).run(passed=2)


def test_an_asynchronous_class_connects_in_its_set_up(write_tests: WriteTests) -> None:
    write_tests("""
        class Orders(unittest.IsolatedAsyncioTestCase):
            @pytest.fixture(autouse=True)
            def take_url(self, amqp_url):
                self.url = amqp_url

            async def asyncSetUp(self):
                self.connection = await aio_pika.connect(self.url)
                self.addAsyncCleanup(self.connection.close)

            async def test_it(self):
                channel = await self.connection.channel()
                queue = await channel.declare_queue("orders")
                assert queue.declaration_result.message_count == 0
    """).run(passed=1)


def test_the_marker_works_on_a_class(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.amqp(users={"alice": "secret"})
        class Orders(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def take_broker(self, amqp_broker):
                self.broker = amqp_broker

            def test_it(self):
                self.assertIn("alice:secret@", self.broker.url)
    """).run(passed=1)
