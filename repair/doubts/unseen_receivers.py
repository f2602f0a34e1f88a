"""What reaches a connected replica that is not part of the audit is refused by default.

unseen_replicas.py explains why. Strategies that look at servers that could not be read refuse for
these as well. Here every other strategy is refused if it writes.
"""

from repair.model.strategy_case import Case, Outcome, Refusal
from repair.model.unseen_replicas import refused_for, unseen_below, written_on


def unless_unseen(case: Case, outcome: Outcome) -> Outcome:
    """Refuse to write by default where a replica that is not part of the audit gets it."""
    if isinstance(outcome, Refusal) or case.is_chosen:
        return outcome
    unseen = unseen_below(case.unseen, case.model, [*written_on(outcome.actions)])
    why = refused_for(unseen)
    return outcome if why is None else Refusal(why)
