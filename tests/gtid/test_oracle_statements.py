"""A real 9.7 server as the oracle of what SET gtid_next and SET gtid_purged take.

Both have older readers than GTID_SUBTRACT, which is the definition: see DIFFERENCES.

The server is this file's own: it is made to forget everything between two sets.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pymysql
import pytest

from compose.native import shapes
from gtid import GNO_END, GNO_MAX, Gtid, GtidSet, MalformedGtid, MalformedGtidSet
from tests.gtid.texts import TAGS, UUIDS, mutated, valid_text
from tests.hypothesis_profiles import more_at_night

pytestmark = pytest.mark.mysql

SEED = 9704
MALFORMED_SET = 1772
MALFORMED_GTID = 1774
WRONG_VALUE = 1231
U = UUIDS[1]


class Difference(NamedTuple):
    """Where a variable's own reader and we do not agree."""

    variable: str
    form: str  # a pattern that every such text has
    text: str  # one of them
    theirs: str | None
    ours: str | None
    why: str


DIFFERENCES = (
    Difference("gtid_next", "^AUTOMATIC$", "AUTOMATIC", "AUTOMATIC", None,
               "a word of the variable: the server is to choose the GTID"),
    Difference("gtid_next", "^automatic:", "automatic:A", "AUTOMATIC:a", None,
               "likewise, under a tag"),
    Difference("gtid_next", r":\s*\+[0-9]", f"{U}:+1", f"{U}:1", None,
               "its numbers are read by strtoll, which takes a sign; those of sets are not"),
    Difference("gtid_next", r":\s*0[0-9]", f"{U}:010", f"{U}:8", f"{U}:10",
               "likewise, a first 0 means octal; to a set, and to us, 010 is ten"),
    Difference("gtid_next", r":\s*0x", f"{U}:0x10", f"{U}:16", None,
               "likewise, 0x means hexadecimal"),
    Difference("gtid_next", "\0", f"{U}:1\0x", f"{U}:1", None,
               "a text ends at its first NUL"),
    Difference("gtid_purged", "\0", f"{U}:1-2\0x", f"{U}:1-2", None,
               "a text ends at its first NUL"),
    Difference("gtid_purged", r"^\+", f"+{U}:1-2", f"{U}:1-2", None,
               "a sign of the variable: add to what is purged, and do not replace it"),
    # 9.7.4 reads gtid_purged as 5.6 reads all sets: by an older reader than GTID_SUBTRACT's.
    Difference("gtid_purged", r"\{", f"{{{U}}}:1-2", None, f"{U}:1-2",
               "the older reader knows no braces"),
    Difference("gtid_purged", "[0-9A-Fa-f]{32}", f"{U.replace('-', '')}:1", None, f"{U}:1",
               "likewise, a UUID needs its dashes"),
    Difference("gtid_purged", r"-\s*([:,]|$)", f"{U}:1-:5", f"{U}:5", None,
               "likewise, a dash without a number means nothing"),
    Difference("gtid_purged", r"[:-]\s*0[0-9]", f"{U}:1-010", f"{U}:1-8", f"{U}:1-10",
               "likewise, numbers are read by strtoll, to which a first 0 means octal"),
    Difference("gtid_purged", r"[:-]\s*0x", f"{U}:0x10", f"{U}:16", None,
               "likewise, 0x means hexadecimal"),
    Difference("gtid_purged", r"[:-]\s*\+[0-9]", f"{U}:+1", f"{U}:1", None,
               "likewise, it takes a sign"),
)  # fmt: skip


def reasons(variable: str, text: str) -> list[str]:
    """Why a variable may read a text in another way than we do."""
    return [
        row.why for row in DIFFERENCES if row.variable == variable and re.search(row.form, text)
    ]


@pytest.fixture(scope="module")
def cursor(installation97: Any) -> Iterator[Any]:
    with shapes.single(installation97) as one, one.connect() as session, session.cursor() as asked:
        yield asked


def gtid_next(cursor: Any, text: str) -> str | None:
    """What gtid_next is after it was set to a text; None if that is no GTID. Nothing is kept."""
    try:
        cursor.execute("SET SESSION gtid_next = %s", (text,))
    except pymysql.err.MySQLError as error:
        if error.args[0] not in (MALFORMED_GTID, WRONG_VALUE):
            raise
        return None
    cursor.execute("SELECT @@SESSION.gtid_next")
    [[kept]] = cursor.fetchall()
    cursor.execute("ROLLBACK")
    cursor.execute("SET SESSION gtid_next = AUTOMATIC")
    return str(kept)


def gtid_purged(cursor: Any, text: str) -> str | None:
    """What gtid_purged is after it was set to a text; None if that is no set. Nothing is kept."""
    try:
        cursor.execute("SET GLOBAL gtid_purged = %s", (text,))
    except pymysql.err.MySQLError as error:
        if error.args[0] not in (MALFORMED_SET, WRONG_VALUE):
            raise
        return None
    cursor.execute("SELECT @@GLOBAL.gtid_purged")
    [[kept]] = cursor.fetchall()
    if kept:
        cursor.execute("RESET BINARY LOGS AND GTIDS")
    return str(kept)


def our_gtid(text: str) -> str | None:
    try:
        return str(Gtid.parse(text))
    except MalformedGtid:
        return None


def our_set(text: str) -> str | None:
    try:
        return GtidSet.parse(text).to_text(separator=",\n")
    except MalformedGtidSet:
        return None


GTIDS = [f"{U}:1", f" {U.upper()} : 1 ", f"{U}:DbA:007", f"{U}: a : 1", f"\n{U}\t:\v1\f"]
GTIDS += [f"{U}:{GNO_MAX}", f"{U}:{GNO_END}", U, f"{U}:0", f"{U}:", f"{U}:a:", f"{U}:a:b:1"]
GTIDS += [f"{U}:a", f"{{{U}}}:1", f"{U.replace('-', '')}:1", f"{U}:1-1", "x", f"{U}:1:2"]
GTIDS += [f"{U}:1,", f",{U}:1", f"{U}:{'t' * 33}:1"]


@pytest.mark.parametrize("text", GTIDS)
def test_one_gtid_is_read_as_gtid_next_is(cursor: Any, text: str) -> None:
    assert our_gtid(text) == gtid_next(cursor, text)


READERS: dict[str, tuple[Callable[[Any, str], str | None], Callable[[str], str | None]]] = {
    "gtid_next": (gtid_next, our_gtid),
    "gtid_purged": (gtid_purged, our_set),
}


def assert_taken_or_refused_alike(cursor: Any, variable: str, texts: Iterable[str]) -> None:
    """Hold a variable's reader to ours, but where the two are known to differ."""
    theirs, ours = READERS[variable]
    seen = Counter[str]()
    for text in texts:
        answer = theirs(cursor, text)
        if ours(text) == answer:
            seen["refused" if answer is None else "taken"] += 1
        else:
            assert reasons(variable, text), (SEED, text, answer)
            seen["differing"] += 1
    assert seen["taken"] > 4 / 15 * seen.total(), "the mutations have become too wild"
    assert seen["refused"] > 4 / 15 * seen.total(), "the mutations have become too mild"
    assert seen["differing"] < 2 / 15 * seen.total(), "a difference should be understood better"


def a_gtid(rng: random.Random) -> str:
    number = rng.choice([rng.randint(1, 30), GNO_MAX - rng.randint(0, 3)])
    tag = [rng.choice(TAGS)] if rng.random() < 0.4 else []
    text = rng.choice([":", " :", ":\n"]).join([rng.choice(UUIDS), *tag, f"{number}"])
    return mutated(rng, text) if rng.random() < 0.7 else text


def a_set(rng: random.Random) -> str:
    text = valid_text(rng, tagged=True)
    return mutated(rng, text) if rng.random() < 0.75 else text


def test_mutated_gtids_are_taken_or_refused_alike(cursor: Any) -> None:
    rng = random.Random(SEED)
    assert_taken_or_refused_alike(cursor, "gtid_next", (a_gtid(rng) for _ in range(1_500)))


def test_sets_are_taken_or_refused_as_gtid_purged_takes_them(cursor: Any) -> None:
    rng = random.Random(SEED)
    # After each the server has to forget it, which takes its time. Fewer prove nothing.
    count = max(300, more_at_night(600))
    assert_taken_or_refused_alike(cursor, "gtid_purged", (a_set(rng) for _ in range(count)))


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: f"{row.variable}: {row.why}")
def test_the_known_differences(cursor: Any, row: Difference) -> None:
    theirs, ours = READERS[row.variable]
    assert theirs(cursor, row.text) == row.theirs
    assert ours(row.text) == row.ours != row.theirs
    assert reasons(row.variable, row.text)
