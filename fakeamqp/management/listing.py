"""Lists: pages, sorting, columns and filters by name, as the parameters after the question mark ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.management.errors import Refused, bad_request
from fakeamqp.model.patterns import MOST_STEPS, InvalidPattern, compiled

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall

_PAGE_SIZE = 100
_LARGEST_PAGE = 500
_MOST_STEPS = 100 * MOST_STEPS
"""Steps of a pattern on all names of a list: some seconds."""


def listed(call: ApiCall, rows: Sequence[dict[str, Any]], order: Sequence[str] = ("vhost", "name")) -> object:
    """The answer of a list: all rows, or with the parameter `page` one page of them.

    Args:
        call: the request.
        rows: all rows that the user may see.
        order: the columns by which rows are sorted, unless the parameter `sort` names others.

    Raises:
        Refused: 400: the page does not exist, or its parameters are invalid.
    """
    page = _page(call)
    total = len(rows)
    if page is not None:
        rows = _filtered(call, rows)
    rows = _sorted(call, rows, order)
    if page is None:
        return [columns_of(call, row) for row in rows]
    number, size = page
    count = -(-len(rows) // size)
    if number > max(count, 1):
        raise Refused(
            400,
            "page_out_of_range",
            f"Page out of range, page: {number} page size: {size}, len: {len(rows)}",
        )
    items = [columns_of(call, row) for row in rows[(number - 1) * size : number * size]]
    return {
        "filtered_count": len(rows),
        "item_count": len(items),
        "items": items,
        "page": number,
        "page_count": count,
        "page_size": size,
        "total_count": total,
    }


def columns_of(call: ApiCall, row: dict[str, Any]) -> dict[str, Any]:
    """A row with the columns that the request asks for, such as "name" and "message_stats.publish"."""
    wanted = call.query.get("columns")
    return row if not wanted else _chosen(row, _columns(wanted))


_Columns: TypeAlias = "dict[str, _Columns | None]"
"""The columns by name, each with those inside of it; None for all of them."""


@lru_cache(maxsize=16)
def _columns(wanted: str) -> _Columns:
    found: _Columns = {}
    for path in wanted.split(","):
        *outer, last = path.split(".")
        columns = found
        for name in outer:
            inner = columns.setdefault(name, {})
            if inner is None:
                break
            columns = inner
        else:
            columns[last] = None
    return found


def _chosen(row: Mapping[str, Any], columns: _Columns) -> dict[str, Any]:
    """Part of a row, in a time that the row limits, however many columns are asked for."""
    chosen: dict[str, Any] = {}
    for name, value in row.items():
        if name not in columns:
            continue
        inner = columns[name]
        # Arguments are one value, whatever part of them is asked for (measured).
        if inner is None or not isinstance(value, Mapping) or name == "arguments":
            chosen[name] = value
        else:
            chosen[name] = _chosen(value, inner)
    return chosen


def _page(call: ApiCall) -> tuple[int, int] | None:
    asked = call.query.get("page")
    if asked is None:
        return None
    try:
        number, size = int(asked), int(call.query.get("page_size") or _PAGE_SIZE)
    except ValueError:
        raise bad_request("Pagination parameters are invalid") from None
    if number < 1 or not 1 <= size <= _LARGEST_PAGE:
        raise Refused(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {number}, page size {size}",
        )
    return number, size


def _filtered(call: ApiCall, rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    wanted = call.query.get("name")
    if not wanted:
        return rows
    if call.query.get("use_regex") != "true":
        wanted = wanted.lower()
        return [row for row in rows if wanted in str(row.get("name", "")).lower()]
    try:
        pattern = compiled(f"(?i){wanted}")
    except InvalidPattern:
        if call.choices.ignores_bad_filters:
            return []
        raise bad_request("Pagination parameters are invalid") from None
    kept: list[dict[str, Any]] = []
    steps = 0
    for row in rows:
        fits, taken = pattern.run(str(row.get("name", "")))
        steps += taken
        if steps > _MOST_STEPS:
            raise bad_request("The search with this pattern takes too long: give a simpler one.")
        if fits:
            kept.append(row)
    return kept


def _sorted(call: ApiCall, rows: Sequence[dict[str, Any]], order: Sequence[str]) -> Sequence[dict[str, Any]]:
    asked = call.query.get("sort")
    paths = [name.split(".") for name in (order if not asked else [asked])]
    backwards = call.query.get("sort_reverse") == "true"
    return sorted(rows, key=lambda row: [_place(row, path) for path in paths], reverse=backwards)


def _place(row: Mapping[str, Any], path: Sequence[str]) -> tuple[int, float, str]:
    """Where a row stands by one column, which may be a path of names. Numbers come before other values."""
    value: Any = row
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            break
    if isinstance(value, (int, float)):
        return 0, value, ""
    if isinstance(value, str):
        return 2, 0, value
    return 1, 0, "" if value is None else json.dumps(value, sort_keys=True)
