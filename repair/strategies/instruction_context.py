"""A finding and the servers as a plan leaves them: the input of a manual instruction."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from repair.content.locks_read import LocksRead
from repair.model.replication_model import Model
from repair.model.strategy_case import NOTHING_BESIDE, KnownBeside
from repair.sql.channel_queries import for_channel
from topology.catalogue.findings import Finding
from topology.readings.dialect import Dialect, dialect_of
from topology.readings.version import ServerVersion


@dataclass(frozen=True, slots=True)
class Situation:
    """One finding and the servers as the plan leaves them."""

    finding: Finding
    model: Model
    beside: KnownBeside = NOTHING_BESIDE

    @property
    def locks(self) -> LocksRead | None:
        """Return the locks of the finding's replica, if they were read for the plan."""
        return self.beside.locks.get(self.finding.replica or "")

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of the finding's replica; the current one if it was not read."""
        replica = self.model.servers.get(self.finding.replica or "")
        return dialect_of(replica.version if replica is not None else ServerVersion(9, 0, 0))

    @property
    def channel(self) -> str:
        """Return the FOR CHANNEL clause of the finding's channel, as text."""
        return for_channel(self.dialect, self.finding.channel or "")


Text: TypeAlias = Callable[[Situation], str]


def in_order(*statements: str) -> str:
    """Return statements to run in this order."""
    return ", ".join(f"`{each}`" for each in statements)


def attaching(situation: Situation, source: str) -> tuple[str, ...]:
    """Return the statements that point the finding's channel to a server, and start it."""
    words, where = situation.dialect, situation.channel
    prefix = words.option_prefix
    options = (
        f"{prefix}HOST = '(host of {source})', {prefix}PORT = (port of {source}),"
        f" {prefix}USER = '(account of the channel)', {prefix}AUTO_POSITION = 1"
    )
    return f"{words.change_source} {options}{where}", f"{words.start_replica}{where}"


def always(text: str) -> Text:
    """Return an instruction that is the same in every situation."""
    return lambda _situation: text
