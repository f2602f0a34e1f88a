"""From findings and readings to the parts of a plan that are text: what it answers and what not."""

from collections.abc import Mapping

from repair.by_hand import BY_HAND, by_hand
from repair.model import Model
from repair.plan import Answered, AssumedState, NotPlanned
from repair.strategies import PLANNERS
from topology.findings import Finding
from topology.snapshot import ServerSnapshot
from topology.strategies import STRATEGIES

# A stuck applier first; then what is missing and what is extra, for which the operator may have
# chosen how; then auto-position and the threads, which deliver what is left.
ORDER = (
    *("A1", "A2", "A3"),
    *("H1", "H2", "H3", "H4", "H5", "H8", "P1"),
    *("E3", "E1", "E2", "J3", "C3", "E4"),
)


def about(finding: Finding) -> str:
    """Return which servers and which channel a finding is about."""
    ends = [name for name in (finding.source, finding.replica) if name is not None]
    channel = f" (channel {finding.channel})" if finding.channel else ""
    return " → ".join(ends) + channel


def left_out(name: str, finding: Finding, model: Model, *, chosen: str) -> str:
    """Return why a strategy was not taken when another one was."""
    if name in BY_HAND:
        return f"it has no script; by hand: {by_hand(name, finding, model)}"
    return f"{chosen} comes first; {name} would: {STRATEGIES[name].risk}"


def not_planned(finding: Finding, refusals: Mapping[str, str], model: Model) -> NotPlanned:
    """Return a finding without steps, with the reasons and what to do by hand."""
    reasons = [f"{name}: {why}" for name, why in refusals.items() if name in PLANNERS]
    manual = [f"{name}: {by_hand(name, finding, model)}" for name in refusals if name in BY_HAND]
    why = "; ".join(reasons) or (
        "none of its strategies has a script" if manual else "there is nothing to run"
    )
    return NotPlanned(
        finding_id=finding.id,
        code=finding.code,
        name=finding.name,
        about=about(finding),
        why=why,
        by_hand=tuple(manual),
    )


def answered(finding: Finding, strategy: str, steps: tuple[int, ...]) -> Answered:
    """Return a finding that a plan answers."""
    return Answered(
        finding_id=finding.id,
        code=finding.code,
        name=finding.name,
        about=about(finding),
        strategy=strategy,
        steps=steps,
    )


def assumed(server: ServerSnapshot) -> AssumedState:
    """Return what a plan takes for granted about a server."""
    return AssumedState(
        server=server.name,
        host=server.host,
        port=server.port,
        server_uuid=str(server.server_uuid),
        version=str(server.version),
        gtid_executed=str(server.gtid_executed),
        gtid_purged=str(server.gtid_purged),
        channels=tuple(
            f"{channel.name!r} from {channel.source_host}:{channel.source_port},"
            f" auto-position {'on' if channel.auto_position else 'off'},"
            f" receiver {channel.receiver.value}, applier {channel.applier.value}"
            for channel in server.channels or ()
        ),
    )


def phase(finding: Finding) -> int:
    """Return when a finding is planned for, among the others."""
    return ORDER.index(finding.code) if finding.code in ORDER else len(ORDER)
