"""The cause of an error of Spark, found in its text."""

from __future__ import annotations

import pytest

from fakeamqp.spark.causes import cause_of


class PythonException(Exception):
    __module__ = "pyspark.errors.exceptions.captured"


CAUSE = "fakeamqp.spark.errors.PublishError: unroutable: 1 message: 312 NO_ROUTE"
TRACE = f"""Traceback (most recent call last):
  File "writers.py", line 78, in write
    publisher.publish(encoder.messages(batch, row))
    ^^^^^^^^^^^^^^^^^
{CAUSE}"""


@pytest.mark.parametrize(
    "text",
    [
        f"An exception was thrown from the Python worker:\n{TRACE}\n",
        f"[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: {TRACE}\n SQLSTATE: 38000",
        f"[STREAM_FAILED] Query [id = 1] terminated with exception: {TRACE}\n SQLSTATE: 38000\n"
        "=== Streaming Query ===\nIdentifier: [id = 1]\nCurrent State: ACTIVE",
        f"Job aborted: Task 0 failed: org.apache.spark.api.python.PythonException: {TRACE}\n\n"
        "\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1097)\nDriver stacktrace:",
        "Traceback (most recent call last):\n  File 'a.py', line 1\npika.Closed: 312\n\nThe above exception "
        f"was the direct cause of the following exception:\n\n{TRACE}\n",
    ],
    ids=["task", "driver", "stream", "stack of Java", "chain"],
)
def test_the_cause_is_found_in_the_text(text):
    assert cause_of(PythonException(text)) == CAUSE


def test_a_text_of_several_lines_is_whole():
    assert cause_of(PythonException(f"{TRACE}\nand more\n SQLSTATE: 38000")) == f"{CAUSE}\nand more"


def test_cause_of_unrelated_error_is_empty():
    assert cause_of(PythonException("[PATH_NOT_FOUND] Path does not exist: /x. SQLSTATE: 42K03")) == ""
    assert cause_of(ValueError(TRACE)) == ""
