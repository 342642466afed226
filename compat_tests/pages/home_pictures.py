"""The pictures of the home page: `python -m compat_tests.pages.home_pictures`.

They show one failed test: its report, its sequence diagram on the trace page, and an animation of its
inspector while `pytest --amqp-inspect` holds it open. The animation needs Pillow.
"""

from __future__ import annotations

import html
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat_tests.pages.browser import Missing, launched
from compat_tests.pages.screenshots import FOLDER, shrink

__all__ = ["main"]

WINDOW = {"width": 1100, "height": 520}
SECONDS = 2.2
"""How long the animation shows each picture."""

TEST = '''\
import pika


def pay(url, order):
    """The app under test. The routing key has a mistake."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.basic_publish("orders", "order.payed", order)


def test_a_paid_order_is_shipped(amqp_broker, pika_channel):
    pika_channel.exchange_declare("orders", "topic")
    for queue, key in (("shipping", "order.paid"), ("mails", "order.*")):
        pika_channel.queue_declare(queue)
        pika_channel.queue_bind(queue, "orders", key)

    pay(amqp_broker.url, b'{"order": 17, "lines": 2}')

    assert amqp_broker.queue("mails").wait_for(ready=1).messages
    amqp_broker.queue("shipping").wait_for(ready=1, timeout=0.2)
'''
_TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #16181d; color: #d5d8de; font: 15px/1.45 monospace; padding: 18px 22px; }}
pre {{ margin: 0; white-space: pre; }} .E {{ color: #ff7b72; }} .p {{ color: #7ee787; }}
</style><pre>{text}</pre>"""
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/inspector/\S+")


def main() -> int:
    """Write the files; returns the exit code."""
    FOLDER.mkdir(exist_ok=True)
    try:
        with launched() as browser, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.joinpath("test_shop.py").write_text(TEST, "utf-8")
            with held(folder) as (said, address):
                begin = next(number for number, line in enumerate(said) if "AMQP inspector" in line)
                typed = ["$ pytest --amqp-inspect test_shop.py", ""]
                frames = [shot(browser, terminal([*typed, *said[begin:]]), "dark"), *tour(browser, address)]
            animate(frames, FOLDER / "home-inspector.webp")
            page = next(folder.glob("traces/*.html")).as_uri() + "#search=order&only=matches"
            (FOLDER / "home-sequence.png").write_bytes(shot(browser, page, "light"))
            shrink(FOLDER / "home-sequence.png")
            (FOLDER / "home-timeline.png").write_bytes(shot(browser, terminal(report(folder)), "dark"))
            shrink(FOLDER / "home-timeline.png")
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    for path in sorted(FOLDER.glob("home-*")):
        print(f"{path.name}: {path.stat().st_size // 1024} KiB")
    return 0


@contextmanager
def held(folder: Path) -> Iterator[tuple[list[str], str]]:
    """The test, failed and held open: what pytest has printed, and the address of the inspector."""
    command = [sys.executable, "-u", "-m", "pytest", "-p", "no:cacheprovider", "--amqp-inspect"]
    with subprocess.Popen(
        [*command, "--amqp-trace=traces", "test_shop.py"], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        try:
            for line in process.stdout:
                said.append(line.rstrip())
                if found := _ADDRESS.search(line):
                    yield said, found[0]
                    break
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()


def report(folder: Path) -> list[str]:
    """The end of the report of the failed test: the error, and the timeline."""
    environment = {**os.environ, "COLUMNS": "110"}
    options = ["-p", "no:cacheprovider", "--tb=short", "-o", "amqp_timeline_lines=13"]
    command = [sys.executable, "-m", "pytest", *options, "test_shop.py"]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("E "))
    end = next(number for number, line in enumerate(lines) if "short test summary" in line)
    return ["$ pytest test_shop.py", "", *lines[begin:end]]


def terminal(lines: list[str]) -> str:
    """The address of a page that shows lines as a terminal does."""
    shown = []
    for line in lines:
        kind = (
            "E"
            if line.startswith(("E ", "AssertionError", "WaitTimeout"))
            else "p"
            if line[:1] == "$"
            else ""
        )
        shown.append(f'<span class="{kind}">{html.escape(_ADDRESS.sub(shortened, line))}</span>')
    page = Path(tempfile.mkdtemp(), "terminal.html")
    page.write_text(_TERMINAL.format(text="\n".join(shown)), "utf-8")
    return page.as_uri()


def shortened(address: re.Match[str]) -> str:
    """An address without the secret that a picture need not show."""
    return address[0].partition("=")[0] + "=..."


def shot(browser: Any, address: str, scheme: str) -> bytes:
    """A picture of a page."""
    context = browser.new_context(viewport=WINDOW, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    page.wait_for_load_state("load")
    picture: bytes = page.screenshot()
    context.close()
    return picture


def tour(browser: Any, address: str) -> Iterator[bytes]:
    """Pictures of the inspector: the topology, the queue that got the message, and its publish."""
    context = browser.new_context(viewport=WINDOW, color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#live.on")
    page.wait_for_selector("#tab-timeline[aria-selected=true]")  # It opens at the failure.
    page.click("#tab-topology")
    page.wait_for_selector('.node[aria-label^="queue shipping"]')
    page.evaluate("document.activeElement.blur()")
    yield page.screenshot()
    page.click("#tab-queues")
    page.click('#queue-list .row[aria-label^="queue mails"]')
    page.click("#detail .messages .row >> nth=0")
    page.wait_for_selector("#detail .one pre")
    yield page.screenshot()
    page.click("#tab-timeline")
    page.click('#line-list .row[aria-label*="basic.publish"] >> nth=-1')
    page.wait_for_selector("#detail pre")
    yield page.screenshot()
    context.close()


def animate(frames: list[bytes], path: Path) -> None:
    """Write pictures as one that moves.

    Raises:
        Missing: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise Missing("Pillow is not installed") from None
    first, *others = [Image.open(io.BytesIO(each)).convert("RGB") for each in frames]
    milliseconds = int(SECONDS * 1000)
    first.save(path, save_all=True, append_images=others, duration=milliseconds, loop=0, quality=80, method=6)


if __name__ == "__main__":
    sys.exit(main())
