"""Rows between the broker and Spark, in the stores of all acknowledgement modes, without either of them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import encoded
from fakeamqp.spark.errors import DataLoss, OptionError, SpoolError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue import partitions, spool
from fakeamqp.spark.queue.folder import SpoolFolder
from fakeamqp.spark.queue.partitions import Block, Piece, cut, pick
from fakeamqp.spark.queue.spool import Spool
from fakeamqp.spark.queue.store import AtMostOnce, UntilCommit
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.rows.record_batches import DeliveredRow

OPTIONS = {"amqp.url": "amqp://h", "queue": "q", "columns": "value,message_id,timestamp"}


def options(**more):
    return read_options({**OPTIONS, **more}, streaming=True)


def memory(kind, **more):
    found = options(ackMode="commit" if kind is UntilCommit else "none", **more)
    return kind(found, chosen_columns(found))


def delivered(*bodies, tag=1, queue="q", **properties):
    octets = encoded(**properties)
    return [
        DeliveredRow(number, False, b"\x00\x01q", octets, body, queue, 0, 0)
        for number, body in enumerate(bodies, tag)
    ]


def rows(pieces):
    found = []
    for piece in pieces:
        column = piece.block.load().column("value").slice(piece.start, len(piece))
        found += column.to_pylist()
    return found


def filled(store, *segments):
    """The store with a row for each letter; tags are numbers from 1 on."""
    tag = 1
    for segment in segments:
        store.add(delivered(*(letter.encode() for letter in segment), tag=tag))
        tag += len(segment)
    return store


@pytest.fixture
def on_disk(tmp_path):
    """A function that opens a spool again and again."""
    stores = []

    def make(**more):
        for each in stores:
            each.close()
        found = options(spoolDir=str(tmp_path / "spool"), **more)
        stores.append(Spool(found, chosen_columns(found)))
        return stores[-1]

    yield make
    for each in stores:
        each.close()


# --- what all stores do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [UntilCommit, AtMostOnce, Spool])
def test_rows_have_numbers_and_are_handed_out_by_them(kind, on_disk):
    store = filled(on_disk() if kind is Spool else memory(kind), "abc", "d", "efgh")
    store.settled(8)
    assert (store.next, store.visible, store.committed) == (8, 8, 0)
    with cases() as case:
        for start, end, expected in [
            (0, 8, ["abc", "d", "efgh"]),
            (1, 5, ["bc", "d", "e"]),
            (3, 4, ["d"]),
            (4, 4, []),
            (2, 3, ["c"]),
            (4, 8, ["efgh"]),
        ]:
            with case(start, end):
                pieces = store.pieces(start, end)
                assert [b"".join(rows([piece])).decode() for piece in pieces] == expected
        for start, end, most, expected in [
            (0, 3, None, 3),
            (0, 99, None, 8),
            (0, 8, 5, 5),
            (2, 2, 0, 2),
            (2, 8, 0, 3),
        ]:
            with case("hand out", start, end, most):
                assert store.hand_out(start, end, most) == expected
    assert store.offset(3) == {"spool": store.id, "next": 3}
    assert store.position(store.offset(3)) == 3
    assert not store.repeats("q", encoded(message_id="a"), b"a")


@pytest.mark.parametrize("kind", [UntilCommit, AtMostOnce])
def test_rows_count_as_waiting_until_handed_out(kind):
    store = filled(memory(kind), "abc", "d")
    store.settled(4)
    first, second = (block.size for block in store._blocks)
    assert store.waiting == (4, first + second)
    store.hand_out(0, 3)
    assert store.waiting == (1, second)
    store.hand_out(0, 2)
    assert store.waiting == (1, second)
    assert store._unprocessed_bytes == first + second
    store.processed(3)
    assert store._unprocessed_bytes == second
    store.processed(2)
    assert store._unprocessed_bytes == second
    store.processed(99)
    assert (store._unprocessed_bytes, store._processed) == (0, 4)


def test_a_store_is_full_by_its_bytes_and_never_without_rows():
    size = filled(memory(UntilCommit), "abc")._blocks[0].size
    with cases() as case:
        for most, full in ((size, True), (size + 1, False), (1, True)):
            with case(most):
                store = memory(UntilCommit, spoolMaxBytes=str(most))
                assert not store.full
                filled(store, "abc")
                assert store.full == full
                store.processed(2)
                assert store.full == full
                store.processed(3)
                assert not store.full


def test_timestamp_of_next_row_is_that_of_first_row_not_handed_out():
    store = memory(UntilCommit)
    assert store.timestamp_of_next() is None
    store.add([*delivered(b"a", timestamp=1_500_000_000), *delivered(b"b"), *delivered(b"c", timestamp=7)])
    store.add(delivered(b"d", timestamp=8))
    found = []
    for end in (0, 1, 2, 3, 4):
        store.hand_out(0, end)
        found.append(store.timestamp_of_next())
    assert found == [1_500_000_000.0, None, 7.0, 8.0, None]
    assert filled(memory(UntilCommit, columns="value"), "a").timestamp_of_next() is None


def test_a_batch_has_at_most_so_many_bytes_of_bodies():
    store = memory(UntilCommit)
    for bodies in ((b"", b"12", b"345"), (b"6",), (b"7890", b"")):
        store.add(delivered(*bodies))
    with cases() as case:
        for start, most, end in [
            (0, 0, 1),
            (0, 1, 1),
            (0, 2, 2),
            (0, 4, 2),
            (0, 5, 3),
            (0, 6, 4),
            (0, 9, 4),
            (0, 10, 6),
            (1, 1, 2),
            (2, 4, 4),
            (3, 0, 4),
            (4, 3, 5),
            (4, 4, 6),
        ]:
            with case(start, most):
                assert store.within(start, 6, most) == end
    assert store.within(0, 2, 99) == 2
    store.add(delivered(*[b"1"] * 4))
    assert store.within(7, 10, 2) == 9
    assert filled(memory(UntilCommit, columns="message_id"), "abc").within(0, 3, 0) == 3


def test_missing_rows_raise_data_loss_or_log_warning(caplog):
    with cases() as case:
        for gone, start, end, text, left in [
            (0, 0, 6, "rows 0 to 1 are gone", b"cdef"),
            (0, 1, 6, "rows 1 to 1 are gone", b"cdef"),
            (1, 0, 6, "rows 2 to 3 are gone", b"abef"),
            (2, 0, 6, "rows 4 to 5 are gone", b"abcd"),
            (2, 3, 5, "rows 4 to 4 are gone", b"d"),
        ]:
            for fails in (True, False):
                with case(text, fails):
                    caplog.clear()
                    store = filled(memory(AtMostOnce, failOnDataLoss=str(fails)), "ab", "cd", "ef")
                    del store._blocks[gone]
                    if fails:
                        with pytest.raises(DataLoss, match=f"^{text}. Messages that were acknowledged"):
                            store.pieces(start, end)
                    else:
                        assert b"".join(rows(store.pieces(start, end))) == left
                        assert f"{text}; continuing with the remaining" in caplog.text
    store = filled(memory(AtMostOnce, failOnDataLoss="false"), "ab", "cd")
    store._blocks[0] = Block(0, 2, 9, broken="it is short", path="/x")
    assert rows(store.pieces(1, 4)) == [b"c", b"d"]
    assert "rows 1 to 1 cannot be read: /x: it is short" in caplog.text
    assert store.timestamp_of_next() is None


def test_the_size_of_a_piece_is_that_of_its_rows():
    block = Block(10, 14, 100)
    assert [Piece(block, *each).size for each in ((0, 4), (1, 2), (1, 3), (2, 2))] == [100, 25, 50, 0]
    assert Piece(Block(1, 1, 100), 0, 0).size == 0


# --- rows in memory ---------------------------------------------------------------------------------------


def test_committed_rows_in_memory_are_gone():
    store = filled(memory(UntilCommit), "ab", "cd", "ef")
    assert store.acks_on_arrival is False
    store.commit(3)
    assert store.committed == 3
    assert rows(store.pieces(0, 6)) == [b"d", b"e", b"f"]
    assert store.pieces(0, 3) == []
    store.commit(2)
    assert store.committed == 3
    store.commit(99)
    assert (store.committed, store._blocks) == (6, [])
    assert store._unprocessed_bytes == 0
    assert (store.position({"spool": "other", "next": 4}), store.position({"spool": store.id})) == (0, 0)


def test_new_channel_drops_only_rows_not_handed_out_to_spark(caplog):
    caplog.set_level(logging.INFO, "fakeamqp.spark")
    store = filled(memory(UntilCommit), "ab", "cd", "ef")
    store.hand_out(0, 3)
    store.commit(1)
    store.processed(2)
    store.new_channel()
    assert "3 messages that Spark did not get are redelivered" in caplog.text
    assert store.next == 3
    assert rows(store.pieces(1, 3)) == [b"b", b"c"]
    assert [(each.first, each.end, each.batch.num_rows) for each in store._blocks] == [(0, 2, 2), (2, 3, 1)]
    assert all(each.size == each.batch.nbytes for each in store._blocks)
    assert store._unprocessed_bytes == store._blocks[1].size
    filled(store, "xyz")
    caplog.clear()
    store.hand_out(3, 6)
    store.new_channel()
    assert caplog.text == ""
    assert store.next == 6


@pytest.mark.parametrize(("prefetch", "fits"), [("1", False), ("2", True)])
def test_until_commit_store_needs_prefetch_of_at_least_2(prefetch, fits):
    if fits:
        assert memory(UntilCommit, prefetch=prefetch).least_window == 2
    else:
        with pytest.raises(OptionError, match="option 'prefetch' is 1; with ackMode=commit it has to be 2"):
            memory(UntilCommit, prefetch=prefetch)


def test_at_most_once_rows_are_visible_only_when_settled():
    store = filled(memory(AtMostOnce), "abcd")
    assert store.visible == 0
    store.settled(3)
    store.settled(2)
    assert (store.visible, store.hand_out(0, 9)) == (3, 3)
    store.new_channel()
    assert (store.next, store.visible) == (3, 3)
    filled(store, "xy")
    store.settled(4)
    store.commit(5)
    store.new_channel()
    assert store.next == 5
    assert memory(AtMostOnce).id != store.id


# --- rows on the disk -------------------------------------------------------------------------------------


def names(store):
    return sorted(path.name for path in store._folder.path.iterdir() if path.suffix == ".arrow")


def test_reopened_spool_has_id_rows_and_commit_of_before(on_disk):
    store = filled(on_disk(dedupe="none", prefetch="1"), "ab", "cd", "ef")
    number = store.id
    store.commit(3)
    again = on_disk(dedupe="none", prefetch="1")
    assert (again.id, again.committed, again.next, again._may_return) == (number, 3, 6, 6)
    assert rows(again.pieces(3, 6)) == [b"d", b"e", b"f"]
    assert again.waiting[0] == 3
    assert names(again) == [f"{2:020d}-2.arrow", f"{4:020d}-2.arrow"]
    assert json.loads((again._folder.path / "state.json").read_text()) == {
        "format": 1,
        "spool": number,
        "committed": 3,
    }
    again.commit(2)
    again.commit(3)
    again.commit(99)
    assert (again.committed, names(again)) == (6, [])
    last = on_disk()
    assert (last.committed, last.next, last._processed, last._handed) == (6, 6, 6, 6)


@pytest.mark.parametrize("fails", [True, False])
def test_reopened_spool_with_lost_rows_raises_data_loss_or_skips_them(on_disk, caplog, fails):
    store = filled(on_disk(), "ab", "cd", "ef", "gh")
    store.commit(3)
    folder = store._folder.path
    (folder / f"{4:020d}-2.arrow").unlink()
    (folder / f"{6:020d}-2.arrow").write_bytes(b"short")
    (folder / f"{0:020d}-2.arrow").write_bytes(b"short")  # It is processed, and no loss.
    if fails:
        with pytest.raises(DataLoss, match=r"^rows 4 to 5 of the spool are gone\. Messages that were"):
            on_disk()
        (folder / f"{6:020d}-2.arrow").unlink()
        (folder / f"{4:020d}-2.arrow").write_bytes(b"short")
        with pytest.raises(DataLoss, match=rf"^segment {folder}/0+4-2\.arrow cannot be read: "):
            on_disk()
        on_disk(failOnDataLoss="false")
    else:
        again = on_disk(failOnDataLoss="false")
        assert (again.next, again.id) == (8, store.id)
        assert rows(again.pieces(3, 8)) == [b"d"]
        for text in ("rows 4 to 5 of the spool are gone", "rows 6 to 7 cannot be read", "0000000006-2.arrow"):
            assert text in caplog.text
        again.new_channel()
        assert not again.repeats("q", encoded(message_id="a"), b"a")


def test_offset_of_another_spool_or_later_row_raises_data_loss_or_logs_warning(on_disk, caplog):
    with cases() as case:
        for fails in (True, False):
            store = filled(on_disk(failOnDataLoss=str(fails)))
            if fails:
                filled(store, "abc")
                store.commit(2)
            assert store.position(store.offset(3)) == 3
            path = store._folder.path
            for offset, text in [
                (store.offset(4), f"the checkpoint continues at row 4, and the spool in {path} ends at 3"),
                ({"spool": store.id, "next": "x"}, "the checkpoint continues at row x"),
                (
                    {"spool": "y", "next": 3},
                    f"the checkpoint belongs to spool y, and {path} has spool {store.id}",
                ),
                ({}, "the checkpoint belongs to spool None"),
            ]:
                with case(fails, text[:40]):
                    caplog.clear()
                    if fails:
                        with pytest.raises(DataLoss) as caught:
                            store.position(offset)
                        assert str(caught.value).startswith(text)
                    else:
                        assert store.position(offset) == 2
                        assert text in caplog.text


def test_segments_that_may_come_again_are_kept_although_they_are_large(on_disk, monkeypatch):
    size = filled(on_disk(), "a")._blocks[0].size
    with cases() as case:
        for most, settled, may_return, kept in [
            (1 << 30, 0, 0, 4),
            (1 << 30, 9, 0, 4),
            (2 * size, 0, 0, 4),
            (2 * size, 99, 0, 2),
            (2 * size, 5, 0, 3),
            (2 * size, 99, 7, 4),
            (2 * size, 0, 7, 4),
        ]:
            with case(most, settled, may_return):
                for path in (on_disk()._folder.path).iterdir():
                    path.unlink()
                store = filled(on_disk(prefetch="2", spoolMaxBytes=str(most)), *"abcdefgh")
                store._may_return = may_return
                store.settled(settled)
                store.commit(8)
                assert len(store._blocks) == kept
    monkeypatch.setattr(spool, "_KEPT_SEGMENTS", 3)
    store = filled(on_disk(), *"abcdefgh")
    store.commit(store.next)
    assert len(store._blocks) == 3


def test_only_rows_unsettled_at_new_channel_may_be_redelivered(on_disk):
    store = filled(on_disk(), "ab")
    store.new_channel()
    assert store._may_return == 2
    filled(store, "cd")
    store.settled(4)
    store.settled(1)
    store.new_channel()
    assert store._may_return == 2
    filled(store, "e")
    store.new_channel()
    assert store._may_return == 5


def test_spool_dir_option_creates_local_folder_and_refuses_other_paths(tmp_path):
    with cases() as case:
        for given, found in [
            (str(tmp_path / "a" / "b"), tmp_path / "a" / "b"),
            (f"file:{tmp_path}/c", tmp_path / "c"),
            (f"file://{tmp_path}/d", tmp_path / "d"),
        ]:
            with case(given):
                assert spool._path_of(given) == found
                assert found.is_dir()
        (tmp_path / "file").touch()
        for given, text in [
            ("s3://bucket/x", "spoolDir is 's3://bucket/x'; it has to be a folder of the driver's own file"),
            (f"{tmp_path}/file/x", f"cannot make the spool's folder {tmp_path}/file/x: Not a directory"),
        ]:
            with case(given), pytest.raises(SpoolError) as caught:
                spool._path_of(given)
            assert str(caught.value).startswith(text)


def test_spool_folder_lists_only_segments_and_removes_temporary_files(tmp_path):
    folder = SpoolFolder(tmp_path, sync=False)
    batch = pa.RecordBatch.from_pydict({"body": [b"1", b"2"]})
    for first in (20, 3, 100):
        found = folder.write(first, batch)
        path = tmp_path / f"{first:020d}-2.arrow"
        assert (found.path, found.first, found.end, found.broken) == (str(path), first, first + 2, None)
        assert found.size == path.stat().st_size
    (tmp_path / f"{7:020d}-3.arrow").write_bytes((tmp_path / f"{3:020d}-2.arrow").read_bytes())
    for name in ("x.tmp", "x.arrow", "lock"):
        (tmp_path / name).touch()
    found_again = folder.segments()
    assert [(each.first, each.end) for each in found_again] == [(3, 5), (7, 10), (20, 22), (100, 102)]
    assert [each.broken for each in found_again] == [None, "it has 2 rows, and 3 by its name", None, None]
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".arrow"} == {"lock"}
    assert found_again[0].load() == batch
    folder.remove([*found_again[:1], *found_again[:2]])
    assert [each.first for each in folder.segments()] == [20, 100]


# --- tasks ------------------------------------------------------------------------------------------------


def test_pieces_are_cut_into_tasks_of_one_size(monkeypatch):
    """By rows where they stay in their files, and also by bytes where tasks carry them."""
    monkeypatch.setattr(partitions, "_TASK_ROWS", 10)
    monkeypatch.setattr(partitions, "_TASK_BYTES", 100)

    def block(rows, size):
        return Block(0, rows, size)

    a, b = block(20, 40), block(10, 300)
    large, small = block(2, 100), block(8, 8)
    with cases() as case:
        for pieces, least, most, expected in [
            ([], 4, None, []),
            ([(a, 5, 5)], 4, None, []),
            ([(a, 0, 9)], 4, None, [[(0, 9)]]),
            ([(a, 0, 20)], 4, None, [[(0, 10)], [(10, 20)]]),
            ([(a, 0, 20)], 1, None, [[(0, 20)]]),
            ([(a, 0, 20)], 0, None, [[(0, 20)]]),
            ([(a, 5, 20), (b, 0, 10)], 2, None, [[(5, 18)], [(18, 20), (0, 10)]]),
            ([(b, 0, 10)], 9, None, [[(0, 4)], [(4, 8)], [(8, 10)]]),
            ([(b, 0, 10)], 1, 100, [[(0, 3)], [(3, 4), (4, 6)], [(6, 8), (8, 9)], [(9, 10)]]),
            ([(b, 0, 10)], 1, 60, [[(0, 2)], [(2, 4)], [(4, 6)], [(6, 8)], [(8, 10)]]),
            ([(b, 0, 3)], 1, 10, [[(0, 1)], [(1, 2)], [(2, 3)]]),
            ([(a, 0, 20)], 1, 999, [[(0, 20)]]),
            ([(large, 0, 2), (small, 0, 8)], 1, 50, [[(0, 1)], [(1, 2)], [(0, 4)], [(4, 8)]]),
        ]:
            with case(pieces, least, most):
                found = cut([Piece(*each) for each in pieces], least, most)
                shown = [[(piece.start, piece.stop) for piece in task] for task in found]
                if most == 100:
                    assert [stop for task in shown for _, stop in task][-1] == 10
                    assert all(sum(stop - start for start, stop in task) <= 4 for task in shown)
                else:
                    assert shown == expected


def test_stored_columns_are_picked_and_missing_columns_are_null_or_refused():
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["x", "y"])], names=["a", "b"])
    error = pa.field("_error", pa.string())
    a, b, c = pa.field("a", pa.int64()), pa.field("b", pa.string()), pa.field("c", pa.string())
    assert pick(batch, pa.schema([b, a, error]), False).to_pydict() == {
        "b": ["x", "y"],
        "a": [1, 2],
        "_error": [None, None],
    }
    wrong = pa.field("a", pa.string())
    found = pick(batch, pa.schema([wrong, c]), True)
    assert (found.to_pydict(), found.schema.types) == ({"a": [None] * 2, "c": [None] * 2}, [pa.string()] * 2)
    with pytest.raises(SpoolError, match="stored with no column 'c': they came when"):
        pick(batch, pa.schema([a, c]), False)
    with pytest.raises(SpoolError, match="stored with int64, not string, as column 'a'"):
        pick(batch, pa.schema([wrong]), False)
    wrong_error = pa.RecordBatch.from_arrays([pa.array([1])], names=["_error"])
    with pytest.raises(SpoolError, match="int64, not string, as column '_error'"):
        pick(wrong_error, pa.schema([error]), False)


def test_unreadable_or_missing_spool_state_is_refused(tmp_path):
    folder = SpoolFolder(tmp_path, sync=False)
    path = tmp_path / "state.json"
    with cases() as case:
        for state, said in [
            (b"{", f"cannot read {path}: Expecting"),
            (b'{"format": 1, "spool": "x"}', f"cannot read {path}: 'committed'"),
            (b"[]", f"cannot read {path}: list indices"),
            (b'{"format": 1, "spool": "x", "committed": "y"}', f"cannot read {path}: invalid literal"),
            (b'{"format": 2}', f"the spool in {tmp_path} has format 2, this version reads 1"),
        ]:
            with case(state):
                path.write_bytes(state)
                with pytest.raises(SpoolError) as caught:
                    folder.state()
                assert str(caught.value).startswith(said)
    path.write_bytes(b'{"format": 1, "spool": 7, "committed": "3"}')
    assert folder.state() == ("7", 3)
    path.unlink()
    folder.write(0, pa.RecordBatch.from_pydict({"body": [b"1"]}))
    with pytest.raises(SpoolError, match=r"has segments of a spool, and its state\.json is gone; bring it"):
        folder.state()
    for segment in folder.segments():
        Path(segment.path).unlink()
    found = folder.state()
    assert found[1] == 0
    assert folder.state() == found
