"""Statements as findings and plans quote them: nothing that authenticates an account."""

from __future__ import annotations

import pytest

from topology.readings.hidden_passwords import without_secrets


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        (
            "CREATE USER 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS 'S3CRET' ACCOUNT LOCK",
            "CREATE USER 'a'@'%' IDENTIFIED (hidden)",
        ),
        ("CREATE USER a identified by 'S3\\'CRET', b", "CREATE USER a identified (hidden)"),
        ("SET PASSWORD FOR a = 'S3CRET'", "SET PASSWORD (hidden)"),
        ("UPDATE u SET p = PASSWORD('S3CRET')", "UPDATE u SET p = PASSWORD (hidden)"),
        ("UPDATE u SET `password` = 'S3CRET'", "UPDATE u SET `password (hidden)"),
        (
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'S3CRET')",
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD (hidden)",
        ),
        (
            "CREATE TABLE f (a INT) ENGINE=FEDERATED CONNECTION='mysql://u:S3CRET@h/d/t'",
            "CREATE TABLE f (a INT) ENGINE=FEDERATED CONNECTION (hidden)",
        ),
        ("ALTER USER a IDENTIFIED BY 'S3\nCRET'", "ALTER USER a IDENTIFIED (hidden)"),
        ("CREATE USER \ufffd", "CREATE USER \ufffd"),
        ("CREATE TABLE u (password TEXT, n INT)", "CREATE TABLE u (password TEXT, n INT)"),
        ("ALTER USER a PASSWORD EXPIRE", "ALTER USER a PASSWORD EXPIRE"),
    ],
)
def test_no_listing_shows_a_password(sql: str, shown: str) -> None:
    assert without_secrets(sql) == without_secrets(sql.encode()) == shown


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert without_secrets(b"CREATE VIEW \xff AS SELECT 1") == "CREATE VIEW \ufffd AS SELECT 1"
