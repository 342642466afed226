"""Test modules that cannot be imported without PySpark import this first."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'fakeamqp[spark]'")
