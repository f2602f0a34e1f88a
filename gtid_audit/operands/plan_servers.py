"""The servers of a written plan: how they were named when it was made, and with which account.

1. Without operands the servers are those of the command that made the plan. DSNs or a fleet file
   replace them, for instance on a machine from which the servers have other addresses.
2. `--admin FILE` replaces the account: audits need one that only reads, and repairs need more.
3. The words that name the servers are recorded in the journal, to resume. They hold no password.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.operands.user_accounts import accounts_of_user
from gtid_audit.output import warn
from repair.adapters.matched_servers import match_servers
from repair.applying.written_plan import UnusablePlan, WrittenPlan
from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.secrets import environment
from topology.adapters.inventory.targets import targets_of
from topology.policy import Policy
from topology.readings.target import NO_PASSWORD, ServerTarget

_WITH_VALUE: Final = ("--fleet", "--cluster", "--admin", "--again")
_PLANNING: Final = ("gtid-audit", "repair", "plan")


@dataclass(frozen=True, slots=True)
class PlanServers:
    """How the servers of a plan were named."""

    dsns: tuple[str, ...] = ()
    fleet: str | None = None
    cluster: str | None = None
    admin: str | None = None
    ask: bool = False

    @classmethod
    def of_words(cls, words: Sequence[str]) -> "PlanServers":
        """Return what `words` wrote: DSNs, and options that name servers.

        Other options are left out. Raises UsageProblem if an option has no value.
        """
        dsns: list[str] = []
        found: dict[str, str] = {}
        rest = iter(words)
        for word in rest:
            name, equals, value = word.partition("=")
            if word == "--pair":
                dsns += (_value(word, rest), _value(word, rest))
            elif name in _WITH_VALUE:
                found[name] = value if equals else _value(word, rest)
            elif not word.startswith("-"):
                dsns.append(word)
        return cls(
            tuple(dsns),
            found.get("--fleet"),
            found.get("--cluster"),
            found.get("--admin"),
            ask="--ask-password" in words,
        )

    @classmethod
    def of_plan(cls, plan: WrittenPlan) -> "PlanServers":
        """Return how the command that made a plan named its servers. Raises UsageProblem."""
        return cls.of_words(plan.command[len(_PLANNING) :])

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of a command line that name the servers."""
        options = (("--fleet", self.fleet), ("--cluster", self.cluster), ("--admin", self.admin))
        return (
            *self.dsns,
            *(word for name, value in options if value is not None for word in (name, value)),
            *(("--ask-password",) if self.ask else ()),
        )

    def or_of_plan(self, plan: WrittenPlan) -> "PlanServers":
        """Return these servers, or those of the plan's command if none were named."""
        if self.dsns or self.fleet is not None:
            return self
        of_plan = PlanServers.of_plan(plan)
        return replace(of_plan, admin=self.admin, ask=self.ask or of_plan.ask)

    def from_anywhere(self) -> "PlanServers":
        """Return these servers with absolute paths: a procedure may be resumed elsewhere."""
        return replace(self, fleet=_absolute(self.fleet), admin=_absolute(self.admin))

    def to_read(self, cluster: str) -> ClusterToRead:
        """Return the cluster to audit: one of the fleet file, or the servers without a policy.

        Raises UsageProblem, InventoryProblem.
        """
        if self.fleet is None:
            from gtid_audit.operands.cluster_of_dsns import cluster_of_dsns

            return cluster_of_dsns(self.dsns, ask=self.ask, seconds_max=None, policy=Policy())
        from gtid_audit.operands.load_fleet import cluster_to_read

        return cluster_to_read(Path(self.fleet), cluster)

    def targets(self, plan: WrittenPlan) -> dict[str, ServerTarget]:
        """Return every server of the plan by its name there. Raises UsageProblem."""
        named = self._named()
        if self.admin is not None:
            named = _with_account(named, self.admin)
        try:
            return match_servers(plan, named)
        except UnusablePlan as problem:
            raise UsageProblem(str(problem)) from problem

    def _named(self) -> tuple[ServerTarget, ...]:
        if self.fleet is not None:
            if self.cluster is None:
                raise UsageProblem("--fleet and --cluster must be used together")
            from gtid_audit.operands.load_fleet import cluster_to_read

            return cluster_to_read(Path(self.fleet), self.cluster).targets
        if not self.dsns:
            raise UsageProblem("the plan does not name its servers: give a DSN for each")
        return targets_of(self.dsns, accounts_of_user(ask=self.ask and self.admin is None))


def _value(option: str, rest: Iterator[str]) -> str:
    value = next(rest, None)
    if value is None:
        raise UsageProblem(f"{option} has no value in the words that name the servers")
    return value


def _absolute(path: str | None) -> str | None:
    """Return an absolute path; one that begins with ~ is absolute already."""
    return path if path is None or path.startswith("~") else str(Path(path).absolute())


def _with_account(targets: Sequence[ServerTarget], path: str) -> tuple[ServerTarget, ...]:
    """Return servers with the account of an option file."""
    found = AccountFiles(environment(), warn).option_file(path, group=None)
    if found.user is None:
        raise UsageProblem(f"{path}: no user in this option file")
    password = found.password_or_problem() or NO_PASSWORD
    return tuple(replace(each, user=found.user, password=password) for each in targets)
