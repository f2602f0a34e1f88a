"""Scripts as they were read and approved: no condition, order or statement changes unnoticed."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from repair.model.actions import Action
from repair.scripts.steps import Step
from repair.sql.privileges import PRIVILEGES, StatementKind, requirements
from tests.repair.build import NEW, OLD
from tests.repair.script_cases import MIDDLE, steps, transcript
from topology.readings.version import ServerVersion

APPROVED = Path(__file__).with_name("scripts.txt")
STEPS = steps()

# What a statement looks like that not every account may run.
SHAPES: Mapping[StatementKind, str] = {
    StatementKind.STEER_CHANNEL: r"\b(?:START|STOP) (?:REPLICA|SLAVE)|CHANGE (?:REPLICATION|MASTER)",
    StatementKind.SET_GTID_NEXT: r"SET SESSION gtid_next = .*'[0-9a-f-]{36}:[0-9]",
    StatementKind.SET_TAGGED_GTID_NEXT: r"SET SESSION gtid_next = .*'[0-9a-f-]{36}:[a-z]",
    StatementKind.SET_GTID_PURGED: r"SET GLOBAL gtid_purged",
    StatementKind.RESET_LOGS: r"RESET (?:MASTER|BINARY LOGS)",
    StatementKind.SET_SQL_LOG_BIN: r"SET SESSION sql_log_bin = 0",
    StatementKind.SET_RESTRICTED: (
        r"sql_(?:require|generate_invisible)_primary_key = [01]|SET SESSION binlog_format"
    ),
    StatementKind.CHANGE_DEFINITION: r"'ALTER TABLE .*ALGORITHM=",
    StatementKind.CREATE_VIEW: r"'CREATE VIEW",
    StatementKind.WRITE_ROWS: r"(?:INSERT INTO|UPDATE|DELETE FROM) `",
}
VERSIONS = {str(each): each for each in (OLD, MIDDLE, ServerVersion(5, 7, 44))}
_HEXADECIMAL = re.compile(r"_utf8mb4 0x(?P<digits>[0-9a-f]+)")


def test_every_script_is_the_one_that_was_approved() -> None:
    """Wrong? Read the difference; then `python -m tests.repair.script_cases > …/scripts.txt`."""
    assert transcript() == APPROVED.read_text()


def test_every_action_is_among_the_cases() -> None:
    assert {type(step.effect) for step in STEPS.values()} == set(Action.__args__)


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
def test_every_statements_privilege_is_in_the_list(step: Step) -> None:
    """A procedure declares what its statements need: by their shape, exactly that."""
    version = VERSIONS.get(_version_of(step), NEW)
    text = _HEXADECIMAL.sub(
        lambda found: bytes.fromhex(found["digits"]).decode(),
        "\n".join((*step.procedure.session, *step.procedure.statements)),
    )
    found = {kind for kind, shape in SHAPES.items() if re.search(shape, text)}
    if StatementKind.SET_GTID_PURGED in found and ":dba:" in text:
        found = found - {StatementKind.SET_GTID_PURGED} | {StatementKind.SET_TAGGED_GTID_PURGED}
    guards = "\n".join(
        guard.condition for guard in (*step.procedure.preconditions, *step.procedure.verifications)
    )
    if "replication_connection" in guards or "slave_master_info" in guards:
        found.add(StatementKind.READ_CHANNELS)
    if re.search(r"FROM `d`", f"{text}{guards}"):
        found.add(StatementKind.READ_ROWS)
    assert found, "there is no step without a privilege"
    assert set(step.privileges) == {str(each) for each in requirements(found, version)}


def _version_of(step: Step) -> str:
    return next(name for name, each in STEPS.items() if each is step).rpartition(", ")[2]


@pytest.mark.parametrize("kind", StatementKind)
@pytest.mark.parametrize("version", [OLD, NEW])
def test_every_kind_has_privileges_in_every_version(kind: StatementKind, version: object) -> None:
    assert isinstance(version, type(NEW))
    needed = PRIVILEGES[kind](version)
    assert needed
    if version == OLD and kind not in (StatementKind.RESET_LOGS, StatementKind.READ_CHANNELS):
        assert "_ADMIN" not in str(needed) or "TAGGED" in kind.name


def test_the_page_lists_every_privilege() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/repair-scripts.md").read_text()
    for kind in StatementKind:
        for version in (OLD, NEW):
            for needed in PRIVILEGES[kind](version):
                assert all(name in page for name in needed.one_of), needed
