"""Keys by which the page knows queues and exchanges."""

from __future__ import annotations


def key_of(virtual_host: str, name: str) -> str:
    """The key of a queue or an exchange; different ones never have the same."""
    return f"{len(virtual_host)}:{virtual_host}{name}"
