"""All that an operator reads of a finding, as lines of a transcript that a test approves."""

import re
import textwrap
from collections.abc import Iterable, Iterator

from topology.catalogue.findings import ClusterAudit, Finding

_COLUMNS = 100
# The server_uuids of scenarios.txt and of the simulator: one letter, and zeros.
_UUID = re.compile(
    r"\b(?:([4-7][0-9a-f])0{6}-0{4}-0{4}-0{4}-0{12}|0{8}-0{4}-0{4}-0{4}-0{10}([4-7][0-9a-f]))\b"
)


def audit_in_words(audit: ClusterAudit) -> Iterator[str]:
    """Yield the verdict, and each finding with its evidence."""
    yield audit.verdict.value
    for finding in audit.findings:
        yield from finding_in_words(finding)
    for unknown in audit.unknown:
        yield f"unknown: {unknown.server}, {unknown.fact}: {unknown.reason}"


def finding_in_words(finding: Finding) -> Iterator[str]:
    """Yield all that a finding shows."""
    names = " -> ".join(each for each in (finding.source, finding.replica) if each is not None)
    where = f"{names}, {finding.channel}" if finding.channel else names
    words = f"{finding.code} {finding.severity.value} {finding.grade.value} ({where})"
    yield f"{words}: {finding.gtid_set}" if finding.gtid_set else words
    yield f"  {finding.explanation}"
    for each in finding.evidence:
        yield f"  {each.read_from}: {each.fact} = {each.value}"
    yield f"  strategies: {', '.join(each.name for each in finding.strategies) or 'none'}"
    if finding.deadline is not None:
        yield f"  until {finding.deadline.isoformat()}"


def wrapped(lines: Iterable[str]) -> str:
    """Return lines of at most 100 columns, with letters for server_uuids."""
    return "\n".join(part for line in lines for part in _wrapped(line))


def with_letters(text: str) -> str:
    """Return a text with a letter for each server_uuid."""
    return _UUID.sub(lambda found: chr(int(found[1] or found[2], 16)), text)


def _wrapped(line: str) -> list[str]:
    text = with_letters(line)
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
