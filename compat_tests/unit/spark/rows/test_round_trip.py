"""What the sink writes, the source reads: every type of a header exactly."""

from __future__ import annotations

import pytest

from compat_tests.unit.spark.rows.round_trip import check


@pytest.mark.parametrize("headers_format", ["map", "json"])
def test_each_header_type_survives_write_and_read(broker, headers_format):
    check(broker.url, "orders", headers_format)
