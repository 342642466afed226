"""The session of those who have set nothing. A plugin, for runs that are to be compared with ours."""

import pytest


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").getOrCreate()
    yield session
    session.stop()
