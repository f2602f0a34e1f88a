"""Statements as findings and plans quote them: without passwords and what authenticates an account.

A server logs CREATE USER and its like with salt and hash, which is enough to guess a password, and
the error of an applier quotes the statement. Reports, stored snapshots and runbooks are passed
round; only a script that does the statement again needs them.
"""

import re

# All behind it is hidden: where such a text ends depends on the sql_mode of its session.
_SECRET = re.compile(
    r"(?:\bIDENTIFIED\b|\A\s*SET\s+PASSWORD\b|\bPASSWORD`?\s*(?=[=('\"])|\bCONNECTION\s*(?==))",
    re.IGNORECASE,
)


def without_secrets(sql: str | bytes) -> str:
    """Return a statement up to the first password, hash or address with a password."""
    if isinstance(sql, bytes):
        sql = sql.decode("utf-8", errors="replace")
    found = _SECRET.search(sql)
    if found is None:
        return sql
    word = re.match(r"\s*(?:SET\s+)?\w+", found[0])
    assert word is not None, "each alternative begins with a word"
    return f"{sql[: found.start()]}{word[0]} (hidden)"
