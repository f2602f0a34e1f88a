"""The text of Last_IO_Error for each refusal of a receiver, in the words of both versions.

1. The source writes the inner text, the replica writes the text around it. Each uses the words of
   its own version.
2. The words of 5.6.24 and 9.7.4 were seen on these servers: tests compare them character by
   character. Those of 8.0.27 are from its message file. `seen_on` is None for every other version:
   there the words may differ.
3. A server cuts the inner text to 320 bytes (before 8.0) or 511 bytes.

Sources: sql/rpl_binlog_sender.cc (init, check_start_file), sql/rpl_replica.cc
(get_source_version_and_clock, get_source_uuid), sql/binlog.cc (report_missing_gtids),
share/messages_to_clients.txt.
"""

from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from topology.readings.version import ServerVersion

_MESSAGE_BYTES_MAX: Final = 512  # MYSQL_ERRMSG_SIZE
_INNER_OLD_MAX: Final = 320  # '%-.320s'
_CLIENT_ERRNO: Final = 1236
_SERVER_ERRNO: Final = 13114  # since 8.0, around 1236
_FATAL_OLD: Final = 1593
_FATAL: Final = 13117

_EIGHT: Final = ServerVersion(8, 0, 0)
_SOURCE_WORDS: Final = ServerVersion(8, 4, 0)  # "source" and "replica" in all these texts
_SEEN: Final = {"5.6": "5.6.24", "9.7": "9.7.4"}

_MORE_OLD: Final = (
    "Slave has more GTIDs than the master has, using the master's SERVER_UUID. This may indicate"
    " that the end of the binary log was truncated or that the last binary log file was lost, e.g.,"
    " after a power or disk failure when sync_binlog != 1. The master may or may not have rolled"
    " back transactions that were already replicated to the slave. Suggest to replicate any"
    " transactions that master has rolled back from slave to master, and/or commit empty"
    " transactions on master to account for transactions that have been committed on master but are"
    " not included in GTID_EXECUTED."
)
_MORE: Final = (
    "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate"
    " that the the last binary log file was truncated or lost, e.g., after a power failure when"
    " sync_binlog != 1. The source may have rolled back transactions that were already replicated"
    " to the replica. Replicate any transactions that source has rolled back from replica to"
    " source, and/or commit empty transactions on source to account for transactions that have been"
    " committed on source but are not included in GTID_EXECUTED."
)
_PURGED_OLD: Final = (
    "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has"
    " purged binary logs containing GTIDs that the slave requires."
)
_PURGED: Final = (
    "Cannot replicate because the {source} purged required binary logs. Replicate the missing"
    " transactions from elsewhere, or provision a new {replica} from backup. Consider increasing"
    " the {source}'s binary log expiration period. "
)
_SETS: Final = (
    "The GTID set sent by the {replica} is '{sent}', and the missing transactions are '{missing}'"
)
_TOO_LONG: Final = (
    "The GTID sets and the missing purged transactions are too long to print in this message. For"
    " more information, please see the {source}'s error log or the manual for GTID_SUBTRACT"
)


_NOT_IN_GROUP: Final = (
    "The server is not configured properly to be an active member of the group. Please see more"
    " details on error log."
)
_NO_DONOR: Final = (
    "No valid or ONLINE members exist to get the missing data from the group. For cloning check if"
    " donors of the same version and with clone plugin installed exist. For incremental recovery"
    " check if you have donors where the required data was not purged from the binary logs."
)
_GROUP_ERRNO: Final = 3092
_NO_DONOR_ERRNO: Final = 13467


@dataclass(frozen=True, slots=True)
class RefusalText:
    """What SHOW REPLICA STATUS of the replica would print.

    Of a server that would join a group: the error of START GROUP_REPLICATION, or the entry that
    recovery writes to the error log.
    """

    errno: int
    text: str
    seen_on: str | None  # the versions whose words these are, if they were seen there


def purged_text(
    source: ServerVersion, replica: ServerVersion, *, sent: GtidSet, missing: GtidSet
) -> RefusalText:
    """Return the refusal of a source that has purged what the replica needs."""
    if source < _EIGHT:
        return _fatal(_PURGED_OLD, source, replica)
    words = {"source": "source", "replica": "replica"}
    if source < _SOURCE_WORDS:
        words = {"source": "master", "replica": "slave"}
    first = _PURGED.format(**words)
    sets = _SETS.format(sent=_as_printed(sent), missing=_as_printed(missing), **words)
    if len(first) + len(sets) > _MESSAGE_BYTES_MAX:
        sets = _TOO_LONG.format(**words)
    return _fatal(first + sets, source, replica)


def more_gtids_text(source: ServerVersion, replica: ServerVersion) -> RefusalText:
    """Return the refusal of a source of whose own GTIDs the replica has more."""
    return _fatal(_MORE if source >= _SOURCE_WORDS else _MORE_OLD, source, replica)


def no_log_text(source: ServerVersion, replica: ServerVersion) -> RefusalText:
    """Return the refusal of a source without an open binary log."""
    return _fatal("Binary log is not open", source, replica)


def no_server_id_text(source: ServerVersion, replica: ServerVersion) -> RefusalText:
    """Return the refusal of a source whose server_id is 0."""
    word = "source" if source >= _SOURCE_WORDS else "master"
    return _fatal(f"Misconfigured {word} - {word} server_id is 0", source, replica)


def same_id_text(replica: ServerVersion) -> RefusalText:
    """Return why a receiver stops whose source has its own server_id."""
    source_word, replica_word, thread = _words_of(replica)
    return _stopped(
        f"Fatal error: The {thread} thread stops because {source_word} and {replica_word} have"
        " equal MySQL server ids; these ids must be different for replication to work (or the"
        f" --replicate-same-server-id option must be used on {replica_word} but this does not"
        " always make sense; please check the manual before using it).",
        replica,
    )


def same_uuid_text(replica: ServerVersion) -> RefusalText:
    """Return why a receiver stops whose source has its own server_uuid."""
    source_word, replica_word, thread = _words_of(replica)
    return _stopped(
        f"Fatal error: The {thread} thread stops because {source_word} and {replica_word} have"
        " equal MySQL server UUIDs; these UUIDs must be different for replication to work.",
        replica,
    )


def not_in_group_text(version: ServerVersion) -> RefusalText:
    """Return the error of START GROUP_REPLICATION on a server that its group refuses."""
    return RefusalText(_GROUP_ERRNO, _NOT_IN_GROUP, _seen_on(version))


def no_donor_text(version: ServerVersion) -> RefusalText:
    """Return the entry in the error log of a server for which no member has all binary logs."""
    return RefusalText(_NO_DONOR_ERRNO, _NO_DONOR, _seen_on(version))


def mode_text(source_mode: str, replica: ServerVersion) -> RefusalText | None:
    """Return why a receiver with auto-position stops at ON_PERMISSIVE; None for versions without.

    A server with gtid_mode OFF or OFF_PERMISSIVE is not evaluated (U1).
    """
    if replica < _EIGHT:
        return None
    thread, word = "replication receiver thread", "source"
    if replica < _SOURCE_WORDS:
        thread, word = "slave IO thread", "master"
    return _stopped(
        f"The {thread} cannot start in AUTO_POSITION mode: the {word} has GTID_MODE ="
        f" {source_mode} instead of ON.",
        replica,
    )


def _words_of(version: ServerVersion) -> tuple[str, str, str]:
    if version >= _SOURCE_WORDS:
        return "source", "replica", "replica I/O"
    return "master", "slave", "slave I/O"


def _stopped(text: str, replica: ServerVersion) -> RefusalText:
    errno = _FATAL if replica >= _EIGHT else _FATAL_OLD
    return RefusalText(errno, text, _seen_on(replica))


def _fatal(inner: str, source: ServerVersion, replica: ServerVersion) -> RefusalText:
    bytes_max = _INNER_OLD_MAX if min(source, replica) < _EIGHT else _MESSAGE_BYTES_MAX - 1
    word = "source" if replica >= _SOURCE_WORDS else "master"
    errno = _SERVER_ERRNO if replica >= _EIGHT else _CLIENT_ERRNO
    seen = {_seen_on(source), _seen_on(replica)}
    return RefusalText(
        errno,
        f"Got fatal error {_CLIENT_ERRNO} from {word} when reading data from binary log:"
        f" '{inner[:bytes_max]}'",
        seen.pop() if len(seen) == 1 else None,
    )


def _seen_on(version: ServerVersion) -> str | None:
    return _SEEN.get(f"{version.major}.{version.minor}")


def _as_printed(gtid_set: GtidSet) -> str:
    """Write a set as a server prints it: a line end after each comma between UUIDs."""
    return str(gtid_set).replace(",", ",\n")
