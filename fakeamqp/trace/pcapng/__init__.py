"""A trace as a file for Wireshark and its kin, with the packets as they could have been.

What TLS has hidden on the wire is not hidden here.
"""

from __future__ import annotations

from fakeamqp.trace.pcapng.capture import write

__all__ = ["write"]
