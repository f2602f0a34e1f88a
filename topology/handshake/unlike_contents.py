"""Which servers have another content under one GTID (E4), and of which servers that is not known.

How it works
------------
E4 is about two servers, x and w. A third server that has the GTID may have either content, and its
set does not show which one:

    benign   z copied the transaction from w: z and w agree, and z differs from x
    malign   z copied it from x before w used the GTID again: z differs from w

That z received it from x proves neither: x may have lost it in a crash afterwards, and used the
GTID for another transaction. Only contents that were compared decide. `_agrees` follows pairs that
this audit compared and that have no E4 under these GTIDs; one of them may prove that z has the
content of x, or that of w. Otherwise:

* z differs from w too (a second E4): z and x have probably one content, because a GTID is seldom
  used three times. It is a doubt.
* Nothing was compared: it is not known which of the two would hide the other's content.

Example: E4 between a and b, and c is a replica of b. Compared pairs: (a, b), (b, c). Then c agrees
with b, so a and c differ. If only (a, b) was compared, neither a nor b is known to agree with c.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gtid import GtidSet
from topology.catalogue.findings import Finding, Severity
from topology.readings.contents import ContentReading, UnreadContent


@dataclass(frozen=True, slots=True)
class ContentsOfTwo:
    """What is known about the contents of two servers under the GTIDs that both have."""

    unlike: GtidSet  # they differ under these
    unread: str = ""  # why it is not known of more GTIDs; "" if it is
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnlikeContents:
    """The differences that an audit reports, and the pairs of servers that it compared."""

    differences: tuple[tuple[frozenset[str], GtidSet], ...]  # (two servers, GTIDs): E4
    compared: frozenset[frozenset[str]]
    executed: Mapping[str, GtidSet]
    logged: Mapping[str, GtidSet]  # of these, what the binary logs still have
    unread: tuple[UnreadContent, ...]  # a later audit may read it: the audit is UNKNOWN

    @classmethod
    def of(
        cls,
        findings: Iterable[Finding],
        contents: ContentReading | None,
        executed: Mapping[str, GtidSet],
        logged: Mapping[str, GtidSet],
    ) -> "UnlikeContents":
        """Collect the E4 of two servers each, and the pairs of which everything was compared."""
        differences = tuple(
            (frozenset((each.source, each.replica)), each.gtid_set)
            for each in findings
            if each.code == "E4"
            and each.severity is not Severity.INFO
            and each.source is not None
            and each.replica is not None
        )
        unread = contents.unread if contents is not None else ()
        return cls(differences, frozenset(_compared(contents)), executed, logged, unread)

    def between(self, one: str, other: str) -> ContentsOfTwo:
        """Return what is known of two servers."""
        both = frozenset((one, other))
        held = self.executed[one] & self.executed[other]
        unlike = self._under(both)
        unread: list[str] = []
        doubts: list[str] = []
        for pair, gtids in self.differences:
            if not pair & both:
                shared = (gtids & held) - unlike
                if self._are_apart(one, other, pair, shared):
                    unlike |= shared
                elif shared and not self._agrees(one, other, shared):
                    unread.append(_has_content_of(one, pair, shared))
                continue
            if pair == both:
                continue
            [here] = pair & both
            [there], [third] = pair - both, both - pair
            shared = (gtids & held) - unlike
            if not shared or self._agrees(third, here, shared):
                continue
            if self._agrees(third, there, shared):
                unlike |= shared
            elif shared <= self._under(frozenset((third, there))):
                doubts.append(
                    f"{' and '.join(sorted(both))} both have another content than {there} under"
                    f" {shared.shortened()} (E4), and were not compared with each other"
                )
            else:
                unread.append(_has_content_of(third, pair, shared))
        if not (unlike or unread) and not self._agrees(one, other, held):
            unread += (
                f"whether {' and '.join(sorted(both))} have one content: {each.server}:"
                f" {each.reason}"
                for each in self.unread
                if each.server in both
            )
        reasons = "; ".join(dict.fromkeys(unread))
        return ContentsOfTwo(unlike, reasons, tuple(dict.fromkeys(doubts)))

    def _are_apart(self, one: str, other: str, pair: frozenset[str], gtids: GtidSet) -> bool:
        """Return whether two servers each agree with another one of two that differ."""
        here, there = sorted(pair)
        return bool(gtids) and (
            (self._agrees(one, here, gtids) and self._agrees(other, there, gtids))
            or (self._agrees(one, there, gtids) and self._agrees(other, here, gtids))
        )

    def _under(self, pair: frozenset[str]) -> GtidSet:
        return GtidSet.union_of(gtids for two, gtids in self.differences if two == pair)

    def _agrees(self, one: str, other: str, gtids: GtidSet) -> bool:
        """Return whether compared pairs without a difference lead from one server to the other.

        Each server of the way must have the GTIDs in its logs, or no comparison was about them. One
        that only executed them may have either content.
        """
        holders = {name for name, logged in self.logged.items() if gtids <= logged}
        alike = [
            each
            for each in self.compared
            if each <= holders and gtids.is_disjoint(self._under(each))
        ]
        found, frontier = {one}, {one}
        while frontier:
            frontier = {
                name for pair in alike if pair & frontier for name in pair if name not in found
            }
            found |= frontier
        return other in found


def _has_content_of(name: str, pair: frozenset[str], gtids: GtidSet) -> str:
    names = " or of ".join(sorted(pair))
    return (
        f"whether {name} has the content of {names} under {gtids.shortened()} (E4; --content"
        " compares them)"
    )


def _compared(contents: ContentReading | None) -> Iterator[frozenset[str]]:
    if contents is None or contents.is_cut:
        return
    unread = {each.server for each in contents.unread}
    yield from (frozenset(pair) for pair in contents.pairs if unread.isdisjoint(pair))
