"""Statements that no script executes again, because no guard can check their effect.

A row is redone only if it is as the transaction found it. A statement applies to any state:
TRUNCATE, DROP or UPDATE remove what was committed on the server since, without an error. Only a
statement that adds a named object stops if the name already exists.
"""

import re

_I = re.IGNORECASE
# Inside a transaction of rows.
_SAVEPOINT = re.compile(rb"\s*(?:ROLLBACK\s+TO|(?:RELEASE\s+)?SAVEPOINT)\b", _I)
_CREATES = re.compile(rb"\s*CREATE\s+(?!OR\b|TEMPORARY\b)(?P<what>\w+)", _I)
# The new table would get the current rows.
_OF_ROWS = re.compile(rb"\bSELECT\b|\bVALUES\s+ROW\b|\bTABLE\b.*\bTABLE\b", _I | re.DOTALL)
_GRANTS = re.compile(rb"\s*GRANT\b", _I)
_PASSWORD = re.compile(rb"\bIDENTIFIED\b", _I)  # before 8.0 a GRANT sets it
_ADDS = re.compile(rb"\s*ALTER\s+TABLE\s+(?:`[^`]*`|[\w$.])+\s+ADD\b", _I)
_ALTERS_MORE = re.compile(
    rb"\b(?:DROP|CHANGE|MODIFY|ALTER|RENAME|CONVERT|TRUNCATE|REORGANIZE|COALESCE|EXCHANGE|REMOVE"
    rb"|DISCARD|IMPORT|ORDER|ENGINE)\b|/\*!",
    _I,
)


def checks_nothing(sql: bytes) -> bool:
    """Return whether a statement may change or remove more than it originally did."""
    if _SAVEPOINT.match(sql):
        return False
    if created := _CREATES.match(sql):
        return created["what"].upper() == b"TABLE" and bool(_OF_ROWS.search(sql))
    if _GRANTS.match(sql):
        return bool(_PASSWORD.search(sql))
    if added := _ADDS.match(sql):
        return bool(_ALTERS_MORE.search(sql, added.end()))
    return True
