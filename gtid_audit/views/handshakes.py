"""The result of `handshake`: the source of its text and of its JSON document.

Pure: the same readings give the same document.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from topology.catalogue.findings import ClusterAudit, Verdict
from topology.documents.document_version import versioned
from topology.documents.records import time_to_text
from topology.facts.source_answer import SourceAnswer
from topology.handshake.matrix import HandshakeMatrix, handshake_matrix
from topology.handshake.offered_sets import answers_to_set
from topology.handshake.promotion import Promotion, PromotionStep, promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.consumers import ConsumerReading
from topology.readings.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Handshakes:
    """The answers of one cluster, and what was asked of them."""

    matrix: HandshakeMatrix
    read_at: datetime | None
    offered: GtidSet | None = None
    promotion: Promotion | None = None
    steps: tuple[PromotionStep, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the question that was asked."""
        return self.matrix.verdict if self.promotion is None else self.promotion.verdict

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return versioned(
            {
                "cluster": self.matrix.cluster,
                "read_at": time_to_text(self.read_at) if self.read_at else None,
                "verdict": self.verdict.value,
                "servers": list(self.matrix.servers),
                "offered": None if self.offered is None else str(self.offered),
                "answers": [_answer(each) for each in self.matrix.answers],
                "groups": [
                    {
                        "name": each.name,
                        "primaries": list(each.primaries),
                        "members": list(each.members),
                        "outside": list(each.outside),
                    }
                    for each in self.matrix.groups
                ],
                "contents_compared": [list(each) for each in self.matrix.compared],
                "promotion": None if self.promotion is None else self._promotion(self.promotion),
                "unknown": [
                    {"server": server, "reason": reason}
                    for server, reason in (
                        *self.matrix.unread,
                        *((each.server, each.detail) for each in self.matrix.partial),
                    )
                ],
            }
        )

    def _promotion(self, promotion: Promotion) -> dict[str, Any]:
        return {
            "candidate": promotion.candidate,
            "best": promotion.best or promotion.candidate,
            "arrives": str(promotion.arrives),
            "unapplied": [
                {"server": server, "gtid_set": str(left)} for server, left in promotion.unapplied
            ],
            "missing": [
                {
                    "gtid_set": str(each.gtid_set),
                    "donor": each.donor,
                    "receiver": each.receiver or None,
                    "holders": list(each.holders),
                }
                for each in promotion.missing
            ],
            "breaks": [
                {"server": each.answer.replica, "donor": each.donor} for each in promotion.obstacles
            ],
            "steps": [
                {"server": each.server or None, "what": each.what, "sql": list(each.statements)}
                for each in self.steps
            ],
        }


def handshakes_of_consumer(
    snapshot: ClusterSnapshot, audit: ClusterAudit, policy: Policy, consumer: ConsumerReading
) -> Handshakes:
    """Evaluate one consumer of a cluster. UNKNOWN if its set was not read."""
    if consumer.sets is None:
        names = tuple(server.name for server in snapshot.last)
        unread = ((consumer.name, consumer.unread),)
        matrix = HandshakeMatrix(snapshot.cluster, names, (), unread)
        return Handshakes(matrix, snapshot.read_ended, GtidSet())
    first, last = consumer.sets
    matrix = answers_to_set(snapshot, audit, policy, first, later=last)
    return Handshakes(matrix, snapshot.read_ended, last)


def handshakes_of(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    policy: Policy,
    *,
    offered: GtidSet | None,
    promote: str | None,
) -> Handshakes:
    """Evaluate one cluster. Raises UsageProblem if it has no server of the name `promote`."""
    if offered is not None:
        matrix = answers_to_set(snapshot, audit, policy, offered)
        return Handshakes(matrix, snapshot.read_ended, offered)
    matrix = handshake_matrix(snapshot, audit, policy)
    if promote is None:
        return Handshakes(matrix, snapshot.read_ended)
    if promote not in matrix.servers:
        raise UsageProblem(
            f"--promote: no server {promote!r}; the servers are {', '.join(matrix.servers)}"
        )
    promotion = promotion_of(matrix, promote)
    steps = promotion_steps(promotion, snapshot)
    return Handshakes(matrix, snapshot.read_ended, None, promotion, steps)


def _answer(answer: SourceAnswer) -> Mapping[str, Any]:
    until = answer.deadline
    return {
        "source": answer.source,
        "replica": answer.replica,
        "outcome": answer.outcome.value,
        "refusal": None if answer.refusal is None else answer.refusal.value,
        "gtid_set": str(answer.gtid_set),
        "gtid_count": answer.gtid_set.gtid_count,
        "different_content": str(answer.unlike),
        "fetched": str(answer.fetched),
        "dropped": str(answer.dropped),
        "ahead": str(answer.ahead),
        "received": str(answer.received),
        "errno": None if answer.text is None else answer.text.errno,
        "text": None if answer.text is None else answer.text.text,
        "text_seen_on": None if answer.text is None else answer.text.seen_on,
        "doubts": list(answer.doubts),
        "served_until": None if until is None else time_to_text(until.until),
        "served_from": None if until is None else until.reach.file,
        "unread": answer.unread or None,
        "group": answer.group or None,
        "joins": answer.joins or None,
        "through": answer.through or None,
    }
