"""B1: two very fragmented sets, text → subtract → text, beside a server's GTID_SUBTRACT."""

from collections.abc import Mapping

from benchmarks.generate.sets import even_set, uneven_set
from benchmarks.measuring import Line, Options, Section, duel, evaluated, seconds_of
from benchmarks.peers import TimedSession, mysqld
from gtid import GtidSet

INTERVALS = 1_000_000
GOAL = 1 / 3
_ANSWER = "SELECT GTID_SUBTRACT(@left_set, @right_set)"
_LENGTH = "SELECT LENGTH(GTID_SUBTRACT(@left_set, @right_set))"
_HOW = (
    "The server is at work alone: it holds the texts, and only the length of the answer is fetched."
    " As its client sees it, with texts sent and a text fetched, it takes longer; that is the line"
    " without a goal. Both answers are the same text, compared before the first run that counts."
)


def two_large_sets(options: Options) -> Section:
    """Subtract one set of a million intervals from another, of two patterns.

    Uneven: lengths and distances vary, and the sets overlap in all ways. Even: the two never
    overlap, so that the answer is as long as the left set.
    """
    patterns: Mapping[str, tuple[str, str]] = {
        "uneven": (uneven_set(INTERVALS, seed=1), uneven_set(INTERVALS, seed=2)),
        "even": (even_set(INTERVALS, start=1), even_set(INTERVALS, start=3)),
    }
    lines: list[Line] = []
    with mysqld() as session:
        for pattern, (left, right) in patterns.items():
            megabytes = (len(left) + len(right)) / 1e6
            work = (
                f"subtract two {pattern} sets of {INTERVALS:,} intervals, {megabytes:.0f} MB of"
                " text, text to text"
            )
            lines.append(_beside_work(session, work, left, right, options))
        lines.append(_beside_client(session, *patterns["uneven"], options))
    return Section("two large sets", tuple(lines), (_HOW,))


def _beside_work(session: TimedSession, work: str, left: str, right: str, options: Options) -> Line:
    session.ask("SET @left_set = %s", (left,))
    session.ask("SET @right_set = %s", (right,))
    _, answer = session.ask(_ANSWER)
    assert _subtract(left, right) == answer, "two different results"
    result = duel(
        lambda: seconds_of(lambda: _subtract(left, right)),
        lambda: session.ask(_LENGTH)[0],
        runs=options.runs,
    )
    return Line(
        work,
        f"{result.our_seconds:.3f} s",
        f"{session.name} GTID_SUBTRACT at work alone: {result.peer_seconds:.3f} s",
        f"{result.ratio:.2f}",
        evaluated("≤ 0.33", reached=result.ratio <= GOAL),
    )


def _beside_client(session: TimedSession, left: str, right: str, options: Options) -> Line:
    result = duel(
        lambda: seconds_of(lambda: _subtract(left, right)),
        lambda: session.ask("SELECT GTID_SUBTRACT(%s, %s)", (left, right))[0],
        runs=options.runs,
    )
    return Line(
        "the uneven ones, as a client sees it",
        f"{result.our_seconds:.3f} s",
        f"{session.name} GTID_SUBTRACT, texts sent, text fetched: {result.peer_seconds:.3f} s",
        f"{result.ratio:.2f}",
    )


def _subtract(left: str, right: str) -> str:
    return str(GtidSet.parse(left) - GtidSet.parse(right))
