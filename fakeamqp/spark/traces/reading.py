"""Reads recordings as the view `trace`: files of the recorder in JSON Lines or Parquet, or of `save`.

One row is one event. JSON Lines have the fields of a method under `fields` and the facts of a model event
under `facts`; Parquet files of the recorder have both as JSON in a column `fields`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fakeamqp.trace import RecordingError
from fakeamqp.trace.json_lines import FORMAT, READABLE, VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format: TypeAlias = Literal["jsonl", "parquet"]

_TRACE = """run STRING, number BIGINT, time DOUBLE, connection STRING, alias STRING, kind STRING, name STRING,
    direction STRING, channel INT, session INT, size BIGINT, virtual_host STRING, exchange STRING,
    routing_key STRING, queue STRING, consumer_tag STRING, delivery_tag BIGINT, multiple BOOLEAN,
    requeue BOOLEAN, redelivered BOOLEAN, no_ack BOOLEAN, no_wait BOOLEAN, prefetch INT, shared BOOLEAN,
    message BIGINT, message_id STRING, priority INT, body_size BIGINT, reply_code INT, text STRING"""

COLUMNS: dict[str, str] = {
    name: type for name, _, type in (column.strip().partition(" ") for column in _TRACE.split(","))
}
"""The types by name, in their order. docs/spark-traces.md says what each of them means."""

_FIELDS = """consumer_tag STRING, delivery_tag BIGINT, multiple BOOLEAN, requeue BOOLEAN, redelivered BOOLEAN,
    no_ack BOOLEAN, no_wait BOOLEAN, `global` BOOLEAN, prefetch_count INT, queue STRING, exchange STRING,
    routing_key STRING, reply_code INT, virtual_host STRING"""
"""The schema of a method's fields, as far as they are read."""

_FACTS = """queue STRING, consumer STRING, channel INT, delivery_tag BIGINT, redelivered BOOLEAN,
    exchange STRING, routing_key STRING, code INT, virtual_host STRING, no_ack BOOLEAN, prefetch INT,
    shares_prefetch BOOLEAN,
    message STRUCT<message: STRUCT<number: BIGINT, exchange: STRING, routing_key: STRING, size: BIGINT,
    properties: STRUCT<message_id: STRING, priority: INT>>>"""
"""The schema of an event's facts, as far as they are read."""

_LINES = f"""run STRING, number BIGINT, time DOUBLE, connection STRING, alias STRING, kind STRING,
    name STRING, direction STRING, channel INT, size BIGINT, body_size BIGINT,
    properties STRUCT<message_id: STRING, priority: INT>, text STRING,
    fields STRUCT<{_FIELDS}>, facts STRUCT<{_FACTS}>,
    format STRING, version INT, damage STRING"""
"""The schema of a line. `damage` is the text of a damaged line; only the first line has `format`."""

_URL = re.compile(r"[A-Za-z][\w+.-]*:")
_FILES: dict[Format, str] = {"parquet": "*.parquet", "jsonl": "*.{jsonl,json,jsonl.gz,json.gz}"}
_FROM_PARQUET = (
    *("number", "time", "connection", "alias", "kind", "name", "direction", "channel", "size"),
    *("body_size", "fields", "text"),
)


def read(
    spark: SparkSession,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    format: Format | None,
) -> tuple[DataFrame, DataFrame]:
    """The rows of the view `trace`, and the damaged lines; see `traces.load`."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    names = [located(spark, each) for each in given]
    if not names:
        raise RecordingError("there is no path to read traces from")
    chosen = format or _format(names)
    reader = spark.read.option("recursiveFileLookup", True)
    if all(Path(name).is_dir() for name in names):
        reader = reader.option("pathGlobFilter", _FILES[chosen])
    if chosen == "parquet":
        return _parquet(reader.parquet(*names), names)
    lines = reader.schema(_LINES).option("columnNameOfCorruptRecord", "damage").json(names)
    return _lines(lines, names)


@cache
def sql_of(name: str) -> str:
    """The text of a query or view, by its name."""
    return files(__package__).joinpath(f"sql/{name}.sql").read_text(encoding="utf-8")


def located(spark: SparkSession, path: str | os.PathLike[str]) -> str:
    """The path for Spark: with a local master, Java may have another working directory."""
    name = os.fspath(path)
    local = (spark.conf.get("spark.master", "") or "").startswith("local")
    return os.path.abspath(name) if local and not _URL.match(name) else name


def viewed(raw: DataFrame) -> DataFrame:
    """The view `trace` over the rows of a recording."""
    return raw.sparkSession.sql(sql_of("trace"), raw=raw).selectExpr(
        *(f"CAST({name} AS {type}) AS {name}" for name, type in COLUMNS.items())
    )


def _format(names: list[str]) -> Format:
    """The format by the extensions of the names, or of the files in the folders."""
    found = {_ending(name) for name in names}
    if found == {None}:
        inside = (each for name in names for _, _, files in os.walk(name) for each in files)
        found = {_ending(each) for each in inside} - {None}
        # A folder may have the same traces in both formats; Parquet is faster.
        found = {"parquet"} if "parquet" in found else found
    if len(found) == 1 and (chosen := found.pop()) is not None:
        return chosen
    said = ", ".join(names)
    raise RecordingError(
        f"cannot tell whether {said} has traces as JSON Lines (.jsonl) or Parquet (.parquet); "
        "set format='jsonl' or format='parquet'"
    )


def _ending(name: str) -> Format | None:
    found = re.search(r"\.(?:(parquet)|jsonl?(?:\.gz)?)$", name.lower())
    return None if found is None else "parquet" if found[1] else "jsonl"


def _run(table: DataFrame) -> str:
    """What tells recordings apart: the file, unless the rows say better."""
    file = "regexp_replace(_metadata.file_path, '^file:/+', '/')"
    return f"coalesce(run, {file}) AS run" if "run" in table.columns else f"{file} AS run"


def _parquet(table: DataFrame, names: list[str]) -> tuple[DataFrame, DataFrame]:
    nothing_damaged = table.sparkSession.createDataFrame([], "run STRING, line STRING")
    if set(COLUMNS) <= set(table.columns):
        return table.select(*COLUMNS), nothing_damaged
    missing = sorted(set(_FROM_PARQUET) - set(table.columns))
    if missing:
        raise RecordingError(
            f"{', '.join(names)}: no traces of fakeamqp are there: columns {', '.join(missing)} are missing"
        )
    # The facts of model events and the fields of methods are in one column, as JSON.
    details = {
        "fields": ("kind = 'frame' AND name LIKE '%.%'", _FIELDS),
        "facts": ("kind = 'model'", _FACTS),
        "properties": ("name = 'content header'", "message_id STRING, priority INT"),
    }
    raw = table.selectExpr(
        _run(table),
        *(name for name in _FROM_PARQUET if name not in ("body_size", "fields")),
        # A method has the value of its content header there.
        "IF(name = 'content header', body_size, NULL) AS body_size",
        *(
            f"from_json(IF({which}, fields, NULL), '{_one_line(schema)}') AS {name}"
            for name, (which, schema) in details.items()
        ),
    )
    return viewed(raw), nothing_damaged


def _lines(lines: DataFrame, names: list[str]) -> tuple[DataFrame, DataFrame]:
    first = lines.select("format", "version", "kind", "damage").head()
    where = ", ".join(names)
    if first is None:
        raise RecordingError(f"{where}: the file is empty, so it is not a recording")
    if first["format"] != FORMAT and first["kind"] is None:
        raise RecordingError(
            f"{where}: this is not a recording of fakeamqp: the first line is not its header"
        )
    if first["version"] not in (None, *READABLE):
        raise RecordingError(
            f"{where}: the recording has version {first['version']}; versions up to {VERSION} can be read"
        )
    raw = lines.where("kind IS NOT NULL").selectExpr(
        _run(lines), *(name for name in lines.columns if name not in ("run", "format", "version", "damage"))
    )
    # Said so that the reader of JSON does not take the conditions for its own: it would look for no damage.
    damaged = lines.where("coalesce(damage, '') <> '' AND coalesce(kind, format) IS NULL").selectExpr(
        _run(lines), "damage AS line"
    )
    return viewed(raw), damaged


def _one_line(schema: str) -> str:
    return " ".join(schema.split())
