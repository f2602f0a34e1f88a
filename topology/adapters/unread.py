"""The reasons why a fact could not be read: the only translation of client errors."""

from pymysql.constants import CR, ER

from topology.adapters.connection_errors import NotMysql, PasswordNotSent
from topology.readings.snapshot import UnreadFact, UnreadReason

_PRIVILEGE_ERRORS = frozenset(
    {
        ER.SPECIFIC_ACCESS_DENIED_ERROR,
        ER.TABLEACCESS_DENIED_ERROR,
        ER.COLUMNACCESS_DENIED_ERROR,
        ER.DBACCESS_DENIED_ERROR,
    }
)
_ACCOUNT_LOCKED, _PASSWORD_EXPIRED, _TOO_MANY, _OFFLINE = 3118, 1862, 1040, 3032
_REFUSED_ERRORS = frozenset(
    {ER.ACCESS_DENIED_ERROR, ER.HOST_NOT_PRIVILEGED, ER.HOST_IS_BLOCKED}
    | {_ACCOUNT_LOCKED, _PASSWORD_EXPIRED, _TOO_MANY, _OFFLINE}
)
_LOST_CONNECTION = frozenset(
    {
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        CR.CR_CONN_HOST_ERROR,
        CR.CR_CONNECTION_ERROR,
        CR.CR_MALFORMED_PACKET,
    }
)


class LostServer(Exception):
    """The connection is lost, so nothing more can be read. Contains the fact to report."""

    def __init__(self, fact: UnreadFact) -> None:
        super().__init__(f"{fact.fact}: {fact.reason.value}: {fact.detail}")
        self.fact = fact


def unread_fact(fact: str, error: Exception, *, timed_out: bool) -> UnreadFact:
    """Return the fact with its reason. `timed_out`: the time limit for an answer was reached."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    detail = str(error.args[1]) if len(error.args) > 1 else str(error)
    if isinstance(error, TimeoutError) or (timed_out and number in _LOST_CONNECTION):
        return UnreadFact(fact, UnreadReason.TIMEOUT, detail)
    if isinstance(error, PasswordNotSent):
        return UnreadFact(fact, UnreadReason.REFUSED, detail)
    if isinstance(error, NotMysql):
        return UnreadFact(fact, UnreadReason.UNREACHABLE, detail)
    if number in _PRIVILEGE_ERRORS:
        return UnreadFact(fact, UnreadReason.PRIVILEGE, detail)
    if number in _REFUSED_ERRORS:
        return UnreadFact(fact, UnreadReason.REFUSED, detail)
    if isinstance(error, OSError) or number in _LOST_CONNECTION or not number:
        return UnreadFact(fact, UnreadReason.UNREACHABLE, detail)
    return UnreadFact(fact, UnreadReason.ERROR, f"error {number}: {detail}")
