"""Writes a geometry as readable text (WKT).

1. A column contains an SRID and WKB (reference manual, "Supported Spatial Data Formats", "Internal
   Geometry Storage Format"): byte order, type, and points of two doubles each, or geometries.
2. Coordinates are written in the stored order, x before y. In a geographic system this means the
   longitude first, but ST_AsText swaps them. So the SRID is written in front, as in EWKT.
3. Bytes that are not such a geometry have no text.
"""

import math
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from binlog.cursor import Cursor, MalformedBody
from binlog.rows.number_text import double_text

# A more deeply nested value is not realistic, and is shown as bytes.
_DEPTH_MAX = 100
_LITTLE_ENDIAN = 1
_POINT, _LINE, _POLYGON, _POINTS, _LINES, _POLYGONS, _COLLECTION = range(1, 8)
_NAMES = MappingProxyType(
    {
        _POINT: "POINT",
        _LINE: "LINESTRING",
        _POLYGON: "POLYGON",
        _POINTS: "MULTIPOINT",
        _LINES: "MULTILINESTRING",
        _POLYGONS: "MULTIPOLYGON",
        _COLLECTION: "GEOMETRYCOLLECTION",
    }
)
_MEMBERS = MappingProxyType({_POINTS: _POINT, _LINES: _LINE, _POLYGONS: _POLYGON})


def geometry_text(data: bytes) -> str | None:
    """Write a column's value: `POINT(1 2)`, or `SRID=4326;POINT(2 1)`; None if it is invalid."""
    cursor = Cursor(data)
    try:
        srid = cursor.integer(4, "an SRID")
        kind = _kind(cursor)
        text = _NAMES[kind] + _content(cursor, kind, depth=0)
    except MalformedBody:
        return None
    if cursor.remaining:
        return None
    return f"SRID={srid};{text}" if srid else text


def _kind(cursor: Cursor) -> int:
    order = cursor.integer(1, "a byte order")
    kind = cursor.integer(4, "the type of a geometry")
    if order != _LITTLE_ENDIAN or kind not in _NAMES:
        raise cursor.fail(f"expected a geometry, found type {kind} in byte order {order}")
    return kind


def _content(cursor: Cursor, kind: int, *, depth: int) -> str:
    if kind == _POINT:
        return f"({_point(cursor)})"
    if kind == _COLLECTION:
        if depth == _DEPTH_MAX:
            raise cursor.fail(f"a geometry nested deeper than {_DEPTH_MAX}")
        return _listed(cursor, lambda each: _member(each, depth=depth + 1))
    return _listed(cursor, _READERS[kind])


def _member(cursor: Cursor, *, depth: int) -> str:
    kind = _kind(cursor)
    return _NAMES[kind] + _content(cursor, kind, depth=depth)


def _listed(cursor: Cursor, read: Callable[[Cursor], str]) -> str:
    """Read a count and that many items. Each takes at least a byte, which limits the count."""
    count = cursor.integer(4, "a number of items")
    if count > cursor.remaining:
        raise cursor.fail(f"{count} items in {cursor.remaining} bytes")
    return f"({','.join(read(cursor) for _ in range(count))})" if count else " EMPTY"


def _point(cursor: Cursor) -> str:
    x, y = struct.unpack("<2d", cursor.take(16, "a point"))
    if not (math.isfinite(x) and math.isfinite(y)):
        raise cursor.fail(f"expected a point, found {x}, {y}")
    return f"{double_text(x)} {double_text(y)}"


def _ring(cursor: Cursor) -> str:
    return _listed(cursor, _point)


def _of_kind(kind: int) -> Callable[[Cursor], str]:
    def read(cursor: Cursor) -> str:
        found = _kind(cursor)
        if found != kind:
            raise cursor.fail(f"expected a {_NAMES[kind]}, found a {_NAMES[found]}")
        return _content(cursor, kind, depth=0)

    return read


_READERS: Mapping[int, Callable[[Cursor], str]] = MappingProxyType(
    {
        _LINE: _point,
        _POLYGON: _ring,
        **{kind: _of_kind(member) for kind, member in _MEMBERS.items()},
    }
)
