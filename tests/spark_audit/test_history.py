"""Since when: findings over several runs, with gaps, unread clusters and clusters that went."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_audit.adapters.results import (
    NoResults,
    Results,
    findings_between,
    write_results,
)
from spark_audit.first_seen import with_first_seen
from spark_audit.results_frames import findings_of
from tests.spark_audit.audits import an_audit, frame_of, night, run_of, with_gtids
from topology.catalogue.findings import ClusterAudit
from topology.documents.records import time_to_text
from topology.finding_history import CARRIED_DAYS_MAX
from topology.policy import Policy

pytestmark = pytest.mark.spark


def audit_night(
    spark: SparkSession, directory: Path, number: int, *audits: ClusterAudit
) -> Results:
    return write_results(
        spark,
        frame_of(spark, audits),
        directory=str(directory),
        run=run_of(number),
        policy=Policy(),
    )


def since(results: Results, table: str = "findings") -> dict[tuple[str, str], tuple[str, str]]:
    """First and last seen of every finding, by cluster and code."""
    rows = getattr(results.tables, table).select(
        "cluster",
        "code",
        *(sf.unix_micros(name).alias(name) for name in ("first_seen", "last_seen")),
    )
    return {
        (row["cluster"], row["code"]): (text_of(row["first_seen"]), text_of(row["last_seen"]))
        for row in rows.collect()
    }


def text_of(microseconds: int) -> str:
    return time_to_text(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds))


def nights(first: int, last: int) -> tuple[str, str]:
    return time_to_text(night(first)), time_to_text(night(last))


# What is found of each cluster, night by night. "?" is a fact that was not read; a cluster without
# an entry is not in that night's run.
STORY = {
    "comes-back": {0: "H1 C3", 1: "H1", 2: "H1 C3", 3: "H1 C3"},
    "unread": {0: "H1 C3", 1: "?", 2: "C3 ?", 3: "H1 C3"},
    "unread-then-well": {0: "H1", 1: "?", 2: "", 3: "H1"},
    "left-for-a-night": {0: "H1", 1: "H1", 3: "H1"},
    "gone": {0: "H1"},
    "compared-once": {0: "E4 H1", 1: "", 2: "E4 H1"},
    "well": {0: "", 1: "", 2: "", 3: "", CARRIED_DAYS_MAX: "", CARRIED_DAYS_MAX + 1: ""},
}
NIGHTS = sorted({number for told in STORY.values() for number in told})


def audits_of_night(number: int) -> list[ClusterAudit]:
    audits = []
    for cluster, told in STORY.items():
        if number in told:
            codes = [code for code in told[number].split() if code != "?"]
            unread = ["channels"] if "?" in told[number] else []
            audits.append(an_audit(cluster, at=night(number), codes=codes, unread=unread))
    return audits


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history")


@pytest.fixture(scope="module")
def history(spark: SparkSession, directory: Path) -> dict[int, Results]:
    return {
        number: audit_night(spark, directory, number, *audits_of_night(number)) for number in NIGHTS
    }


Seen = dict[tuple[str, str], tuple[str, str]]


def of(cluster: str, told: Seen) -> dict[str, tuple[str, str]]:
    return {code: seen for (named, code), seen in told.items() if named == cluster}


def test_a_finding_says_since_when_and_one_that_went_begins_anew(
    history: dict[int, Results],
) -> None:
    told = {number: of("comes-back", since(history[number])) for number in range(4)}
    assert told[0] == {"H1": nights(0, 0), "C3": nights(0, 0)}
    assert told[1] == {"H1": nights(0, 1)}
    assert told[2] == {"H1": nights(0, 2), "C3": nights(2, 2)}
    assert told[3] == {"H1": nights(0, 3), "C3": nights(2, 3)}
    previous = [history[number].summary.previous for number in range(4)]
    assert previous == [None, run_of(0).text, run_of(1).text, run_of(2).text]


def test_a_cluster_that_was_not_read_disproves_nothing(history: dict[int, Results]) -> None:
    told = {number: of("unread", since(history[number])) for number in range(4)}
    kept = {number: of("unread", since(history[number], "carried")) for number in range(4)}
    assert (told[1], kept[1]) == ({}, {"H1": nights(0, 0), "C3": nights(0, 0)})
    assert (told[2], kept[2]) == ({"C3": nights(0, 2)}, {"H1": nights(0, 0)})
    assert (told[3], kept[3]) == ({"H1": nights(0, 3), "C3": nights(0, 3)}, {})


def test_a_cluster_that_was_read_and_is_well_ends_what_was_carried(
    history: dict[int, Results],
) -> None:
    assert of("unread-then-well", since(history[1], "carried")) == {"H1": nights(0, 0)}
    assert of("unread-then-well", since(history[2], "carried")) == {}
    assert of("unread-then-well", since(history[3])) == {"H1": nights(3, 3)}


def test_what_is_looked_for_once_is_not_disproved_by_a_run_that_does_not_look(
    history: dict[int, Results],
) -> None:
    assert of("compared-once", since(history[1], "carried")) == {"E4": nights(0, 0)}
    told = {"E4": nights(0, 2), "H1": nights(2, 2)}
    assert of("compared-once", since(history[2])) == told
    assert of("compared-once", since(history[2], "carried")) == {}


def test_a_cluster_that_left_is_carried_for_so_long_and_then_forgotten(
    history: dict[int, Results],
) -> None:
    assert of("left-for-a-night", since(history[3])) == {"H1": nights(0, 3)}
    last = CARRIED_DAYS_MAX
    assert of("gone", since(history[last], "carried")) == {"H1": nights(0, 0)}
    assert of("gone", since(history[last + 1], "carried")) == {}


def test_a_finding_that_grows_keeps_its_identity(spark: SparkSession) -> None:
    small = frame_of(spark, [an_audit("c", at=night(0), codes=("H1",))])
    large = frame_of(spark, [with_gtids(an_audit("c", at=night(1), codes=("H1",)), "51-99")])
    before, after = (findings_of(each) for each in (small, large))
    (found,) = with_first_seen(after, known=before).collect()
    assert found["id"] == before.collect()[0]["id"]
    assert (found["gtid_count"], before.collect()[0]["gtid_count"]) == (49, 3)
    assert found["first_seen"] == before.collect()[0]["first_seen"] < found["last_seen"]


@pytest.mark.slow
def test_the_run_before_is_the_one_before_by_name(spark: SparkSession, tmp_path: Path) -> None:
    audit_night(spark, tmp_path, 0, an_audit("c", at=night(0), codes=("H1",)))
    later = audit_night(spark, tmp_path, 5, an_audit("c", at=night(5), codes=("H1",)))
    between = audit_night(spark, tmp_path, 3, an_audit("c", at=night(3), codes=("H1",)))
    assert later.summary.previous == between.summary.previous == run_of(0).text
    assert since(between) == {("c", "H1"): nights(0, 3)}


def test_findings_between_two_moments(
    spark: SparkSession, directory: Path, history: dict[int, Results]
) -> None:
    assert len(history) == len(NIGHTS)
    found = findings_between(spark, str(directory), start=night(1), end=night(2))
    of_one = found.where("cluster = 'comes-back'").collect()
    assert [(row["run"], row["code"]) for row in of_one] == [(run_of(1).text, "H1")]
    every = findings_between(spark, str(directory), start=night(0), end=night(3))
    lasting = every.where("cluster = 'comes-back' and code = 'H1'").orderBy("run").collect()
    assert [row["run"] for row in lasting] == [run_of(number).text for number in range(3)]
    with pytest.raises(NoResults, match="no complete results from 2026-03"):
        findings_between(spark, str(directory), start=night(60), end=night(61))
