"""Scripts that write on a server which refuses writes: what the plan says, and the guards.

Seen on 9.7.4, and for `read_only` on 5.6.24, with and without sql_log_bin = 0:

    statement                            super_read_only   read_only, without the privilege
    INSERT, UPDATE, DELETE, any DDL      error 1290        error 1290
    an empty transaction (gtid_next)     passes            passes
    SET GLOBAL gtid_purged, a reset      passes            passes
    statements about channels            pass              pass

So only scripts that write rows or definitions have these guards. They come before the first change:
an error in the middle would leave some statements done. No script changes the settings: an operator
set them to keep clients from writing.
"""

from collections.abc import Iterator
from typing import Final

from repair.model.actions import Action, RedoTransactions
from repair.scripts.procedure import Procedure, Setting
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind, has_privilege, writes_when_read_only
from topology.readings.version import ServerVersion

_SUPER_READ_ONLY: Final = ServerVersion(5, 7, 8)
_WRITING: Final = frozenset(
    {StatementKind.WRITE_ROWS, StatementKind.CHANGE_DEFINITION, StatementKind.CREATE_VIEW}
)
_ON: Final = ("1", "ON")


def writable_guards(action: Action, procedure: Procedure, setting: Setting) -> Iterator[Guard]:
    """Yield the guards that the server accepts what the script writes.

    A redo whose GTIDs are all executed writes nothing when it runs again, so it passes.
    """
    if not _WRITING & {*procedure.needs}:
        return
    name, version = setting.server.name, setting.server.version
    done = ""
    if isinstance(action, RedoTransactions):
        done = f" OR {procedure.verifications[0].condition}"
    if version >= _SUPER_READ_ONLY:
        yield Guard(
            f"@@GLOBAL.super_read_only = 0{done}",
            f"{name}: super_read_only is ON and refuses what this script writes; set it to OFF,"
            " keep read_only ON, and run this again; nothing was changed",
        )
    needed = writes_when_read_only(version)
    yield Guard(
        f"@@GLOBAL.read_only = 0 OR {has_privilege(needed, version)}{done}",
        f"{name}: read_only is ON and this account does not have {needed}: the server refuses what"
        " this script writes; nothing was changed",
    )


def read_only_warnings(procedure: Procedure, setting: Setting) -> Iterator[str]:
    """Yield what to change before a script that the server would refuse now."""
    name = setting.server.name
    if _WRITING & {*procedure.needs} and setting.seen[name].setting("super_read_only") in _ON:
        yield (
            f"super_read_only is ON on {name}, and the script does not begin while it is. Run `SET"
            " GLOBAL super_read_only = OFF` there first (read_only stays ON), and `SET GLOBAL"
            " super_read_only = ON` after the last script"
        )


def read_only_privileges(procedure: Procedure, setting: Setting) -> Iterator[str]:
    """Yield what the account needs in addition, because read_only is ON."""
    is_on = setting.seen[setting.server.name].setting("read_only") in _ON
    if is_on and _WRITING & {*procedure.needs}:
        yield f"{writes_when_read_only(setting.server.version)} while read_only is ON"
