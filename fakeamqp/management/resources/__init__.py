"""The resources of the API: one module for each kind of thing."""

from __future__ import annotations

from fakeamqp.management.resources import overview

__all__ = ["RESOURCES"]

RESOURCES = (*overview.RESOURCES,)
