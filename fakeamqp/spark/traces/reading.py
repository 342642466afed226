"""Reads recordings as the view `trace`: files of the recorder in JSON Lines or Parquet, or of `save`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fakeamqp.spark.traces.columns import COLUMNS, FACTS, FIELDS, LINES
from fakeamqp.spark.traces.sql import text_of
from fakeamqp.trace import RecordingError
from fakeamqp.trace.json_lines import FORMAT, READABLE, VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format: TypeAlias = Literal["jsonl", "parquet"]

_ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".jsonl.gz": "jsonl",
    ".json.gz": "jsonl",
    ".parquet": "parquet",
}
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
    lines = reader.schema(LINES).option("columnNameOfCorruptRecord", "damage").json(names)
    return _lines(lines, names)


def located(spark: SparkSession, path: str | os.PathLike[str]) -> str:
    """The path for Spark: with a local master, Java may have another working directory."""
    name = os.fspath(path)
    local = (spark.conf.get("spark.master", "") or "").startswith("local")
    return os.path.abspath(name) if local and not _URL.match(name) else name


def viewed(raw: DataFrame) -> DataFrame:
    """The view `trace` over the rows of a recording."""
    return raw.sparkSession.sql(text_of("trace"), raw=raw).selectExpr(
        *(f"CAST({name} AS {column.type}) AS {name}" for name, column in COLUMNS.items())
    )


def _format(names: list[str]) -> Format:
    """The format by the extensions of the names, or of the files in the folders."""
    found = {_ending(name) for name in names}
    if found == {None}:
        found = {
            _ending(each)
            for name in names
            for folder in [Path(name)]
            if folder.is_dir()
            for _, _, files in os.walk(folder)
            for each in files
        } - {None}
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
    lower = name.lower()
    return next((known for ending, known in _ENDINGS.items() if lower.endswith(ending)), None)


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
        "fields": ("kind = 'frame' AND name LIKE '%.%'", FIELDS),
        "facts": ("kind = 'model'", FACTS),
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
