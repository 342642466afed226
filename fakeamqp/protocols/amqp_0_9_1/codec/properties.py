"""The properties of contents of AMQP 0-9-1."""

from __future__ import annotations

from fakeamqp.protocols.framed.codec.basic import BasicProperties

__all__ = ["BasicProperties"]
