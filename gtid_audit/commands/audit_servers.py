"""`gtid-audit audit DSN…`: evaluates servers that are on the command line, or found from one.

Modules that only this form needs are imported where they are used.
"""

from dataclasses import dataclass
from pathlib import Path

from gtid_audit.commands.options import seconds_of
from gtid_audit.commands.watching import AuditOnce, Say
from gtid_audit.output import hint, progress


@dataclass(frozen=True, slots=True)
class NamedServers:
    """Servers that are on the command line, and the options that a fleet file would have."""

    dsns: tuple[str, ...]
    discover: str | None
    ask_password: bool
    timeout: str | None
    allow_uuid: tuple[str, ...]
    accepted: tuple[str, ...]

    def given(self) -> dict[str, object]:
        """Return the options for servers that are read; None if one was not given."""
        return {
            "DSN": self.dsns or None,
            "--discover": self.discover,
            "--timeout": self.timeout,
            "--ask-password": self.ask_password or None,
        }

    @property
    def has_servers(self) -> bool:
        """Return whether there is a server to read."""
        return bool(self.dsns) or self.discover is not None

    @property
    def has_options(self) -> bool:
        """Return whether an option was given that has no meaning without them."""
        return self.ask_password or bool(self.timeout or self.allow_uuid or self.accepted)


def named_audit(
    named: NamedServers, *, content: bool | None, definitions: bool, history: Path | None
) -> AuditOnce:
    """Return the audit of the servers as one cluster. It asks for a password once.

    Raises UsageProblem.
    """
    from gtid_audit.operands.cluster_of_dsns import found_from, policy_of, servers_to_read
    from gtid_audit.operands.servers_in_commands import typed_servers
    from gtid_audit.tasks.kept_history import history_at
    from gtid_audit.tasks.named_servers import answer_of_servers
    from gtid_audit.views.audit_results import naming
    from topology.catalogue.findings import Unknown

    seconds, policy = seconds_of(named.timeout), policy_of(named.allow_uuid, named.accepted)
    kept = history_at(history, of_servers=True)
    dsns = named.dsns if named.discover is None else (named.discover, *named.dsns)
    given = servers_to_read(dsns, ask=named.ask_password, seconds_max=seconds, policy=policy)

    def audit(say: Say) -> int:
        to_read, unknown = given, tuple[Unknown, ...]()
        with progress() as line:
            if named.discover is not None:
                to_read, found = found_from(given, say=line.say)
                unknown = found.unknown(to_read.name)
                line.clear()
                for text in found.lines:
                    hint(text)
            answer = answer_of_servers(
                to_read,
                content=content,
                definitions=definitions,
                say=line.say,
                also_unknown=unknown,
                history=kept,
            )
        names = [each.name for each in to_read.targets]
        servers = typed_servers(dsns, given.targets, names, ask=named.ask_password)
        return say(naming(answer, servers))

    return audit
