"""Test modules that need PySpark import this first, and fixtures and tests that need it: they are skipped."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'fakeamqp[spark]'")
