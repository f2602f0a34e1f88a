"""The privileges that the statements of a script need: the only table, and the guard made from it.

1. A procedure lists the kinds of its statements. Each kind is a row here, with its privileges by
   version; the guard of the script and the list in the runbook come from the same rows.
2. A requirement holds if the account has one of its privileges. SUPER grants most of them until it
   is removed, and never TRANSACTION_GTID_TAG (6038, seen on 9.7.4).
3. information_schema.user_privileges shows an account its own global privileges. It shows those of
   its roles only if the account may read the grant tables (seen on 9.7.4). So the guard passes if a
   role is active. The script tries what it can try without effect, and the runbook has the list.

Sources: Reference Manual 5.6 to 9.7, "Privileges Provided by MySQL" and "System Variable
Privileges"; the texts of 1227 and 6038 on 9.7.4.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from binlog.quoting import quote_string
from repair.sql.channel_queries import tables_of_channels
from repair.sql.guard import Guard
from topology.readings.version import ServerVersion

_DYNAMIC_PRIVILEGES = ServerVersion(8, 0, 0)
_SESSION_VARIABLES = ServerVersion(8, 0, 14)  # SESSION_VARIABLES_ADMIN
_REPLICATION_APPLIER = ServerVersion(8, 0, 18)
_ROLES = ServerVersion(8, 0, 0)
# The variables of statement_sql.py, and since which version they need a privilege.
_RESTRICTED_VARIABLES = (
    (80013, "sql_require_primary_key"),
    (80030, "sql_generate_invisible_primary_key"),
)


class StatementKind(Enum):
    """Actions of a script for which an account needs privileges."""

    STEER_CHANNEL = "start, stop or change a channel"
    SET_GTID_NEXT = "set gtid_next"
    SET_TAGGED_GTID_NEXT = "set gtid_next to a tagged GTID"
    SET_GTID_PURGED = "set gtid_purged"
    SET_TAGGED_GTID_PURGED = "set gtid_purged to a set with tags"
    RESET_LOGS = "reset the binary logs"
    SET_SQL_LOG_BIN = "set sql_log_bin"
    SET_RESTRICTED = "set what only an administrator may set in a session"
    READ_CHANNELS = "read the state of channels"
    WRITE_ROWS = "read and write rows"
    READ_ROWS = "read rows"
    CHANGE_DEFINITION = "change a table"
    CREATE_VIEW = "create a view"
    CALL_SERVICE = "call a procedure of the service"


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One of these privileges is needed, on a table or (None) on the whole server."""

    one_of: tuple[str, ...]
    table: str | None = None

    def __str__(self) -> str:
        return " or ".join(self.one_of) + (f" on {self.table}" if self.table else "")


def _admin(*current: str) -> Callable[[ServerVersion], tuple[Requirement, ...]]:
    """Return a global privilege that was SUPER before 8.0."""
    return lambda version: (
        Requirement((*current, "SUPER") if version >= _DYNAMIC_PRIVILEGES else ("SUPER",)),
    )


def _session_variable(version: ServerVersion) -> tuple[Requirement, ...]:
    if version < _DYNAMIC_PRIVILEGES:
        return (Requirement(("SUPER",)),)
    names = ["SYSTEM_VARIABLES_ADMIN"]
    if version >= _SESSION_VARIABLES:
        names.append("SESSION_VARIABLES_ADMIN")
    return (Requirement((*names, "SUPER")),)


def _gtid_next(version: ServerVersion) -> tuple[Requirement, ...]:
    [requirement] = _session_variable(version)
    if version < _REPLICATION_APPLIER:
        return (requirement,)
    return (Requirement(("REPLICATION_APPLIER", *requirement.one_of)),)


def _tagged_gtid_next(version: ServerVersion) -> tuple[Requirement, ...]:
    """Return what a tag needs: neither SUPER nor TRANSACTION_GTID_TAG alone is enough."""
    [requirement] = _gtid_next(version)
    others = tuple(name for name in requirement.one_of if name != "SUPER")
    return (Requirement(("TRANSACTION_GTID_TAG",)), Requirement(others))


def _tagged_gtid_purged(_version: ServerVersion) -> tuple[Requirement, ...]:
    return (Requirement(("TRANSACTION_GTID_TAG",)), Requirement(("SYSTEM_VARIABLES_ADMIN",)))


def _read_channels(version: ServerVersion) -> tuple[Requirement, ...]:
    return (Requirement(("SELECT",), tables_of_channels(version)),)


_TABLES_OF_ROWS = "the tables of the rows"
_SERVICE = "the service's procedures in mysql"


def _write_rows(_version: ServerVersion) -> tuple[Requirement, ...]:
    """Return what the rows need; the statements' own guard checks whether triggers are visible."""
    names = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRIGGER")
    return tuple(Requirement((name,), _TABLES_OF_ROWS) for name in names)


def _change_definition(_version: ServerVersion) -> tuple[Requirement, ...]:
    """Return what ALTER TABLE and LOCK TABLES need."""
    names = ("ALTER", "CREATE", "INDEX", "INSERT", "LOCK TABLES", "SELECT")
    return tuple(Requirement((name,), "the table") for name in names)


def _create_view(version: ServerVersion) -> tuple[Requirement, ...]:
    """Return what CREATE VIEW with the definer of the source needs; the guard is the statement."""
    definer = ("SET_ANY_DEFINER", "SET_USER_ID", "SUPER") if version >= _ROLES else ("SUPER",)
    return (
        Requirement(("CREATE VIEW",), "the schema of the view"),
        Requirement(("SELECT",), "the tables of the view"),
        Requirement(definer, "the server, for another definer"),
    )


PRIVILEGES: Mapping[StatementKind, Callable[[ServerVersion], tuple[Requirement, ...]]] = {
    StatementKind.STEER_CHANNEL: _admin("REPLICATION_SLAVE_ADMIN"),
    StatementKind.SET_GTID_NEXT: _gtid_next,
    StatementKind.SET_TAGGED_GTID_NEXT: _tagged_gtid_next,
    StatementKind.SET_GTID_PURGED: _admin("SYSTEM_VARIABLES_ADMIN"),
    StatementKind.SET_TAGGED_GTID_PURGED: _tagged_gtid_purged,
    StatementKind.RESET_LOGS: lambda _version: (Requirement(("RELOAD",)),),
    StatementKind.SET_SQL_LOG_BIN: _session_variable,
    StatementKind.SET_RESTRICTED: _session_variable,
    StatementKind.READ_CHANNELS: _read_channels,
    StatementKind.WRITE_ROWS: _write_rows,
    StatementKind.CHANGE_DEFINITION: _change_definition,
    StatementKind.CREATE_VIEW: _create_view,
    StatementKind.READ_ROWS: lambda _version: (Requirement(("SELECT",), _TABLES_OF_ROWS),),
    StatementKind.CALL_SERVICE: lambda _version: (Requirement(("EXECUTE",), _SERVICE),),
}
assert set(PRIVILEGES) == set(StatementKind), "each kind has its row"


def requirements(kinds: Iterable[StatementKind], version: ServerVersion) -> tuple[Requirement, ...]:
    """Return what an account needs for statements of these kinds, each once, in order."""
    needed = {each for kind in kinds for each in PRIVILEGES[kind](version)}
    return tuple(sorted(needed, key=str))


def withheld_from(
    kinds: Iterable[StatementKind], version: ServerVersion, withheld: frozenset[str]
) -> Requirement | None:
    """Return what is needed of privileges that no account of a service has; None if nothing is."""
    needed = requirements(kinds, version)
    return next((each for each in needed if withheld.issuperset(each.one_of)), None)


def privilege_guards(
    name: str, kinds: Iterable[StatementKind], version: ServerVersion
) -> tuple[Guard, ...]:
    """Return the guards that the account has the global privileges of these kinds.

    Table privileges have their own guards (table_questions.py), which prepare a statement of each
    kind. If tables are only read, the guards that read them come before any change.
    """
    return tuple(
        Guard(
            has_privilege(each, version),
            f"{name}: this account needs {each}; grant it, then run this again; nothing was"
            " changed",
        )
        for each in requirements(kinds, version)
        if each.table is None
    )


def trial(kinds: Iterable[StatementKind]) -> tuple[str, ...]:
    """Return statements without effect that fail if the account may not set what a script sets.

    They detect a missing privilege if roles hide it from the guards.
    """
    lines = []
    wanted = set(kinds)
    if wanted & {StatementKind.SET_GTID_NEXT, StatementKind.SET_TAGGED_GTID_NEXT}:
        lines.append("SET SESSION gtid_next = 'AUTOMATIC';")
    if StatementKind.SET_RESTRICTED in wanted:
        lines += [
            f"/*!{since} SET SESSION {name} = @@SESSION.{name} */;"
            for since, name in _RESTRICTED_VARIABLES
        ]
    if StatementKind.SET_TAGGED_GTID_NEXT in wanted:
        lines.insert(0, "SET SESSION gtid_next = 'AUTOMATIC:trial';")
    return tuple(lines)


def writes_when_read_only(version: ServerVersion) -> Requirement:
    """Return what an account needs to write on a server whose read_only is ON."""
    [requirement] = _admin("CONNECTION_ADMIN")(version)
    return requirement


def has_privilege(requirement: Requirement, version: ServerVersion) -> str:
    """Return the condition that the account has one of these global privileges."""
    return _has_one_of(requirement.one_of, has_roles=version >= _ROLES)


def _has_one_of(privileges: tuple[str, ...], *, has_roles: bool) -> str:
    """Return the condition. A grantee is `'user'@'host'`, and CURRENT_USER() is `user@host`."""
    listed = ", ".join(map(quote_string, privileges))
    account = (
        "CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())"
        " - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''',"
        " SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"
    )
    own = (
        "(SELECT COUNT(*) FROM information_schema.user_privileges"  # noqa: S608 - quoted
        f" WHERE grantee = {account} AND privilege_type IN ({listed})) > 0"
    )
    return f"{own} OR CURRENT_ROLE() <> 'NONE'" if has_roles else own
