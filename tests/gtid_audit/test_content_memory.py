"""What an audit with --out remembers of its looks at contents, and what it must not."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid_audit import content_due, content_fleet
from gtid_audit.cli import run
from gtid_audit.content_due import Looked
from gtid_audit.content_memory import LOOKS, read_looks, write_looks
from gtid_audit.exits import UsageProblem
from tests.gtid_audit.build import half_read, healthy
from tests.gtid_audit.test_content import NOON, started
from tests.snapshots import A, B
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.fleet import Fleet
from topology.contents import ContentReading
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot

FLEET = Fleet((), CollectLimits(), 1, Policy())


def test_looks_are_kept(tmp_path: Path) -> None:
    assert read_looks(tmp_path / "nowhere") == {}
    looks = {B: NOON, A: NOON + timedelta(microseconds=7)}
    write_looks(tmp_path, looks)
    assert read_looks(tmp_path) == looks
    written = (tmp_path / LOOKS).read_text()
    write_looks(tmp_path, dict(reversed(looks.items())))
    assert (tmp_path / LOOKS).read_text() == written
    assert [file.name for file in tmp_path.iterdir()] == [LOOKS]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "\x00", '{"layout": 2}', '{"layout": 1, "looked_at": []}'),
        '{"layout": 1, "looked_at": {"x": "y"}}',
        f'{{"layout": 1, "looked_at": {{"{A}": 5}}}}',
    ],
)
def test_what_is_no_record_of_looks_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / LOOKS).write_text(text)
    with pytest.raises(UsageProblem, match=LOOKS):
        read_looks(tmp_path)
    with pytest.raises(UsageProblem, match="directory"):
        write_looks(tmp_path / "nowhere", {})


def looked(
    snapshot: ClusterSnapshot,
    answer: Looked | Exception,
    monkeypatch: pytest.MonkeyPatch,
    *,
    chosen: bool | None = None,
) -> content_fleet.FleetContents | None:
    def read(*_args: object, **_named: object) -> Looked:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("gtid_audit.content.read_contents", read)
    return content_fleet.compare_contents(FLEET, [snapshot], chosen, seen={})


def test_a_look_that_could_not_be_made_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = started(healthy(), 10, 10)
    reading = ContentReading(NOON, 4, (), (), ())
    both = {A: recent.last[0].read_started, B: recent.last[1].read_started}
    cases: list[tuple[Looked | Exception, set[UUID]]] = [
        (Looked(reading), {A, B}),
        (Looked(reading, frozenset({"a"})), {B}),
        (Looked(None, frozenset({"a", "b"})), set()),
        (RuntimeError("ours"), set()),
    ]
    for answer, remembered in cases:
        found = looked(recent, answer, monkeypatch)
        assert found is not None
        assert found.looks == {uuid: both[uuid] for uuid in remembered}
    assert looked(recent, Looked(reading), monkeypatch, chosen=False) is None


def test_who_was_not_due_has_been_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    never = AssertionError("nothing is due")
    found = looked(started(healthy(), 10**6, 10**6), never, monkeypatch)
    assert found is not None
    assert found.readings == {}
    assert found.looks.keys() == {A, B}
    found = looked(half_read(), never, monkeypatch)
    assert found is not None
    assert B not in found.looks
    unsure = started(healthy(), 10**6, 10**6)
    nameless = replace(unsure.last[0], uptime_seconds=None)
    found = looked(replace(unsure, last=(nameless, unsure.last[1])), never, monkeypatch)
    assert found is not None
    assert found.looks.keys() == {B}


def test_a_restart_since_the_last_audit_is_looked_behind_and_then_no_more(
    pair97: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As if all of it were long ago: the last day, which is looked at always, has no length."""
    monkeypatch.setattr(content_due, "RECENT", timedelta())
    fleet, out = tmp_path / "fleet.yaml", tmp_path / "history"
    servers = "".join(
        f"  - {{name: {name}, host: {server.host}, port: {server.port}, user: root}}\n"
        for name, server in pair97.servers.items()
    )
    fleet.write_text(f"clusters:\n- name: shop\n  servers:\n{servers}")

    def audited(*options: str) -> tuple[list[str], set[str]]:
        """Return the codes that were found, and the servers whose starts were looked behind."""
        capsys.readouterr()
        run(["audit", "--fleet", str(fleet), "--engine", "local", "--json", *options])
        found = json.loads(capsys.readouterr().out)
        codes = [each["code"] for each in found["findings"] if each["severity"] != "info"]
        return codes, {start["server"] for each in found["contents"] for start in each["starts"]}

    def settled(server: Server) -> None:
        """Wait until a start is older than an uptime's whole seconds and a slow reading blur."""
        up = int(server.query("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1])
        server.execute(f"DO SLEEP({max(0, 6 - up)})")

    kept = ("--out", str(out))
    settled(pair97.a)
    settled(pair97.b)
    assert audited(*kept)[0] == []
    assert set(read_looks(out)) == {
        UUID(server.value("@@GLOBAL.server_uuid")) for server in pair97.servers.values()
    }
    faults.reused_numbers(pair97)
    settled(pair97.a)
    assert audited() == ([], set())  # without a memory nobody knows of it
    assert audited(*kept) == (["E4"], {"a"})
    assert audited(*kept) == ([], set())
