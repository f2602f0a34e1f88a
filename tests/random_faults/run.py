"""Injects random faults into real servers; each must be found within one audit, none misnamed.

    python -m tests.random_faults.run SECONDS=600 [SEED=1] [CASE=17] [COUNT=500] [KIND=errant]

1. A case is drawn from SEED and its number: servers, fault, how many transactions of which content,
   workers, load, and what happens before (rotation, purge, restart, large transactions).
2. First, an audit without a fault must report nothing. Then the load starts, the fault is injected,
   and one audit is run as the command line runs it.
3. Found: the audit reports a code of this fault, with its servers and its GTIDs. Misnamed: it
   reports anything else above info that SQL on the servers does not confirm (confirming.py).
4. Where one step undoes the fault, the case does that, and the next audit must be clean.
5. A case with a disagreement is printed with the arguments that run it again alone. Exit status 1.
"""

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from compose.faults import FaultNotProduced
from compose.native import shapes
from compose.native.provision import provision
from compose.native.shapes import NotCaughtUp, Topology
from gtid import GtidSet
from gtid_audit.operands.cluster_of_dsns import servers_to_read
from gtid_audit.tasks.audited_cluster import read_and_audit
from tests.random_faults import (
    double_kinds,
    extra_kinds,
    missing_kinds,
    setting_kinds,
    thread_kinds,
)
from tests.random_faults.cases import WRITERS, Case, drawn
from tests.random_faults.confirming import drain, is_confirmed
from tests.random_faults.expectations import (
    Expected,
    Outcome,
    Reported,
    clears_wrongly,
    not_found,
    unexpected,
    unknown_without_cause,
)
from tests.random_faults.kind import Injected, Kind, edges_by_shape
from tests.random_faults.scene import Scene, executed, prepare
from tests.random_faults.writers import Writers
from tests.server_pool import Stock
from topology.policy import Policy

KINDS: Final[Mapping[str, Kind]] = {
    **missing_kinds.KINDS,
    **extra_kinds.KINDS,
    **thread_kinds.KINDS,
    **setting_kinds.KINDS,
    **double_kinds.KINDS,
}
_CLEAR_SECONDS_MAX = 20.0
_POLL_SECONDS = 0.3


@dataclass
class EvaluatedCase:
    """What one case gave."""

    case: Case
    disagreements: list[str] = field(default_factory=list)
    is_found: bool = False
    misnamed: int = 0
    is_undone: bool = False
    not_produced: str = ""  # why the servers did not show the fault: then nothing was evaluated
    seconds: float = 0.0


def _shape(name: str) -> Callable[[], AbstractContextManager[Topology]]:
    version = "5.6" if name == "pair56" else "9.7"
    makers: Mapping[str, Callable[..., AbstractContextManager[Topology]]] = {
        "pair": shapes.pair,
        "pair56": shapes.pair,
        "ring": shapes.ring,
        "star": shapes.star,
        "chain": shapes.chain,
    }
    return lambda: makers[name](provision(version))


def main(arguments: Sequence[str]) -> int:
    """Run cases until the time or the count is used up. Return 1 after a disagreement."""
    options = dict(each.split("=", 1) for each in arguments)
    seed, first = int(options.get("SEED", "1")), int(options.get("CASE", "0"))
    count = int(options.get("COUNT", "1" if "CASE" in options else "1000000"))
    until = time.monotonic() + float(options.get("SECONDS", "600"))
    evaluated: list[EvaluatedCase] = []
    for each in evaluated_cases(seed, range(first, first + count), options.get("KIND")):
        evaluated.append(each)
        sys.stdout.write(report_of_case(each))
        sys.stdout.flush()
        if time.monotonic() > until:
            break
    sys.stdout.write(_summary(evaluated))
    return int(any(each.disagreements for each in evaluated))


def evaluated_cases(
    seed: int, numbers: Iterable[int], kind: str | None = None
) -> Iterator[EvaluatedCase]:
    """Run these cases one after the other; neighbours of one shape share their servers."""
    with ExitStack() as stack:
        shape, stock = "", None
        for number in numbers:
            case = chosen(seed, number, kind)
            if stock is None or case.shape != shape:
                stack.close()
                shape, stock = case.shape, Stock(_shape(case.shape))
                stack.callback(stock.discard)
            yield one(case, stock)


def chosen(seed: int, number: int, kind: str | None = None) -> Case:
    """Return a case, of this kind if one is asked for."""
    case = drawn(seed, number, edges_by_shape(KINDS), kind)
    return replace(case, has_lag=case.has_lag and KINDS[case.kind].permits_lag)


def one(case: Case, stock: "Stock[Topology]") -> EvaluatedCase:
    """Run one case on servers of its shape."""
    begun, result = time.monotonic(), EvaluatedCase(case)
    try:
        with stock.lent() as topology:
            _run(case, topology, result)
    except (FaultNotProduced, NotCaughtUp) as problem:
        result.not_produced = str(problem)[:600]
        stock.discard()
    except Exception:  # noqa: BLE001 - one case that breaks must not end the others
        result.disagreements.append("the harness failed: " + traceback.format_exc()[-1500:])
        stock.discard()
    result.seconds = time.monotonic() - begun
    return result


def _run(case: Case, topology: Topology, result: EvaluatedCase) -> None:
    clean = audit(topology, Expected(codes=frozenset()))
    result.disagreements += [f"before the fault: {each}" for each in _above(clean)]
    writers = Writers(
        [topology[name] for name in WRITERS[case.shape]], f"{case.seed}:{case.number}"
    )
    with ExitStack() as held:
        scene = Scene(case, topology, writers, held, case.dice)
        held.callback(writers.stop)
        prepare(scene)
        injected = KINDS[case.kind].inject(scene)
        _evaluate(scene, injected, result)


def _evaluate(scene: Scene, injected: Injected, result: EvaluatedCase) -> None:
    topology, every = scene.topology, (injected.expected, *injected.also)
    has_row_images = any(name == "binlog_row_image" for _, name, _ in scene.case.log_settings)
    had = {
        one.replica: GtidSet.parse(executed(topology[one.replica]))
        for one in every
        if one.replica is not None and "U1" not in one.codes
    }
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(injected.during or (lambda: None))
        outcome = audit(topology, injected.expected)
        beside.result()
    for one in every:
        has = GtidSet.parse("")
        if one.source is not None and one.replica in had:
            has = GtidSet.parse(executed(topology[one.source])) - had[one.replica]
        seen = replace(outcome, backlog=has)
        result.disagreements += [f"not found: {each}" for each in not_found(one, seen)]
        result.disagreements += clears_wrongly(one, seen)
        unknown = unknown_without_cause(one, seen, has_row_images=has_row_images)
        result.disagreements += [f"unknown: {each}" for each in unknown]
    result.is_found = bool(injected.expected.codes) and not result.disagreements
    others = unexpected(every, outcome.findings)
    if others:
        scene.writers.stop()
        drain(topology)
        others = [each for each in others if not is_confirmed(each, topology)]
    elif scene.case.is_undone and injected.undo is not None:
        injected.undo()
        result.disagreements += _not_clean(topology)
        result.is_undone = True
    result.misnamed = len(others)
    result.disagreements += [f"misnamed: {each}: {each.explanation[:300]}" for each in others]
    if result.disagreements:
        result.disagreements.append(f"reported: {[str(each) for each in outcome.findings]}")


def _not_clean(topology: Topology) -> list[str]:
    """Return what is reported after the fault was undone, once the servers have caught up."""
    deadline = time.monotonic() + _CLEAR_SECONDS_MAX
    while above := _above(audit(topology, Expected(codes=frozenset()))):
        if time.monotonic() > deadline:
            return [f"after it was undone: {each}" for each in above]
        time.sleep(_POLL_SECONDS)
    return []


def _above(outcome: Outcome) -> list[str]:
    return [*(str(each) for each in outcome.findings if each.is_above_info), *outcome.unknown]


def audit(topology: Topology, expected: Expected) -> Outcome:
    """Audit all servers by the functions of `gtid-audit audit DSN…`."""
    names = {f"{each.host}:{each.port}": name for name, each in topology.servers.items()}
    policy = Policy(
        lock_wait_seconds_max=expected.lock_seconds_max,
        stall_seconds_max=expected.stall_seconds_max,
    )
    to_read = servers_to_read(
        [each.dsn for each in topology.servers.values()],
        ask=False,
        seconds_max=expected.server_seconds_max,
        policy=policy,
    )
    done = read_and_audit(to_read, content=expected.compares_content, say=lambda _: None).audit
    return Outcome(
        verdict=done.verdict.value,
        findings=tuple(
            Reported(
                code=each.code,
                severity=each.severity.value,
                grade=each.grade.value,
                source=names.get(each.source or "", each.source),
                replica=names.get(each.replica or "", each.replica),
                gtids=each.gtid_set,
                explanation=each.explanation,
            )
            for each in done.findings
        ),
        unknown=tuple(
            f"{names.get(one.server, one.server)}: {one.fact}: {one.reason}" for one in done.unknown
        ),
        backlog=GtidSet.parse(""),
    )


def report_of_case(evaluated: EvaluatedCase) -> str:
    """Return what is printed about a case: how it is run again, and every disagreement."""
    mark = "not produced" if evaluated.not_produced else "agrees"
    if evaluated.disagreements:
        mark = "DISAGREES"
    reasons = filter(None, (evaluated.not_produced, *evaluated.disagreements))
    first = f"{mark} {evaluated.case} [{evaluated.seconds:.1f} s]\n"
    return first + "".join(f"    {each}\n" for each in reasons)


def _summary(evaluated: Sequence[EvaluatedCase]) -> str:
    faults = [each for each in evaluated if not each.case.kind.startswith("healthy")]
    healthy = len(evaluated) - len(faults)
    disagree = Counter(each.case.kind for each in evaluated if each.disagreements)
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(disagree.items()))
    return (
        f"{len(faults)} faults of {len({each.case.kind for each in faults})} kinds:"
        f" {sum(each.is_found for each in faults)} found within one audit,"
        f" {sum(bool(each.not_produced) for each in evaluated)} not produced;"
        f" {healthy} healthy; misnamed findings: {sum(each.misnamed for each in evaluated)};"
        f" {sum(each.is_undone for each in evaluated)} undone;"
        f" {sum(each.seconds for each in evaluated):.0f} s;"
        f" cases with a disagreement: {sum(disagree.values())} ({kinds or 'none'})\n"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
