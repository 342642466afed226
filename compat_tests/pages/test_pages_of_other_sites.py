"""A page of another site in a browser that knows the login of the HTTP port. Skipped without a browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from compat_tests.pages.browser import Missing, launched
from fakeamqp import Broker
from fakeamqp.management import origins

SITE = "evil.example"
# A form of the type text/plain sends NAME=VALUE: here, JSON.
NAME = '{"routing_key": "orders", "payload_encoding": "string", "properties": {}, "payload": "'
FORM = """
<form method=post enctype=text/plain action="http://127.0.0.1:{port}/api/exchanges/%2F/amq.default/publish">
<input name='{name}' value='forged"}}'></form><script>document.forms[0].submit()</script>
"""
READING = """
fetch("/api/definitions", {headers: {authorization: "Basic " + btoa("guest:guest")}})
  .then(answer => answer.text())
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for which the name of the site is this machine, as after DNS rebinding."""
    try:
        with launched(f"--host-resolver-rules=MAP {SITE} 127.0.0.1") as browser:
            yield browser
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(management=True) as broker:
        broker.load_definitions({"queues": [{"name": "orders", "durable": True}]})
        yield broker


@pytest.fixture
def page(browser: Any, broker: Broker) -> Iterator[Any]:
    """A page in a browser that is logged in at the broker."""
    context = browser.new_context(http_credentials={"username": "guest", "password": "guest"})
    context.set_default_timeout(60_000)
    page = context.new_page()
    assert page.goto(f"http://127.0.0.1:{broker.admin.management_port}/api/whoami").status == 200
    yield page
    context.close()


def posted(page: Any, broker: Broker) -> int:
    """The status of the message that a page of the site posts by a form."""
    html = FORM.format(port=broker.admin.management_port, name=NAME).encode()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(html)))
            self.end_headers()
            self.wfile.write(html)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            with page.expect_response("**/publish") as answer:
                page.goto(f"http://{SITE}:{site.server_port}/")
            status: int = answer.value.status
            return status
        finally:
            site.shutdown()
            thread.join()


def read(page: Any, broker: Broker) -> str:
    """What a page of the site reads of the definitions, after its name has become that of this machine."""
    page.goto(f"http://{SITE}:{broker.admin.management_port}/api/whoami")
    text: str = page.evaluate(READING)
    return text


def test_form_of_other_site_is_refused_and_publishes_no_message(page: Any, broker: Broker) -> None:
    assert posted(page, broker) == 403
    assert broker.queue("orders").ready == 0


def test_page_with_rebound_host_name_reads_no_definitions(page: Any, broker: Broker) -> None:
    assert json.loads(read(page, broker))["error"] == "misdirected_request"


def test_form_and_rebinding_attacks_succeed_without_origin_and_host_checks(
    page: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the two tests above show something."""
    monkeypatch.setattr(origins, "_check_origin", lambda _: None)
    assert posted(page, broker) == 200
    assert [each.body for each in broker.queue("orders").messages] == [b"=forged"]
    monkeypatch.setattr(origins.OwnPages, "_check_host", lambda *_: None)
    assert [each["name"] for each in json.loads(read(page, broker))["queues"]] == ["orders"]
