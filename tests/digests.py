"""Digests of values that are too long to be read: any change of a part changes them.

The parts of a value are written in an order of their own, so that sets and mappings give the same
digest in every run. What was read from servers is left out: it is what a test has put in.
"""

import hashlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass

from repair.content.content_questions import arrivals, question_of
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.joining import evaluate_parts
from topology.policy import Policy
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
    """Return digests of what an audit computes on the way: facts, findings, questions.

    The findings are those before one explains another.
    """
    facts = gather_facts(snapshot, policy)
    found = sorted((each for rule in RULES for each in rule(facts)), key=lambda each: each.order)
    asked = (
        questions_of(facts),
        arrivals(snapshot),
        [question_of(each, snapshot, failing=each.gtid_set) for each in found],
    )
    return (
        f"facts {digest(_without_readings(facts))} findings {digest(found)} asked {digest(asked)}"
    )


def _without_readings(facts: ClusterFacts) -> object:
    parts = {each.name: getattr(facts, each.name) for each in fields(facts)}
    del parts["first"], parts["last"]
    return parts, evaluate_parts(facts)
