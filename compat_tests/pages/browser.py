"""Chromium under Playwright, for tests and for the screenshots of the docs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["NAMES", "Missing", "chromium", "launched"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class Missing(Exception):
    """Chromium or Playwright is not installed; the text says which."""


def chromium() -> str:
    """The path of the browser.

    Raises:
        Missing: there is none.
    """
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise Missing("no Chromium is installed")


@contextmanager
def launched(*further: str) -> Iterator[Any]:
    """The browser, without a window, with further options of its command line.

    Raises:
        Missing: it cannot be had.
    """
    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Missing("Playwright is not installed") from None
    with sync_playwright() as playwright:
        # The tests may run as root and with a small /dev/shm, as in a container.
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", *further]
        browser = playwright.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()
