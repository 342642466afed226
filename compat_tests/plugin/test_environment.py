"""The fixture and the ini option `amqp_env`: environment variables with the address of the broker."""

from __future__ import annotations

import os

import pytest

from compat_tests.plugin.conftest import INI, WriteTests

USUAL = ("AMQP_URL", "RABBITMQ_URL", "CELERY_BROKER_URL")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in USUAL:
        monkeypatch.delenv(name, raising=False)


def test_the_fixture_sets_the_usual_names_for_one_test(write_tests: WriteTests) -> None:
    write_tests("""
        import os

        def test_with(amqp_env, amqp_url):
            assert amqp_env == {name: amqp_url for name in ("AMQP_URL", "RABBITMQ_URL", "CELERY_BROKER_URL")}
            assert {os.environ[name] for name in amqp_env} == {amqp_url}

        def test_without():
            assert "AMQP_URL" not in os.environ
    """).run(passed=2)


def test_marker_env_sets_environment_variables_without_the_fixture(write_tests: WriteTests) -> None:
    write_tests("""
        import os
        from urllib.parse import urlsplit


        PARTS = ["BROKER_HOST={host}", "BROKER_PORT={port}", "LOGIN={user}:{password}", "ROOM={virtual_host}"]

        @pytest.fixture
        def app():
            return os.environ["BROKER_HOST"]

        @pytest.mark.amqp(env=PARTS, users={"alice": "s3cr3t"})
        def test_parts(app, amqp_broker):
            assert (app, os.environ["BROKER_PORT"]) == (amqp_broker.host, str(amqp_broker.port))
            assert os.environ["LOGIN"] == "alice:s3cr3t" and os.environ["ROOM"] == "/"

        @pytest.mark.amqp(env="MY_URL")
        class Orders(unittest.TestCase):
            def test_it(self):
                self.assertTrue(os.environ["MY_URL"].startswith("amqp://guest:guest@127.0.0.1:"))

        @pytest.mark.amqp(tls=True, env=["CA={ca_file}"])
        def test_tls(amqp_broker):
            assert os.environ["CA"] == str(amqp_broker.tls.ca_file)
    """).run(passed=3)


IMPORTED = """
    import app

    def test_first(amqp_broker):
        assert app.URL == amqp_broker.url
        app.publish()
        amqp_broker.queue("orders").wait_for(ready=1)

    def test_second(amqp_url):
        assert app.URL == amqp_url

    def test_without_any_fixture():
        app.publish()
        assert False, "on purpose"

    def test_about_something_else():
        assert False, "on purpose"
"""
APP = """
import os
import pika

URL = os.environ["BROKER_URL"]

def publish():
    with pika.BlockingConnection(pika.URLParameters(URL)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        channel.basic_publish("", "orders", b"apples")
"""


def test_ini_option_amqp_env_sets_the_session_broker_before_modules_are_imported(
    write_tests: WriteTests, pytester: pytest.Pytester
) -> None:
    pytester.syspathinsert()
    pytester.makepyfile(app=APP)
    pytester.makeconftest("import app")
    result = write_tests(IMPORTED).run("-o", "amqp_env=BROKER_URL")
    result.assert_outcomes(passed=2, failed=2)
    # The queue is declared anew: the broker was reset.
    result.stdout.fnmatch_lines(["*AMQP timeline*", "*queue.declare*orders*", "*basic.publish*"])
    assert result.stdout.str().count("queue.declare-ok") == 1
    assert result.stdout.str().count("AMQP timeline") == 1
    assert "BROKER_URL" not in os.environ


@pytest.mark.long
def test_amqp_env_names_the_own_broker_of_each_xdist_worker(pytester: pytest.Pytester) -> None:
    pytester.makeini(INI + "amqp_env = BROKER_URL\n")
    pytester.makepyfile(app=APP)
    pytester.makeconftest("import sys; sys.path.insert(0, '.'); import app")
    pytester.makepyfile(
        test_inner="""
        import app
        import pytest

        @pytest.mark.parametrize("run", range(6))
        def test_it(run, amqp_broker):
            assert amqp_broker.url == app.URL
            app.publish()
            amqp_broker.queue("orders").wait_for(ready=1)
        """
    )
    pytester.runpytest_subprocess("-n2", timeout=120).assert_outcomes(passed=6)


def test_amqp_env_has_the_url_of_a_proxy_with_the_option_real_url(
    write_tests: WriteTests, pytester: pytest.Pytester, amqp_url: str
) -> None:
    pytester.syspathinsert()
    pytester.makepyfile(app=APP)
    pytester.makeconftest(f"import app\nassert app.URL not in ('', {amqp_url!r})")
    write_tests("""
        import app, os

        def test_it(amqp_env, amqp_url, amqp_broker):
            assert amqp_env == {"BROKER_URL": amqp_url} and os.environ["BROKER_URL"] == amqp_url == app.URL
            app.publish()
            amqp_broker.expect_published(count=1)
    """).run("-o", "amqp_env=BROKER_URL", f"--amqp-real-url={amqp_url}", passed=1)
