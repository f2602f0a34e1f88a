"""Pages of a list that changes while it is read.

The cursor of a page is the sort key of its last item. The next page begins behind that key, in the
list as it is then: an item that stays is neither left out nor shown twice, whatever came or went
before it. An offset could not promise that.
"""

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from gtid_audit.service.query_parameters import BadParameter

Item = TypeVar("Item")
SortKey: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Item]):
    """A part of a list. `next_cursor` is None on the last page."""

    items: Sequence[Item]
    total: int  # in the whole list
    next_cursor: str | None


def page_of(
    items: Sequence[Item],
    key_of: Callable[[Item], SortKey],
    *,
    shape: SortKey,
    cursor: str | None,
    limit: int,
) -> ListPage[Item]:
    """Return a page of items that are in order of their keys. Raises BadParameter.

    `shape` is any key: a cursor must have parts of the same types.
    """
    begin = 0
    if cursor is not None:
        begin = bisect_right(items, _key_from(cursor, shape), key=key_of)
    shown = items[begin : begin + limit]
    is_last = begin + limit >= len(items)
    return ListPage(shown, len(items), None if is_last else _cursor_from(key_of(shown[-1])))


def _cursor_from(key: SortKey) -> str:
    return base64.urlsafe_b64encode(json.dumps(key, ensure_ascii=False).encode()).decode()


def _key_from(cursor: str, shape: SortKey) -> SortKey:
    try:
        found: Any = json.loads(base64.b64decode(cursor.encode("ascii"), altchars=b"-_"))
    except (binascii.Error, ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or [type(each) for each in found] != [
        type(each) for each in shape
    ]:
        raise BadParameter("cursor: expected the next_cursor of an earlier page")
    return tuple(found)
