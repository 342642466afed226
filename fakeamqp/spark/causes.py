"""The cause of an error of Spark, which is deep inside of its text.

An error of a Python source or sink reaches a program as the text of a stack trace of Python, in a stack trace
of Java, in an exception of PySpark.
"""

from __future__ import annotations

import re

_OF_SPARK = ("pyspark.errors", "py4j.")
_TRACE = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*"
    r"(\S[\s\S]*?)\s*(?=\n\s*SQLSTATE|\n\s*===|\n\s*JVM stacktrace|\n\tat |\nDuring handling|\nThe above|\Z)"
)


def cause_of(error: BaseException) -> str:
    """The exception of Python that made Spark fail, such as `fakeamqp.spark.errors.OptionError: ...`.

    Returns:
        type and text; "" if the error is not one of Spark, or its cause is not in Python.
    """
    if not type(error).__module__.startswith(_OF_SPARK):
        return ""
    found = _TRACE.findall(str(error))
    return str(found[-1]) if found else ""
