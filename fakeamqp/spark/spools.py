"""What the two kinds of spools share. Queries with `shards` and queries without cannot read each other's."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from fakeamqp.spark.errors import DataLoss, SpoolError
from fakeamqp.spark.options import ReadOptions

log: logging.Logger = logging.getLogger("fakeamqp.spark")

#: The file with the state of a spool without shards.
STATE = "state.json"
#: The files with the state of a spool of shards, by their numbers; the highest counts.
SHARD_STATE = re.compile(r"state-([0-9]{12})\.json")


def check_kind(folder: str, names: Iterable[str], *, shards: bool) -> None:
    """Refuse a folder that has a spool of the other kind.

    Args:
        folder: its path.
        names: of the files in it.
        shards: whether the query has shards.

    Raises:
        SpoolError: a query of the other kind uses it, or has used it.
    """
    if any(name == STATE if shards else SHARD_STATE.fullmatch(name) for name in names):
        theirs, ours = ("without", "with") if shards else ("with", "without")
        raise SpoolError(
            f"{folder} has the spool of a query {theirs} 'shards': a query {ours} 'shards' needs a spoolDir "
            "of its own, and a checkpoint of its own"
        )


@contextmanager
def spool_error(what: str) -> Iterator[None]:
    """Raise the errors of files as SpoolErrors that begin with these words."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise SpoolError(f"{what}: {getattr(error, 'strerror', None) or error}") from None


def data_loss(options: ReadOptions, what: str) -> None:
    """Fail for lost messages, or log them, as `failOnDataLoss` says."""
    if options.fail_on_data_loss:
        raise DataLoss(
            f"{what}. Messages that were acknowledged may be lost, and the broker no longer has them: bring "
            "back the spool that belongs to the checkpoint, start with a new checkpoint, or set "
            "failOnDataLoss=false to continue with the remaining messages"
        )
    log.warning("%s; continuing with the remaining messages (failOnDataLoss=false)", what)
