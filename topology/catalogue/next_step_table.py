"""What an operator does first about each code: the one table of next steps.

1. A step is a command of gtid-audit, without the name of the program, or a sentence. The view
   (gtid_audit/views/next_steps.py) fills in the words in braces, and leaves out a step for which
   it does not have one of them.
2. A finding about transactions begins with their content: it decides whether they may be left out.
3. A sentence is what cannot wait for a command: each further write makes the fault larger.

Words of commands:

    {code}      the code of the finding
    {set}       its GTIDs, or the first of them
    {holder}    the DSN of a server that has these GTIDs in its binary logs
    {source}, {replica}   the DSNs of the two servers of the finding
    {candidate} the name of the source of the finding
    {consumer}  the name of the consumer of the finding
    {servers}   the cluster: the DSNs of its servers, or --fleet FILE --cluster NAME
    {plan}      the cluster as `repair plan` takes it
    {schema}    --schema NAME if a definition differs in one schema only; it may be empty

In sentences {source} and {replica} are names.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command without the name of the program, or a sentence."""

    text: str
    is_command: bool = True


EXPLAIN: Final = NextStep("explain {code}")
PLAN: Final = NextStep("repair plan {plan} --out plan")
_SHOW: Final = NextStep("binlog show {set} {holder}")
_TRACE: Final = NextStep("trace {replica}")
_LOCKS: Final = NextStep("locks {replica}")
_COULD_SERVE: Final = NextStep("handshake {source} {replica}")
_COULD_JOIN: Final = NextStep("handshake {servers}")
_STOP_WRITES: Final = NextStep(
    "Stop writes on {source} now: it assigns GTIDs again that {replica} already has, and {replica}"
    " skips those transactions.",
    is_command=False,
)
_STOP_UNLOGGED: Final = NextStep(
    "Stop writes on {replica} now: what clients commit there gets no GTID, and reaches no other"
    " server.",
    is_command=False,
)
_READ_AGAIN: Final = NextStep(
    "Run the same audit again: {replica} was restarted or reset while it was read.",
    is_command=False,
)

NEXT_STEPS: Final[dict[str, tuple[NextStep, ...]]] = {
    **dict.fromkeys(("T1", "T2"), (_LOCKS, EXPLAIN)),
    **dict.fromkeys(("T3", "T4", "T5", "T6"), (EXPLAIN,)),
    **dict.fromkeys(("H1", "H3", "H8"), (_SHOW, PLAN)),
    **dict.fromkeys(("H2", "A1", "A2", "A6"), (_TRACE, PLAN)),
    **dict.fromkeys(("H4", "H5", "H7", "C1", "C3"), (EXPLAIN, PLAN)),
    "H6": (EXPLAIN,),
    **dict.fromkeys(("E1", "E2"), (_SHOW, PLAN)),
    **dict.fromkeys(("E3", "E6"), (_STOP_WRITES, _SHOW, PLAN)),
    "E4": (NextStep("binlog compare {source} {replica} --only {set}"), PLAN),
    "E5": (EXPLAIN,),
    **dict.fromkeys(("J1", "J2"), (_COULD_JOIN, PLAN)),
    "J3": (_SHOW, _COULD_JOIN, PLAN),
    "J4": (NextStep("audit --discover {replica}"), EXPLAIN),
    **dict.fromkeys(("P1", "P2"), (_COULD_SERVE, PLAN)),
    "P3": (_COULD_SERVE, EXPLAIN),
    "P4": (NextStep("handshake {servers} --consumer {consumer}"), EXPLAIN),
    "P5": (NextStep("handshake {servers} --promote {candidate}"), EXPLAIN),
    "A3": (_TRACE, PLAN),
    "A4": (_TRACE, _COULD_SERVE),
    "A5": (_LOCKS,),
    "A7": (EXPLAIN, PLAN),
    "A8": (_LOCKS, EXPLAIN),
    "A9": (_STOP_UNLOGGED, EXPLAIN),
    **dict.fromkeys(("C2", *(f"C{number}" for number in range(4, 16))), (EXPLAIN, PLAN)),
    "S1": (NextStep("schema versions {source} {replica}"), EXPLAIN),
    "S2": (NextStep("schema drift {source} {replica} {schema}"), PLAN),
    "S3": (EXPLAIN,),
    **dict.fromkeys(("F1", "F2", "F3", "U1", "U3", "U4"), (EXPLAIN,)),
    "U2": (_READ_AGAIN, EXPLAIN),
}

# Which end of a finding has its GTIDs in its binary logs, where the rule requires it.
LOGGED_BY_REPLICA: Final = frozenset({"E1"})
LOGGED_BY_SOURCE: Final = frozenset({"H1"})
# Findings about what the replica has too much: its logs are looked into first.
OF_THE_REPLICA: Final = frozenset({"E1", "E2", "E3", "E6", "J3"})

_CLIENT: Final = "REPLICATION CLIENT ON *.*"
_DUMP: Final = "REPLICATION SLAVE ON *.*"
_PROCESS: Final = "PROCESS ON *.*"
# The privilege for facts that an audit reads, by their names.
_PRIVILEGES: Final = {
    "channels": _CLIENT,
    "log_end": _CLIENT,
    "binary_logs": _CLIENT,
    "workers": "SELECT ON performance_schema.*",
}
_DENIED: Final = "privilege"  # UnreadReason.PRIVILEGE, as the reason of an `Unknown` begins
_DUMP_REFUSED: Final = ("refused the binlog dump", "1227")  # ER_SPECIFIC_ACCESS_DENIED_ERROR


def privilege_for(fact: str, reason: str) -> str | None:
    """Return what to grant so that a fact is read; None if it is not a known privilege."""
    if all(sign in reason for sign in _DUMP_REFUSED):
        return _DUMP
    if not reason.startswith(_DENIED):
        return None
    if fact == "workers" and "PROCESS" in reason:
        return _PROCESS
    return _PRIVILEGES.get(fact)
