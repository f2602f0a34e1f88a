"""B1: two very fragmented sets, text → subtract → text, beside a server's GTID_SUBTRACT."""

from benchmarks.generate.sets import fragmented_set
from benchmarks.measuring import Line, Options, Section, duel, judged, seconds_of
from benchmarks.peers import mysqld
from gtid import GtidSet

INTERVALS = 1_000_000
GOAL = 1 / 3


def two_large_sets(options: Options) -> Section:
    """Subtract a set of a million intervals from another.

    The server is timed in two ways: as a client sees it, both texts going in and one coming out,
    and at work alone, on texts it already holds and for an answer of one number. The second is the
    smaller figure, and the one that ours is compared with.
    """
    left, right = (fragmented_set(INTERVALS, seed=seed) for seed in (1, 2))
    with mysqld() as session:
        _, answer = session.ask("SELECT GTID_SUBTRACT(%s, %s)", (left, right))
        assert str(GtidSet.parse(left) - GtidSet.parse(right)) == answer, "two different results"
        session.ask("SET @left_set = %s", (left,))
        session.ask("SET @right_set = %s", (right,))

        def ours() -> float:
            return seconds_of(lambda: str(GtidSet.parse(left) - GtidSet.parse(right)))

        def alone() -> float:
            return session.ask("SELECT LENGTH(GTID_SUBTRACT(@left_set, @right_set))")[0]

        def as_client() -> float:
            return session.ask("SELECT GTID_SUBTRACT(%s, %s)", (left, right))[0]

        beside_work = duel(ours, alone, runs=options.runs)
        beside_client = duel(ours, as_client, runs=options.runs)
    megabytes = f"{(len(left) + len(right)) / 1e6:.0f} MB of text"
    work = f"subtract two sets of {INTERVALS:,} intervals, {megabytes}, text to text"
    return Section(
        "two large sets",
        (
            Line(
                work,
                f"{beside_work.our_seconds:.3f} s",
                f"{session.name} GTID_SUBTRACT, on texts it holds, only the length of the answer"
                f" fetched: {beside_work.peer_seconds:.3f} s",
                f"{beside_work.ratio:.2f}",
                judged("≤ 0.33", reached=beside_work.ratio <= GOAL),
            ),
            Line(
                "the same",
                f"{beside_client.our_seconds:.3f} s",
                f"{session.name} GTID_SUBTRACT, texts sent, text fetched:"
                f" {beside_client.peer_seconds:.3f} s",
                f"{beside_client.ratio:.2f}",
            ),
        ),
        ("Both answers are the same text, compared before the first run that counts.",),
    )
