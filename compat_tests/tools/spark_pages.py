"""The tables of the pages about Spark, made from code: `python -m compat_tests.tools.spark_pages`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.model.personality.variants import field_texts
from fakeamqp.spark.options.option import Use, options_of
from fakeamqp.spark.options.other_names import KAFKA
from fakeamqp.spark.options.reading import OF_SOURCE
from fakeamqp.spark.options.table import CommonOptions, ConnectionOptions, ReadOptions, WriteOptions
from fakeamqp.spark.rows.columns import SOURCE_COLUMNS
from fakeamqp.spark.sink.columns import SINK_COLUMNS

__all__ = ["FROM_KAFKA", "PAGES", "main", "option_rows", "with_tables"]

_DOCS = Path(__file__).parents[2] / "docs"

FROM_KAFKA: Mapping[str, str] = {
    "kafka.bootstrap.servers": "",
    "subscribe": "",
    "subscribePattern": "a regular expression of Python. AMQP has no list of queues: set `managementUrl`",
    "assign": "",
    "startingOffsets": "the default is `earliest` for streaming queries, too. The JSON is "
    '`{"events": 17}`; -2 is `earliest` and -1 `latest` there, as in Kafka\'s',
    "startingTimestamp": "milliseconds, as in Kafka's, or ISO 8601. The chunk of this time may begin with "
    "earlier messages",
    "startingOffsetsByTimestamp": 'the JSON is `{"events": 1000}`',
    "startingOffsetsByTimestampStrategy": "",
    "endingOffsets": 'the JSON is `{"events": 99}`',
    "endingTimestamp": "as `startingTimestamp`",
    "endingOffsetsByTimestamp": 'the JSON is `{"events": 2000}`',
    "failOnDataLoss": "",
    "maxOffsetsPerTrigger": "the default is 10000; Kafka's is no limit",
    "minOffsetsPerTrigger": "",
    "maxTriggerDelay": "",
    "minPartitions": "the default is the number of processors of the driver; Kafka's splits nothing",
    "maxRecordsPerPartition": "",
    "includeHeaders": "the default is `true`. The sink needs no option: it publishes the column `headers` if "
    "there is one",
    "kafkaConsumer.pollTimeoutMs": "",
    "fetchOffset.numRetries": "",
    "fetchOffset.retryIntervalMs": "",
    "groupIdPrefix": "",
    "kafka.group.id": "",
    "topic": "",
    "kafka.partitioner.class": "",
    "kafka.*": "",
}
"""All options of Spark's source and sink for Kafka; and what is different about those that are accepted."""


def with_tables(page: Path) -> str:
    """The text of a page with its tables up to date.

    Raises:
        ValueError: it has no place for a table.
    """
    return tables.with_tables(page.read_text(encoding="utf-8"), PAGES[page])


def option_rows(record: type) -> list[list[str]]:
    """The rows of the options of a record: names, uses, meaning and default value."""
    texts = field_texts(record)
    options = dict.fromkeys(options_of(record).values())
    return [
        [
            ", ".join(f"`{name}`" for name in each.names),
            _use(each.use, each.needs),
            texts[each.field].rstrip("."),
            each.shown or (f"`{each.default}`" if each.default else ""),
        ]
        for each in options
    ]


def _use(use: Use, needs: str) -> str:
    """Where an option applies; "" means everywhere."""
    source = {"queue": "queues", "stream": "streams", "": ""}[use.source]
    parts = [
        source + (" without `shards`" if not use.shards and use.source != "stream" else ""),
        "batch reads" if use.batch else "",
        "`ackMode=spool`" if use.spool else "",
        f"with `{needs}`" if needs else "",
    ]
    return ", ".join(filter(None, (part.strip() for part in parts)))


def _connection() -> str:
    rows = [*option_rows(ConnectionOptions), *option_rows(CommonOptions)]
    return tables.table(["Option", "Meaning", "Default"], [[row[0], *row[2:]] for row in rows])


def _source() -> str:
    common = option_rows(CommonOptions)
    rows = [row for row in option_rows(ReadOptions) if row not in common]
    return tables.table(["Option", "For", "Meaning", "Default"], rows)


def _sink() -> str:
    common = option_rows(CommonOptions)
    rows = [[row[0], *row[2:]] for row in option_rows(WriteOptions) if row not in common]
    return tables.table(["Option", "Meaning", "Default"], rows)


def _from_kafka() -> str:
    rows = []
    for name, note in FROM_KAFKA.items():
        if option := OF_SOURCE.get(name.lower()):
            here = "the same" if option.key == name else f"accepted, for `{option.key}`"
            rows.append([f"`{name}`", here, note])
        else:
            instead, why = KAFKA[name]
            here = f"set {' or '.join(f'`{key}`' for key in instead)}" if instead else "missing"
            rows.append([f"`{name}`", here, why])
    return tables.table(["Kafka's option", "Here", "Differences"], rows)


def _source_columns() -> str:
    rows = [[f"`{each.name}`", _broken(each.ddl), each.meaning] for each in SOURCE_COLUMNS]
    return tables.table(["Column", "Type", "Meaning"], rows)


def _sink_columns() -> str:
    rows = [[f"`{each.name}`", each.spelled, each.meaning] for each in SINK_COLUMNS]
    return tables.table(["Column", "Type", "Meaning"], rows)


def _broken(ddl: str) -> str:
    """Without the fields of a struct, which the page lists beside the table."""
    return "STRUCT" if ddl.startswith("STRUCT") else ddl


PAGES: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    _DOCS / "spark-columns.md": {"columns of the source": _source_columns},
    _DOCS / "spark-sink.md": {"columns of the sink": _sink_columns},
    _DOCS / "spark-options.md": {
        "options of the connection": _connection,
        "options of the source": _source,
        "options of the sink": _sink,
    },
    _DOCS / "spark-from-kafka.md": {"options of Kafka": _from_kafka},
}
"""The pages, and what makes their tables."""


def main() -> None:
    """Write the pages anew."""
    for page in PAGES:
        page.write_text(with_tables(page), encoding="utf-8")


if __name__ == "__main__":
    main()
