"""Digests of values that are too long to be read: any change of a part changes them.

The parts of a value are written in an order of their own, so that sets and mappings give the same
digest in every run. What was read from servers is left out: it is what a test has put in.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass

from repair.content.content_questions import arrivals, question_of
from topology.audit_cluster import audit_cluster
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.joining import evaluate_parts
from topology.facts.siblings import held_by_siblings
from topology.handshake.matrix import handshake_matrix
from topology.handshake.offered_sets import answers_to_set
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.questions.contents_to_compare import looked_back, suspects_now
from topology.questions.log_questions import questions_of
from topology.readings.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot
from topology.rules import RULES

_CHARACTERS = 8
_READ = (ServerSnapshot, ClusterSnapshot, Policy)


def digest(value: object) -> str:
    """Return a short digest of a value and all its parts."""
    return hashlib.sha256(_text(value).encode()).hexdigest()[:_CHARACTERS]


def _text(value: object) -> str:
    if isinstance(value, _READ):
        return ""
    if isinstance(value, ChannelSnapshot):
        return repr(value.name)
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        parts = (f"{each.name}={_text(getattr(value, each.name))}" for each in fields(value))
        return f"{type(value).__name__}({','.join(parts)})"
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return str(value)
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{_text(k)}:{_text(v)}' for k, v in value.items()))}}}"
    parts_of = map(_text, value)
    return f"[{','.join(sorted(parts_of) if isinstance(value, AbstractSet) else parts_of)}]"


def of_facts(snapshot: ClusterSnapshot, policy: Policy) -> str:
    """Return digests of what an audit computes: facts, findings, questions, the audit, handshakes.

    The findings are those before one explains another; the audit has those that are left.
    """
    parts = dict(computed(snapshot, policy))
    parts["handshake"] = [*_handshakes(snapshot, policy)]
    return " ".join(f"{name} {digest(each)}" for name, each in parts.items())


def computed(snapshot: ClusterSnapshot, policy: Policy) -> Iterator[tuple[str, object]]:
    """Yield what an audit computes, part by part, each when it is wanted; no handshakes."""
    facts = gather_facts(snapshot, policy)
    yield "facts", _without_readings(facts)
    found = sorted((each for rule in RULES for each in rule(facts)), key=lambda each: each.order)
    yield "findings", found
    questions = [question_of(each, snapshot, failing=each.gtid_set) for each in found]
    compared = looked_back(snapshot, None), held_by_siblings(snapshot), suspects_now(snapshot, None)
    yield "asked", (questions_of(facts), arrivals(snapshot), questions, compared)
    yield "audit", audit_cluster(snapshot, policy)


def _handshakes(snapshot: ClusterSnapshot, policy: Policy) -> Iterator[object]:
    audit = audit_cluster(snapshot, policy)
    matrix = handshake_matrix(snapshot, audit, policy)
    yield matrix.answers, matrix.unread, matrix.verdict
    for name in matrix.servers:
        promotion = promotion_of(matrix, name)
        yield promotion.verdict, promotion, promotion_steps(promotion, snapshot)
        executed = next(each.gtid_executed for each in snapshot.last if each.name == name)
        if executed is not None:
            yield answers_to_set(snapshot, audit, policy, executed).answers


def _without_readings(facts: ClusterFacts) -> object:
    parts = {each.name: getattr(facts, each.name) for each in fields(facts)}
    del parts["first"], parts["last"]
    return parts, evaluate_parts(facts)
