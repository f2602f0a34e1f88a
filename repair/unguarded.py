"""Statements that are not done again by script: what they would do is checked by nothing.

A row is done again only where it is as the transaction found it. A statement finds whatever is
there: TRUNCATE, DROP or UPDATE take away what was committed on the server since, without an error.
Only what adds something by a name stops where the name is there already.
"""

import re

_I = re.IGNORECASE
# Inside a transaction of rows.
_SAVEPOINT = re.compile(rb"\s*(?:ROLLBACK\s+TO|(?:RELEASE\s+)?SAVEPOINT)\b", _I)
_CREATES = re.compile(rb"\s*CREATE\s+(?!OR\b|TEMPORARY\b)(?P<what>\w+)", _I)
# The new table's rows would be those of today.
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
    """Return whether a statement may change or remove what it was not meant for."""
    if _SAVEPOINT.match(sql):
        return False
    if created := _CREATES.match(sql):
        return created["what"].upper() == b"TABLE" and bool(_OF_ROWS.search(sql))
    if _GRANTS.match(sql):
        return bool(_PASSWORD.search(sql))
    if added := _ADDS.match(sql):
        return bool(_ALTERS_MORE.search(sql, added.end()))
    return True
