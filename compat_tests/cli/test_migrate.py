from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.broker.test_broker import rows
from fakeamqp.cli import main
from fakeamqp.cli.migrate import migrated

OLD_TEST = '''\
from fakeamqp import Broker


async def test_orders(pytester):
    async with Broker(heartbeat=0, port=0) as shop:
        await shop.queue("orders").wait_for_async(
            ready=1,
        )
    pytester.makepyfile("""
        async def test_it(amqp_broker):
            await amqp_broker.start_async()
    """)
'''
NEW_TEST = '''\
from fakeamqp import Broker, Personality


async def test_orders(pytester):
    async with Broker(port=0, personality=Personality("rabbitmq-4.3").with_(heartbeat=0)) as shop:
        await shop.queue("orders").wait_for.aio(
            ready=1,
        )
    pytester.makepyfile("""
        async def test_it(amqp_broker):
            await amqp_broker.start.aio()
    """)
'''


def test_migrate_shows_each_change_with_its_line_and_changes_nothing(tmp_path: Path, capsys) -> None:
    (tmp_path / "test_orders.py").write_text(OLD_TEST)
    assert main(["migrate", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert f"{tmp_path}/test_orders.py:6: wait_for_async\n    wait_for.aio\n" in out
    assert out.endswith("3 to change.\n")
    assert (tmp_path / "test_orders.py").read_text() == OLD_TEST


def test_migrate_writes_the_changes_and_finds_nothing_more(tmp_path: Path, capsys) -> None:
    (tmp_path / "test_orders.py").write_text(OLD_TEST)
    assert main(["migrate", "--write", str(tmp_path)]) == 0
    assert (tmp_path / "test_orders.py").read_text() == NEW_TEST
    assert main(["migrate", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("Nothing to change.\n")


@rows(
    "old, new",
    ("Broker(personality='spec', heartbeat=0)", "Broker(personality=Personality('spec').with_(heartbeat=0))"),
    ("Broker(personality=mine, heartbeat=0)", "Broker(personality=mine.with_(heartbeat=0))"),
    (
        "@pytest.mark.amqp(heartbeat=0)\ndef f(): ...",
        'amqp(personality=Personality("rabbitmq-4.3").with_(heart',
    ),
    ("task.apply_async()", "task.apply_async()"),
    ("def test(spark_amqp):\n    spark_amqp.read", "def test(amqp_spark):\n    amqp_spark.read"),
    ("broker.queues('shop')", "broker.queues.of('shop')"),
    ("self.broker.queues()", "self.broker.queues"),
    ("other.queues()", "other.queues()"),
    ("broker.explain('events', key, virtual_host='v')", "broker.exchange('events', 'v').explain(key)"),
    ("broker.admin.add_user('a')", "broker.admin.add_user('a')"),
    ("from fakeamqp import Broker, PortInUse", "import Broker\nfrom fakeamqp.errors import PortInUse"),
    ("open(", "open("),
)
def test_migrate_rewrites(old: str, new: str) -> None:
    assert new in migrated(old)[0]


def test_migrate_changes_code_blocks_and_names_in_the_text_of_a_page() -> None:
    page = "`broker.wait_for_async` waits.\n\n```python\nawait broker.stop_async()\n```\n"
    changed, found = migrated(page, ".md")
    assert changed == "`broker.wait_for.aio` waits.\n\n```python\nawait broker.stop.aio()\n```\n"
    assert [line for line, *_ in found] == [4, 1]


def test_migrate_refuses_a_path_that_does_not_exist(tmp_path: Path, capsys) -> None:
    assert main(["migrate", str(tmp_path / "no.py")]) == 1
    assert "no.py" in capsys.readouterr().err


def test_old_names_raise_and_name_the_new_way() -> None:
    from fakeamqp import Broker

    broker = Broker()
    with pytest.raises(
        AttributeError, match=r"`Broker.start_async` is `Broker.start.aio`. `fakeamqp migrate"
    ):
        broker.start_async  # type: ignore[attr-defined] # noqa: B018
