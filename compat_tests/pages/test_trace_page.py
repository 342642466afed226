"""The page of a trace as a browser shows it. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pika
import pytest

from compat_tests.pages.browser import Missing, chromium
from compat_tests.unit.trace.pages import Elements, elements_of
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent, ModelEvent, Trace

OWN = "document.body.dataset.owned=1"
EVIL = f"<img src=x onerror='{OWN}'></script><script>{OWN}</script>"

Show = Callable[..., "Shown"]


class Shown:
    """A page after its script has run."""

    def __init__(self, dom: str) -> None:
        self.dom = dom
        self.elements: Elements = elements_of(dom)
        [(self.body, _)] = self.elements.all("body")

    @property
    def result(self) -> Any:
        """What the test's own script has left."""
        return json.loads(self.body["data-result"] or "null")

    @property
    def shown(self) -> int:
        return int(self.body["data-shown"] or -1)

    @property
    def labels(self) -> list[str]:
        """What a screen reader says of the rows that are in the document, in order."""
        rows = [one for one, _ in self.elements.all("div") if one.get("role") == "option"]
        return [one["aria-label"] or "" for one in sorted(rows, key=lambda one: int(one["data-at"] or 0))]

    def by_id(self, name: str) -> dict[str, str | None]:
        [found] = [attributes for _, attributes in self.elements.found if attributes.get("id") == name]
        return found


def dumped(path: Path, address: str = "", window: str = "1200,800") -> Shown:
    """The page in a file as Chromium has it once its script has run."""
    try:
        command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    except Missing as missing:
        pytest.skip(str(missing))
    command += [f"--user-data-dir={path.parent / 'profile'}", f"--window-size={window}", "--dump-dom"]
    done = subprocess.run([*command, path.as_uri() + address], capture_output=True, timeout=60, check=True)
    page = Shown(done.stdout.decode())
    assert "data-ready" in page.body, "the page's script did not come to its end"
    return page


@pytest.fixture
def show(tmp_path: Path) -> Show:
    """Opens a trace; `act` is a script that runs when the page is ready, as a user would act."""

    def shown(trace: Trace, address: str = "", act: str = "", window: str = "1200,800") -> Shown:
        text = trace.html(tmp_path / "trace.html", title="a test")
        if act:
            # The policy would not let it run; that is another test's concern.
            text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
            script = f"document.body.dataset.result = JSON.stringify((() => {{ {act} }})() ?? null)"
            text = text.replace("</body>", f"<script>{script}</script></body>")
            (tmp_path / "trace.html").write_text(text, encoding="utf-8")
        return dumped(tmp_path / "trace.html", address, window)

    return shown


def frame(
    method: Method, direction: Any = "received", channel: int = 1, time: float = 0.5, client: str = "c1"
) -> FrameEvent:
    return FrameEvent(time, f"10.0.0.1:{client} -> b", client, direction, 1, channel, method.encode())


def content(octets: bytes, time: float = 0.5, client: str = "c1", **properties: Any) -> list[Event]:
    head = CONTENT_HEADER.pack(60, 0, len(octets)) + BasicProperties(**properties).encode()
    name = f"10.0.0.1:{client} -> b"
    return [
        FrameEvent(time, name, client, "received", 2, 1, head),
        FrameEvent(time, name, client, "received", 3, 1, octets),
    ]


def story() -> Trace:
    """Two clients: one publishes, the other has its channel closed."""
    message = SimpleNamespace(body=b'{"fruit": "apple"}', exchange="", routing_key="orders", publisher=None)
    return Trace.of(
        [
            ConnectionEvent(0.0, "10.0.0.1:c1 -> b", "c1", "connected", "TLS"),  # 0
            frame(m.ConnectionStartOk(client_properties={"connection_name": "billing"}), channel=0, time=0.1),
            frame(m.QueueDeclare(queue="orders"), time=0.2),  # 2
            frame(m.BasicPublish(routing_key="orders"), time=0.3),  # 3, 4, 5
            *content(b'{"fruit": "apple"}', time=0.3, headers={"town": "Ulm"}),
            ModelEvent(
                0.3, "10.0.0.1:c1 -> b", "c1", "dropped",
                {"message": message, "queue": "orders", "reason": "expired"},
            ),  # 6
            ConnectionEvent(0.3, "10.0.0.1:c1 -> b", "c1", "fault", "the confirm was lost"),  # 7
            FrameEvent(2.3, "10.0.0.1:c2 -> b", "c2", "sent", 8, 0, b""),  # 8
            frame(m.BasicGet(queue="missing"), channel=3, time=2.4, client="c2"),  # 9
            frame(m.ChannelClose(reply_code=404, reply_text="gone"), "sent", 3, 2.5, "c2"),  # 10
        ],
        dropped=5,
        clock="virtual",
    )  # fmt: skip


def test_each_trace_row_has_label_in_words(show: Show):
    page = show(story())
    assert page.shown == 9
    assert page.labels[3] == (
        "0.300000 s, c1 to broker, channel 1: "
        "basic.publish exchange='' routing_key='orders', body of 18 bytes"
    )
    assert page.labels[5] == "0.300000 s, fault, c1: fault the confirm was lost, problem"
    assert page.labels[8].endswith("reply_code=404 reply_text='gone', problem")


def test_trace_page_header_shows_event_counts_duration_and_clock(show: Show):
    dom = show(story()).dom
    for name, value in (
        ("Events", "11"),
        ("Dropped older events", "5"),
        ("Connections", "2"),
        ("Duration", "2.50 s"),
        ("Clock", "virtual"),
    ):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in dom
    assert "<b>c1</b>billing<i>8</i>" in dom


def test_successive_heartbeats_are_one_row_and_single_heartbeat_shows_real_time(show: Show):
    name = "10.0.0.1:c1 -> b"
    beats = [
        FrameEvent(30.0 * number, name, "c1", "sent", 8, 0, b"", real_time=number / 1000)
        for number in range(34)
    ]
    page = show(Trace.of(beats, clock="virtual"), "#e20&kind=heartbeat")
    assert page.labels == ["0.000000 s, broker to c1, channel 0: heartbeat 34 heartbeats until 990.000"]
    page = show(Trace.of(beats[1:2], clock="virtual"))
    assert page.labels == ["30.000000 s, real 0.001000 s, broker to c1, channel 0: heartbeat "]
    assert '<span class="real">0.001000</span>' in page.dom


@pytest.mark.parametrize(
    ("address", "count"),
    [
        ("#connection=c2", 3),
        ("#connection=billing", 6),
        ("#kind=model,fault", 2),
        ("#kind=heartbeat", 1),
        ("#direction=sent", 2),
        ("#direction=received", 4),
        ("#channel=3", 2),
        ("#name=basic.publish", 1),
        ("#queue=orders", 3),
        ("#queue=orders&kind=model", 1),
        ("#search=ulm&only=matches", 1),
        ("#search=no%20such&only=matches", 0),
        ("#search=ulm", 9),
        ("#nonsense&channel=x&%", 9),
    ],
)
def test_fragment_of_trace_page_address_filters_events(show: Show, address: str, count: int):
    assert show(story(), address).shown == count


def test_fragment_with_body_frame_id_opens_its_publish_event(show: Show):
    # The body frame belongs to the publish.
    page = show(story(), "#e5")
    assert page.by_id("e3")["aria-selected"] == "true"
    assert page.by_id("list")["aria-activedescendant"] == "e3"
    assert "hidden" not in page.by_id("detail")
    detail = page.dom[page.dom.index('id="detail"') :]
    assert "<h2>basic.publish</h2>" in detail
    assert '<th scope="row"' in detail and "town" in detail and "Ulm" in detail
    assert '"fruit": "apple"' in detail


def test_link_to_event_overrides_filter_that_hides_it(show: Show):
    page = show(story(), "#e3&kind=fault")
    assert page.shown == 9
    assert page.by_id("e3")["aria-selected"] == "true"


def test_enter_in_search_field_selects_next_or_previous_match(show: Show):
    page = show(
        story(),
        act="""
        const query = document.getElementById("query"), said = [];
        const press = (key, shiftKey) =>
          query.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
        const matches = document.getElementById("found");
        const tell = () => said.push([matches.textContent, location.hash.split("&")[0]]);
        query.value = "ORDERS";
        press("Enter"); tell();
        press("Enter"); tell();
        press("Enter", true); tell();
        press("Enter", true); tell();
        return said;
        """,
    )
    assert page.result == [["1 of 3", "#e2"], ["2 of 3", "#e3"], ["1 of 3", "#e2"], ["3 of 3", "#e6"]]


def test_keyboard_selects_events_and_opens_details(show: Show):
    page = show(
        story(),
        act="""
        const list = document.getElementById("list"), said = [];
        list.focus();
        for (const key of ["Home", "ArrowDown", "j", "k", "End", "p", "P", "p", "Enter"]) {
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          said.push(list.getAttribute("aria-activedescendant"));
        }
        said.push(document.activeElement.id);
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
        said.push(document.activeElement.id, document.getElementById("detail").hidden);
        return said;
        """,
    )
    moves = ["e0", "e1", "e2", "e1", "e10", "e6", "e10", "e6", "e6"]
    assert page.result == [*moves, "detail", "list", True]


def test_clicked_tab_and_kind_filter_trace_rows(show: Show):
    page = show(
        story(),
        act="""
        const said = [], tabs = [...document.querySelectorAll("[role=tab]")];
        const tell = () => said.push(Number(document.body.dataset.shown));
        tabs[2].click(); tell();
        document.querySelector("#kinds input").click(); tell();
        document.getElementById("reset").click(); tell();
        said.push(tabs.map((tab) => tab.getAttribute("aria-selected")), location.hash);
        return said;
        """,
    )
    assert page.result == [3, 1, 3, ["false", "false", "true"], "#connection=c2"]


def test_theme_button_cycles_light_dark_and_auto(show: Show):
    page = show(
        story(),
        act="""
        const said = [], button = document.getElementById("theme");
        for (let time = 0; time < 3; time += 1) {
          button.click();
          said.push([button.textContent, getComputedStyle(document.body).backgroundColor]);
        }
        return said;
        """,
    )
    light, dark, auto = page.result
    assert (light[0], dark[0], auto[0]) == ("Light", "Dark", "Auto")
    assert light[1] != dark[1]
    assert auto[1] in (light[1], dark[1])


def test_printed_trace_page_contains_every_row(show: Show):
    act = "window.dispatchEvent(new Event('beforeprint'));"
    page = show(many(300), act=act)
    assert page.dom.count("<tr") == 301
    assert "queue='queue-299'" in page.dom


def many(count: int) -> Trace:
    return Trace.of([frame(m.QueueDeclare(queue=f"queue-{number}"), time=number) for number in range(count)])


def test_trace_page_renders_only_rows_near_viewport(show: Show):
    page = show(many(10_000), "#e9000")
    assert page.shown == 10_000
    assert len(page.labels) < 100
    assert any("'queue-9000'" in label for label in page.labels)
    assert not any("'queue-0'" in label for label in page.labels)
    assert page.by_id("e9000")["aria-posinset"] == "9001"


def hostile_events() -> Trace:
    return Trace.of(
        [
            ConnectionEvent(0, EVIL, "c1", EVIL, EVIL),
            frame(m.ConnectionStartOk(client_properties={"connection_name": EVIL, "product": EVIL})),
            frame(m.QueueDeclare(queue=EVIL, arguments={EVIL: {EVIL: [EVIL]}})),
            frame(m.BasicPublish(exchange=EVIL, routing_key=EVIL)),
            *content(EVIL.encode(), headers={EVIL: EVIL}, message_id=EVIL),
            ModelEvent(0, EVIL, "c1", EVIL, {EVIL: EVIL, "queue": EVIL}),
        ]
    )


def hostile_conversation() -> Trace:
    """A real one, with hostile names wherever a client can give one."""
    with Broker() as broker:
        connection = pika.BlockingConnection(
            pika.ConnectionParameters(
                broker.host, broker.port, client_properties={"connection_name": EVIL, EVIL: [EVIL]}
            )
        )
        channel = connection.channel()
        channel.exchange_declare(EVIL, "topic")
        channel.queue_declare(EVIL, arguments={EVIL: EVIL, "x-dead-letter-exchange": EVIL})
        channel.queue_bind(EVIL, EVIL, EVIL)
        properties = pika.BasicProperties(headers={EVIL: EVIL}, message_id=EVIL, content_type="text/html")
        channel.basic_publish(EVIL, EVIL, EVIL.encode(), properties)
        channel.basic_consume(EVIL, lambda *_: None, consumer_tag=EVIL, auto_ack=True)
        connection.close()
        return broker.trace


@pytest.mark.parametrize(
    ("make", "address", "rows"),
    [(hostile_events, "#search=onerror", range(5, 6)), (hostile_conversation, "", range(11, 100))],
)
def test_hostile_text_in_a_trace_is_never_executed(
    show: Show, make: Callable[[], Trace], address: str, rows: range
):
    page = show(
        make(),
        address,
        act="""
        const rows = [...document.querySelectorAll(".row")].map((row) => row.id);
        for (const id of rows) document.getElementById(id).click();
        window.dispatchEvent(new Event("beforeprint"));
        return rows.length;
        """,
    )
    assert page.result in rows
    assert "data-owned" not in page.body
    assert not page.elements.all("img")


def test_content_security_policy_blocks_script_added_to_trace_page(show: Show, tmp_path: Path):
    show(story())
    path = tmp_path / "trace.html"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("</body>", "<script>document.body.dataset.owned = 1</script></body>"))
    assert "data-owned" not in dumped(path).body
