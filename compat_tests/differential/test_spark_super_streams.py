"""The tests of readers of super streams, on RabbitMQ of the default personality's series."""

from __future__ import annotations

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.differential.test_spark_streams import broker  # noqa: F401
from compat_tests.differential.test_spark_suites import of_node, series, suite_of  # noqa: F401
from compat_tests.unit.spark.conftest import no_idle_connections  # noqa: F401
from compat_tests.unit.spark.stream import test_super_streams
from compat_tests.unit.spark.stream.conftest import follow, log  # noqa: F401
from compat_tests.unit.spark.stream.test_super_streams import (  # noqa: F401
    minutes,
    orders,
    source,
)

globals().update(suite_of(test_super_streams, "log", "follow"))
