"""A trace as a capture file for Wireshark, with synthetic packets. TLS connections are shown decrypted."""

from __future__ import annotations

from fakeamqp.trace.pcapng.capture import write

__all__ = ["write"]
