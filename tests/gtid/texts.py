"""Texts of GTID sets, valid and spoilt, with a twin that never parses: what each valid one holds.

All randomness comes from the generator that is given, and so from a seed.
"""

import random
from collections.abc import Sequence

from gtid import GNO_END, GNO_MAX

UUIDS = [
    "00000000-0000-0000-0000-000000000000",
    "3e11fa47-71ca-11e1-9e33-c80aa9429562",
    "3E11FA47-71CA-11E1-9E33-C80AA9429562",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
]
TAGS = ["a", "_", "DbA", "b2_", "t" * 32]
PIECES = [*":::,--", "--", *" \n\t\v\f\r1290", "00", "a", "Z_1", "t" * 33, *"{}+.", "\x00", "\x1c"]
PIECES += ["0x10", "1e3", *map(str, (GNO_MAX, GNO_END, 2**63, 2**64 + 1)), "9" * 40]
PIECES += [UUIDS[0], UUIDS[0].replace("-", ""), "{" + UUIDS[1] + "}", ":a:", ":1-3", ":5-4", ":7-0"]
PLAIN_PIECES = [*"::,- \n129", str(GNO_MAX), str(GNO_END), ":1-3", ":5-4", ".", "x", ":0"]
PLAIN_PIECES += [UUIDS[0], ":" + UUIDS[1], "," + UUIDS[2]]

# The twin looks at these numbers only; every end of every interval below lies among them.
SEEN = (*range(1, 45), *range(GNO_MAX - 20, GNO_MAX + 1))

Twin = frozenset[tuple[str, int]]  # a TSID's text in lower case, and one of SEEN


def valid_text(rng: random.Random, *, tagged: bool) -> str:
    return valid_text_and_twin(rng, tagged=tagged)[0]


def valid_text_and_twin(rng: random.Random, *, tagged: bool) -> tuple[str, Twin]:
    """Write a set in one of the ways a server takes, and say what of SEEN is in it."""
    entries = []
    held: set[tuple[str, int]] = set()
    for _ in range(rng.randint(0, 4)):
        uuid = rng.choice(UUIDS)
        tokens, tsid = [uuid], uuid.lower()
        for _ in range(rng.randint(0, 5)):
            if tagged and rng.randint(0, 3) == 0:
                tag = rng.choice(TAGS)
                tokens.append(tag)
                tsid = f"{uuid}:{tag}".lower()
                continue
            start = rng.choice([rng.randint(1, 30), GNO_MAX - rng.randint(0, 3)])
            last = rng.choice([start, max(0, min(GNO_MAX, start + rng.randint(-2, 9)))])
            if rng.randint(0, 9) == 0:
                last = max(start, GNO_MAX - 7)
            tokens.append(f"{start}" if last == start and rng.random() < 0.5 else f"{start}-{last}")
            held.update((tsid, number) for number in SEEN if start <= number <= last)
        entries.append(":".join(tokens))
    return rng.choice([",", ",\n", " , ", ",,"]).join(entries), frozenset(held)


def mutated(rng: random.Random, text: str, pieces: Sequence[str] = PIECES) -> str:
    """Spoil a text in one to three places, or only change it."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(["", *pieces]) + text[at + rng.choice([0, 0, 1, 2]) :]
    return text
