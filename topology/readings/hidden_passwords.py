"""Removal of passwords and other authentication data from the statements that reports quote.

A server logs CREATE USER and similar statements with salt and hash, which is enough to guess a
password. The error of an applier quotes the statement. Operators share reports, stored snapshots
and runbooks. Only a script that executes the statement again needs the secret.
"""

import re

# Everything after it is hidden: where such a text ends depends on the sql_mode of its session.
_SECRET = re.compile(
    r"(?:\bIDENTIFIED\b|\A\s*SET\s+PASSWORD\b|\bPASSWORD`?\s*(?=[=('\"])|\bCONNECTION\s*(?==))",
    re.IGNORECASE,
)


def without_secrets(sql: str | bytes) -> str:
    """Return a statement up to the first password, hash, or address with a password."""
    if isinstance(sql, bytes):
        sql = sql.decode("utf-8", errors="replace")
    found = _SECRET.search(sql)
    if found is None:
        return sql
    word = re.match(r"\s*(?:SET\s+)?\w+", found[0])
    assert word is not None, "each alternative begins with a word"
    return f"{sql[: found.start()]}{word[0]} (hidden)"
