"""The texts with which a source refuses a replica change at a version, all of them at once."""

from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B
from topology.facts.refusal_texts import (
    RefusalText,
    mode_text,
    more_gtids_text,
    no_log_text,
    no_server_id_text,
    purged_text,
    same_id_text,
    same_uuid_text,
)
from topology.readings.version import ServerVersion


@pytest.mark.parametrize("edge", [ServerVersion(8, 0, 0), ServerVersion(8, 4, 0)])
def test_the_first_version_with_new_words_has_them(edge: ServerVersion) -> None:
    """The release before has the former words or numbers in each text."""
    later = ServerVersion(edge.major, edge.minor, 1)
    before = ServerVersion(5, 7, 99) if edge.minor == 0 else ServerVersion(8, 3, 99)

    def texts(version: ServerVersion) -> list[RefusalText | None]:
        sent, missing = GtidSet.parse(f"{A}:1"), GtidSet.parse(f"{B}:1")
        many = GtidSet.union_of(GtidSet.parse(f"{UUID(int=each)}:1") for each in range(9))
        return [
            purged_text(version, version, sent=sent, missing=missing),
            purged_text(version, version, sent=many, missing=missing),
            more_gtids_text(version, version),
            no_log_text(version, version),
            no_server_id_text(version, version),
            same_id_text(version),
            same_uuid_text(version),
            mode_text("ON_PERMISSIVE", version),
        ]

    plain = [[each and (each.errno, each.text) for each in texts(v)] for v in (edge, later, before)]
    assert plain[0] == plain[1]
    assert all(now != then for now, then in zip(plain[0], plain[2], strict=True))


def test_sets_that_do_not_fit_are_left_out_of_the_message() -> None:
    """The server has 512 bytes for it (seen on 9.7.4 in test_handshake_live.py)."""
    version, missing = ServerVersion(9, 7, 4), GtidSet.parse(f"{B}:1")
    many = GtidSet.union_of(GtidSet.parse(f"{UUID(int=each)}:1") for each in range(9))
    assert str(B) in purged_text(version, version, sent=missing, missing=missing).text
    assert str(B) not in purged_text(version, version, sent=many, missing=missing).text
