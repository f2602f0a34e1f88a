"""Every type of column and its edge values, and what a server is asked to prove a reading by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

LONG_ENUM = ",".join(f"'m{number}'" for number in range(1, 301))


class Oracle(Enum):
    """SQL whose answer is compared: of the column, as text."""

    TEXT = "CAST({} AS CHAR CHARACTER SET utf8)"
    HEX = "HEX({})"
    NUMBER = "CAST({} | 0 AS CHAR)"
    DOUBLE = "{} + 0e0"  # not as text: CAST leaves the last digit out


@dataclass(frozen=True, slots=True)
class Kind:
    """One column and its values, as SQL. NULL is tried with every one of them."""

    name: str
    type: str
    oracle: Oracle
    values: tuple[str, ...]


def _integers(bits: int, name: str) -> tuple[Kind, Kind]:
    half = 1 << (bits - 1)
    signed = tuple(str(value) for value in (-half, -1, 0, 1, half - 1))
    unsigned = tuple(str(value) for value in (0, 1, half - 1, half, 2 * half - 1))
    return (
        Kind(f"i{bits}", name, Oracle.TEXT, signed),
        Kind(f"u{bits}", f"{name} UNSIGNED", Oracle.TEXT, unsigned),
    )


_ZERO_DATES = ("'0000-00-00'", "'2024-00-00'", "'2024-02-00'", "'1000-01-01'", "'9999-12-31'")

COMMON: tuple[Kind, ...] = (
    *_integers(8, "TINYINT"),
    *_integers(16, "SMALLINT"),
    *_integers(24, "MEDIUMINT"),
    *_integers(32, "INT"),
    *_integers(64, "BIGINT"),
    Kind("f", "FLOAT", Oracle.DOUBLE, ("0", "1.1", "-3.4028234e38", "1.1754944e-38", "16777217")),
    Kind("fd", "FLOAT(7,3)", Oracle.DOUBLE, ("1.1", "-9999.999", "0.001")),
    Kind(
        "o",
        "DOUBLE",
        Oracle.DOUBLE,
        (
            "0",
            "0.1",
            "-1.7976931348623157e308",
            "2.2250738585072014e-308",
            "1e15",
            "1e16",
            "123456789012345678",
            "1e-14",
            "1e-15",
        ),
    ),
    Kind(
        "d",
        "DECIMAL(10,3)",
        Oracle.TEXT,
        ("0", "0.001", "-0.001", "9999999.999", "-9999999.999", "-1.5"),
    ),
    Kind(
        "dx",
        "DECIMAL(65,30)",
        Oracle.TEXT,
        (
            "0",
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "-0.000000000000000000000000000001",
            "123456789.000000001",
        ),
    ),
    Kind("d0", "DECIMAL(18,0)", Oracle.TEXT, ("0", "-999999999999999999", "1000000000")),
    Kind("df", "DECIMAL(9,9)", Oracle.TEXT, ("0", "-0.999999999", "0.000000001")),
    Kind("b1", "BIT(1)", Oracle.NUMBER, ("0", "1")),
    Kind("b11", "BIT(11)", Oracle.NUMBER, ("0", "b'10000000001'", "b'11111111111'", "255")),
    Kind(
        "b64", "BIT(64)", Oracle.NUMBER, ("0", "1", "18446744073709551615", "9223372036854775808")
    ),
    Kind("y", "YEAR", Oracle.TEXT, ("'0000'", "1901", "2155", "2024")),
    Kind("da", "DATE", Oracle.TEXT, (*_ZERO_DATES, "'2023-02-31'")),
    Kind("t0", "TIME", Oracle.TEXT, ("'00:00:00'", "'-838:59:59'", "'838:59:59'", "'-00:00:01'")),
    *(
        Kind(
            f"t{digits}",
            f"TIME({digits})",
            Oracle.TEXT,
            (
                "'0'",
                "'-838:59:58.999999'",
                "'838:59:58.999999'",
                "'-00:00:00.1'",
                "'-00:00:00.999999'",
                "'-10:00:00.000001'",
                "'12:34:56.123456'",
            ),
        )
        for digits in range(1, 7)
    ),
    Kind(
        "dt0",
        "DATETIME",
        Oracle.TEXT,
        (*_ZERO_DATES, "'2024-02-29 23:59:59'", "'2023-02-31 01:02:03'"),
    ),
    *(
        Kind(
            f"dt{digits}",
            f"DATETIME({digits})",
            Oracle.TEXT,
            (
                "'0000-00-00'",
                "'2024-02-29 23:59:59.123456'",
                "'9999-12-31 23:59:59.1'",
                "'1000-01-01 00:00:00.000009'",
            ),
        )
        for digits in range(1, 7)
    ),
    Kind(
        "ts0",
        "TIMESTAMP NULL",
        Oracle.TEXT,
        ("'0000-00-00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"),
    ),
    Kind(
        "ts3",
        "TIMESTAMP(3) NULL",
        Oracle.TEXT,
        ("'0000-00-00'", "'2024-02-29 23:59:59.123'", "'2038-01-19 03:14:07.499'"),
    ),
    Kind("ts6", "TIMESTAMP(6) NULL", Oracle.TEXT, ("'0000-00-00'", "'1970-01-01 00:00:01.000001'")),
    Kind(
        "c",
        "CHAR(10) CHARACTER SET utf8",
        Oracle.HEX,
        ("''", "'ü€'", "'trailing  '", "REPEAT('€', 10)"),
    ),
    Kind(
        "cl",
        "CHAR(255) CHARACTER SET latin1",
        Oracle.HEX,
        ("''", "'üß'", "REPEAT('é', 255)", "0x8081"),
    ),
    Kind(
        "c4",
        "CHAR(255) CHARACTER SET utf8mb4",
        Oracle.HEX,
        ("'a'", "REPEAT(CONVERT(0xF09F9880 USING utf8mb4), 255)"),
    ),
    Kind(
        "v",
        "VARCHAR(20) CHARACTER SET utf8mb4",
        Oracle.HEX,
        ("''", "CONVERT(0xF09F9880 USING utf8mb4)", "'a\\\\b\\'c\\nd'", "'trailing  '"),
    ),
    Kind(
        "vl",
        "VARCHAR(400) CHARACTER SET latin1",
        Oracle.HEX,
        ("'ü'", "REPEAT('x', 400)", "_latin1 0x00FF"),
    ),
    Kind("vs", "VARCHAR(20) CHARACTER SET sjis", Oracle.HEX, ("_sjis 0x93FA967B", "'a'")),
    Kind("vu", "VARCHAR(20) CHARACTER SET ucs2", Oracle.HEX, ("'ü'", "'plain'")),
    Kind("vg", "VARCHAR(20) CHARACTER SET greek", Oracle.HEX, ("_greek 0xE1E2E3",)),
    Kind("v8", "VARCHAR(20) CHARACTER SET hp8", Oracle.HEX, ("_hp8 0xE1E2E3",)),
    Kind(
        "bi", "BINARY(5)", Oracle.HEX, ("''", "x'00'", "x'6100000000'", "x'ffffffffff'", "'a    '")
    ),
    Kind("vb", "VARBINARY(400)", Oracle.HEX, ("''", "x'00ff00'", "REPEAT(x'00', 400)")),
    Kind("tt", "TINYTEXT CHARACTER SET latin1", Oracle.HEX, ("''", "'ü'")),
    Kind("tx", "TEXT CHARACTER SET utf8mb4", Oracle.HEX, ("''", "REPEAT('ü', 1000)")),
    Kind("mt", "MEDIUMTEXT CHARACTER SET utf8", Oracle.HEX, ("REPEAT('ü', 40000)",)),
    Kind("lt", "LONGTEXT CHARACTER SET utf8", Oracle.HEX, ("'x'",)),
    Kind("tb", "TINYBLOB", Oracle.HEX, ("x'00ff'",)),
    Kind("bb", "BLOB", Oracle.HEX, ("x'00ff'",)),
    Kind("lb", "LONGBLOB", Oracle.HEX, ("''", "REPEAT(x'00ff', 5000)")),
    Kind(
        "e", "ENUM('x','ü','','it''s') CHARACTER SET utf8mb4", Oracle.NUMBER, ("1", "2", "3", "4")
    ),
    Kind("el", f"ENUM({LONG_ENUM})", Oracle.NUMBER, ("1", "255", "256", "300")),
    Kind("s", "SET('p','q','r')", Oracle.NUMBER, ("0", "1", "5", "7")),
    Kind(
        "sl",
        "SET(" + ",".join(f"'s{n}'" for n in range(64)) + ")",
        Oracle.NUMBER,
        ("0", "18446744073709551615", "9223372036854775808"),
    ),
)

GEOMETRY_56 = (
    Kind(
        "g",
        "GEOMETRY",
        Oracle.HEX,
        ("GeomFromText('POINT(1 2)', 5)", "GeomFromText('LINESTRING(0 0, 1 1, 2 2)')"),
    ),
    Kind("gp", "POINT", Oracle.HEX, ("GeomFromText('POINT(1.5 -2)')",)),
)
GEOMETRY_97 = (
    Kind(
        "g",
        "GEOMETRY",
        Oracle.HEX,
        ("ST_GeomFromText('POINT(1 2)', 4326)", "ST_GeomFromText('LINESTRING(0 0, 1 1, 2 2)')"),
    ),
    Kind("gp", "POINT", Oracle.HEX, ("ST_GeomFromText('POINT(1.5 -2)')",)),
)
_SCALARS = (
    "'null'",
    "'true'",
    "'false'",
    "'0'",
    "'-1'",
    "'32767'",
    "'-32769'",
    "'65536'",
    "'2147483648'",
    "'-9223372036854775808'",
    "'18446744073709551615'",
    "'1.0'",
    "'1e100'",
    "'-0.5'",
    "'1e15'",
    '\'"ü\\\\u0001 \\\\""\'',
    "'\"\"'",
    "'[]'",
    "'{}'",
    "CAST(CAST('1.10' AS DECIMAL(10,2)) AS JSON)",
    "CAST(CAST('-99999999999999999999.5' AS DECIMAL(65,30)) AS JSON)",
    "CAST(CAST('2024-02-29' AS DATE) AS JSON)",
    "CAST(CAST('-838:59:58.5' AS TIME(6)) AS JSON)",
    "CAST(CAST('2024-02-29 23:59:59.000001' AS DATETIME(6)) AS JSON)",
    "CAST(TIMESTAMP'2024-02-29 01:02:03' AS JSON)",
    "CAST(x'00ff' AS JSON)",
    "CAST(b'101' AS JSON)",
    "CAST(CAST(5 AS UNSIGNED) AS JSON)",
    "CAST(CAST(70000 AS UNSIGNED) AS JSON)",
    "CAST(CAST(2024 AS YEAR) AS JSON)",
    "CAST(ST_GeomFromText('POINT(1 2)') AS JSON)",
)
ONLY_97 = (
    Kind(
        "j",
        "JSON",
        Oracle.TEXT,
        (
            *_SCALARS,
            "JSON_OBJECT('a', JSON_ARRAY(1, 'x', NULL, TRUE, 1.5, JSON_OBJECT()), 'bb', -70000, 'ü', 3000000000)",
            "JSON_OBJECT('k', REPEAT('long ', 20000), 'l', 70000, 'm', -5, 'n', JSON_ARRAY(70000, TRUE))",
            "JSON_ARRAY(REPEAT('x', 127), REPEAT('y', 128), REPEAT('z', 16384))",
        ),
    ),
    Kind("ve", "VECTOR(3)", Oracle.HEX, ("STRING_TO_VECTOR('[1,-2.5,3e10]')",)),
)

KINDS_56 = (*COMMON, *GEOMETRY_56)
KINDS_97 = (*COMMON, *GEOMETRY_97, *ONLY_97)
