"""Errors that a client of a server sees while it connects, or manages replication.

error_texts.py has the rules for all such texts. These rows come last: a text of a replication
thread may quote one of them. Sources: sql/share messages of 5.6 to 9.7.
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

_NO_CONNECTION: Final = "the server does not accept the connection"
_READ_ONLY: Final = "the server is read-only"
_STILL_RUNS: Final = "a replication thread is still running"
_NO_CHANNEL: Final = "the channel does not exist, or several do"
_NOT_INITIALISED: Final = "the server cannot read its replication configuration"
_GROUP_FUNCTION: Final = "a function of Group Replication failed"

CLIENT_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        _NO_CONNECTION,
        r"(?:Too many connections|Host '.*' is (?:blocked|not allowed)|Access denied for user|"
        r"Can't connect to (?:local )?(?:MySQL )?server|"
        r"Lost connection to (?:MySQL )?server|MySQL server has gone away|"
        r"SSL connection error|Unknown MySQL server host)",
        None,
        "The server is down or not reachable, has no connection left, or refuses the account, its"
        " host or its TLS.",
        (
            "Try it from the same machine: mysql --host … --port … --user … -e 'SELECT 1'.",
            (
                "`Host … is blocked`: run TRUNCATE performance_schema.host_cache on the server, or"
                " FLUSH HOSTS before 8.4, after the cause is removed."
            ),
        ),
    ),
    ErrorText(
        _READ_ONLY,
        r"(?:--(?:super-)?read-only option|Running in read-only mode|"
        r"in a READ ONLY transaction)",
        None,
        "read_only or super_read_only is ON, or the transaction was begun as READ ONLY. Appliers"
        " are not affected: a client tried to write.",
        (
            (
                "If it is a replica, that is right: write on its source. A write here would be an"
                " errant transaction (E1)."
            ),
            "If the text of error 1290 names another option, that option forbids the statement.",
        ),
    ),
    ErrorText(
        _STILL_RUNS,
        r"(?:cannot be performed with (?:a )?running (?:slave|replica|replication)|"
        r"STOP (?:SLAVE|REPLICA) command execution is incomplete|"
        r"Cannot stop the (?:slave|replica) SQL thread while)",
        None,
        "The statement needs a stopped thread, and it is running, or has not stopped yet because it"
        " finishes its transaction first.",
        (
            (
                "Run STOP REPLICA for the channel, wait until SHOW REPLICA STATUS shows that it"
                " stopped, and run the statement again."
            ),
            "Do not KILL the thread: a parallel applier can leave gaps (H2).",
        ),
    ),
    ErrorText(
        _NO_CHANNEL,
        r"(?:(?:Slave|Replica) channel '.*' does not exist|"
        r"Multiple channels exist on the (?:slave|replica)|"
        r"server is not configured as (?:slave|replica)|"
        r"requires (?:a )?running (?:slave|replica|replication))",
        None,
        "The statement names a channel that the server does not have, or names none and the server"
        " has several.",
        ("SHOW REPLICA STATUS lists the channels. Add FOR CHANNEL 'NAME' to the statement.",),
    ),
    ErrorText(
        _NOT_INITIALISED,
        r"(?:(?:Slave|Replica) is not configured or failed to initialize|"
        r"Could not initialize (?:master info|connection metadata) structure|"
        r"failed to initialize (?:master info|connection metadata) structure|"
        r"Failed initializing relay log position|Failed purging old relay logs)",
        None,
        "server_id is 0, or the tables mysql.slave_master_info and mysql.slave_relay_log_info, or"
        " the relay logs, cannot be read.",
        (
            "The end of the error log of the server has the cause.",
            (
                "If the relay logs are gone and auto-position is on: RESET REPLICA, then START"
                " REPLICA. First compare what is missing with the binary logs of the source."
            ),
        ),
    ),
    ErrorText(
        _GROUP_FUNCTION,
        r"The function '(?:group_replication|asynchronous_connection)_\w+' failed",
        None,
        "A client called a function that changes a group or the sources of a channel, and the"
        " server refused it or did not complete it. The rest of the text has the reason.",
        (
            (
                "The usual reason: the member is not ONLINE, is not the primary, or another change"
                " of the group is running. SELECT * FROM"
                " performance_schema.replication_group_members, then call it again."
            ),
        ),
    ),
)

CLIENT_NUMBERS: Final[dict[int, str]] = {
    **dict.fromkeys((1290, 1792, 1836), _READ_ONLY),
    **dict.fromkeys((1198, 1875, 1876, 3017, 3021, 3081, 3085, 3857), _STILL_RUNS),
    **dict.fromkeys((1199, 1200, 3074, 3079, 3082), _NO_CHANNEL),
    **dict.fromkeys((1201, 1371, 1380, 1794, 1871, 13123), _NOT_INITIALISED),
    3910: _GROUP_FUNCTION,
}
