"""Pictures of the site, to be looked at: `python -m compat_tests.pages.site_screenshots [PAGE...]`.

Each page is shown at two widths, light and dark, in build/screenshots. `make docs` builds the site before.
Prints pages with errors in the console, and pages that are wider than the window; then it ends with 1.
"""

from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from compat_tests.pages.browser import Missing, launched

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
FOLDER = ROOT / "build" / "screenshots"
WIDTHS = (1400, 390)
PAGES = (
    "",
    "getting-started",
    "troubleshooting",
    "support",
    "pytest-fixtures",
    "fault-injection",
    "fault-actions",
    "recipes",
    "recipes/celery",
    "recipes/lost-connection",
    "inspecting",
    "decisions",
    "benchmarks",
    "conformance-0-9-1",
    "api/fakeamqp/Broker",
)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def main(pages: list[str]) -> int:
    """Take the pictures; returns the exit code."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wrong = []
    try:
        with served(SITE) as address, launched() as browser:
            for width in WIDTHS:
                for scheme in ("light", "dark"):
                    window = {"width": width, "height": 900}
                    context = browser.new_context(
                        viewport=window, color_scheme=scheme, reduced_motion="reduce"
                    )
                    page = context.new_page()
                    said: list[str] = []
                    page.on("pageerror", lambda error, said=said: said.append(str(error)))
                    page.on("console", lambda message, said=said: said.extend(errors(message, address)))
                    for path in pages or PAGES:
                        said.clear()
                        page.goto(f"{address}/{path}/" if path else f"{address}/")
                        page.wait_for_load_state("networkidle")
                        name = f"{path.replace('/', '-') or 'home'}-{width}-{scheme}"
                        page.screenshot(path=FOLDER / f"{name}.png")
                        wide = page.evaluate("document.documentElement.scrollWidth")
                        wrong += [f"{name}: {wide} pixels wide"] if wide > width else []
                        wrong += [f"{name}: {each}" for each in said]
                    context.close()
    except Missing as missing:
        wrong.append(str(missing))
    print("\n".join([*wrong, f"Look at {FOLDER}"]))
    return 1 if wrong else 0


def errors(message: Any, address: str) -> Iterator[str]:
    """The text of a message of the console that is an error, and not about another server."""
    if message.type == "error" and message.location["url"].startswith(address):
        yield message.text


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of these files."""
    handler = partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
