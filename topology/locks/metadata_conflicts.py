"""Which metadata lock excludes which: the compatibility of MySQL's lock types.

A lock is requested for an object. On tables and other objects the types form the matrix below. On
scopes (the whole server, its commits, the backup lock, a schema) there are three types only. The
matrices say which *granted* types make a request wait; `sql/mdl.cc` has them as
`m_granted_incompatible`. A request that conflicts with no granted lock waits behind an earlier
request for a stronger one: an ALTER that waits makes later SELECTs wait.
"""

from typing import Final

# Types of performance_schema.metadata_locks; S, SH, SR, … in mdl.cc.
_SHARED: Final = "SHARED"
_HIGH_PRIO: Final = "SHARED_HIGH_PRIO"
_READ: Final = "SHARED_READ"
_WRITE: Final = "SHARED_WRITE"
_WRITE_LOW_PRIO: Final = "SHARED_WRITE_LOW_PRIO"
_UPGRADABLE: Final = "SHARED_UPGRADABLE"
_READ_ONLY: Final = "SHARED_READ_ONLY"
_NO_WRITE: Final = "SHARED_NO_WRITE"
_NO_READ_WRITE: Final = "SHARED_NO_READ_WRITE"
_EXCLUSIVE: Final = "EXCLUSIVE"
_INTENTION: Final = "INTENTION_EXCLUSIVE"

_WRITES: Final = frozenset({_WRITE, _WRITE_LOW_PRIO})
_ALL: Final = frozenset(
    {
        *(_SHARED, _HIGH_PRIO, _READ, _WRITE, _WRITE_LOW_PRIO),
        *(_UPGRADABLE, _READ_ONLY, _NO_WRITE, _NO_READ_WRITE, _EXCLUSIVE),
    }
)
# Requested type: the granted types of other sessions that it must wait for.
_OF_OBJECTS: Final[dict[str, frozenset[str]]] = {
    _SHARED: frozenset({_EXCLUSIVE}),
    _HIGH_PRIO: frozenset({_EXCLUSIVE}),
    _READ: frozenset({_NO_READ_WRITE, _EXCLUSIVE}),
    _WRITE: frozenset({_READ_ONLY, _NO_WRITE, _NO_READ_WRITE, _EXCLUSIVE}),
    _WRITE_LOW_PRIO: frozenset({_READ_ONLY, _NO_WRITE, _NO_READ_WRITE, _EXCLUSIVE}),
    _UPGRADABLE: frozenset({_UPGRADABLE, _NO_WRITE, _NO_READ_WRITE, _EXCLUSIVE}),
    _READ_ONLY: _WRITES | {_NO_READ_WRITE, _EXCLUSIVE},
    _NO_WRITE: _WRITES | {_UPGRADABLE, _NO_WRITE, _NO_READ_WRITE, _EXCLUSIVE},
    _NO_READ_WRITE: _ALL - {_SHARED, _HIGH_PRIO},
    _EXCLUSIVE: _ALL,
}
_OF_SCOPES: Final[dict[str, frozenset[str]]] = {
    _INTENTION: frozenset({_SHARED, _EXCLUSIVE}),
    _SHARED: frozenset({_INTENTION, _EXCLUSIVE}),
    _EXCLUSIVE: frozenset({_INTENTION, _SHARED, _EXCLUSIVE}),
}
# Object types of performance_schema.metadata_locks whose locks are scoped (MDL_scoped_lock).
SCOPES: Final = frozenset(
    {
        *("GLOBAL", "COMMIT", "BACKUP LOCK", "SCHEMA", "TABLESPACE", "RESOURCE_GROUPS"),
        *("FOREIGN KEY", "CHECK CONSTRAINT"),
    }
)


def waits_for(object_type: str, requested: str, granted: str) -> bool:
    """Return whether a request of one type waits for a lock of another type on the same object.

    A type that this version does not know is taken to conflict: the holder is then shown, rather
    than left out.
    """
    matrix = _OF_SCOPES if object_type in SCOPES else _OF_OBJECTS
    if requested not in matrix:
        return True
    known = granted in (_OF_SCOPES if object_type in SCOPES else _ALL)
    return not known or granted in matrix[requested]
