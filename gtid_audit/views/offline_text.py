"""The answer of an audit of pasted output: the report, and what such an audit does not show."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gtid_audit.views.audit_results import InMemory
from topology.catalogue.findings import Verdict

_WHAT: Final = "From pasted output: binary logs and contents of transactions were not read."
_ONCE: Final = (
    "Read once: {names}. What the time between the files explains is not reported as a fault, and"
    " what waits is not reported as OK. To decide it, add second readings, taken after all files"
    " that are here: NAME.first.txt and NAME.second.txt."
)


@dataclass(frozen=True, slots=True)
class FromPastedOutput:
    """A report on servers that were not reached; `read_once` has those without a second reading."""

    outcome: InMemory
    read_once: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Return the verdict."""
        return self.outcome.verdict

    def document(self) -> Iterator[str]:
        """Return the JSON document of the contract, in pieces."""
        return self.outcome.document()

    def lines(self) -> Iterator[str]:
        """Return the JSON lines."""
        return self.outcome.lines()

    def plugin_line(self) -> str:
        """Return the line of a monitoring plugin."""
        return self.outcome.plugin_line()

    def show_verdict(self) -> None:
        """Show only the first line."""
        self.outcome.show_verdict()

    def show(self) -> None:
        """Show the report, then what it does not cover."""
        self.outcome.show()
        texts = [_WHAT]
        if self.read_once:
            texts.append(_ONCE.format(names=", ".join(self.read_once)))
        from gtid_audit.views.report_parts import line_of
        from gtid_audit.views.report_text import show

        show("", *map(line_of, texts))
