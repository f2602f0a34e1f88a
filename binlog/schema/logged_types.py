"""Maps SQL types to their type codes in a TABLE_MAP.

The codes are enum_field_types, include/field_types.h. Both directions are used: check.py checks
whether a definition fits the logged types, and metadata.py makes a definition from logged types.
"""

from collections.abc import Mapping
from types import MappingProxyType

from binlog.rows.images import DATETIME2, DOUBLE, FLOAT, JSON, TIME2, TIMESTAMP2

INTEGERS: Mapping[str, int] = MappingProxyType(
    {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 8, "mediumint": 9}
)
# Their metadata is empty, or only their size.
PLAIN: Mapping[str, int] = MappingProxyType(
    {"date": 10, "year": 13, "float": FLOAT, "double": DOUBLE, "json": JSON}
)
# Their metadata is the number of digits of their fraction.
FRACTIONAL: Mapping[str, int] = MappingProxyType(
    {"timestamp": TIMESTAMP2, "time": TIME2, "datetime": DATETIME2}
)
# Logged for tables that were not rebuilt since 5.5; these types have no fractions.
OF_OLD_TEMPORAL: Mapping[int, str] = MappingProxyType({7: "timestamp", 11: "time", 12: "datetime"})
# All are logged as BLOB, with this many length bytes: tinytext, text, mediumblob …
LENGTH_BYTES: Mapping[str, int] = MappingProxyType({"tiny": 1, "": 2, "medium": 3, "long": 4})
# All are logged as GEOMETRY; the index here is Field::geometry_type, sql/field.h.
GEOMETRIES = (
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
    *("multipolygon", "geomcollection"),
)
