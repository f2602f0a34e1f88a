"""The next steps of a report: complete commands that fit the finding, without servers."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from gtid import GtidSet
from gtid_audit.operands.servers_in_commands import (
    ServersInCommands,
    not_reachable,
    servers_of_fleet,
    typed_servers,
)
from gtid_audit.output_form import OutputForm
from gtid_audit.views.drawn_answer import WIDTH, drawn_answer
from gtid_audit.views.next_steps import SET_CHARACTERS_MAX, grants, next_parts, next_steps
from gtid_audit.views.report_text import show
from tests.gtid_audit.shown_commands import dsns_in, parsed
from tests.repair import cases
from tests.snapshots import A, B, a_cluster, a_server, an_unread
from topology.adapters.inventory.fleet_file import load_fleet
from topology.catalogue.findings import Evidence, Finding, Unknown
from topology.catalogue.next_step_table import NEXT_STEPS
from topology.catalogue.verdict_table import CATALOGUE
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import Secret, ServerTarget
from topology.rules.schema_differences import DRIFT_COMMAND

DSN_A, DSN_B = "mysql://audit@a:1/?ssl=required&ssl_cert=c d&ssl_key=k", "audit@b:2"
NAMES = {"a": DSN_A, "b": DSN_B}
SERVERS = ServersInCommands(NAMES)
SOME = f"{A}:6-8"


def a_finding(code: str, wanted: str) -> Finding:
    return replace(cases.a_finding(code, ""), gtid_set=GtidSet.parse(wanted))


def steps_of(
    *findings: Finding,
    servers: ServersInCommands = SERVERS,
    snapshot: ClusterSnapshot | None = None,
) -> list[str]:
    taken: Mapping[str, ClusterSnapshot] = {} if snapshot is None else {"cluster": snapshot}
    return [each.text for each in next_steps(findings, named=lambda _: servers, snapshots=taken)]


def commands_in(steps: list[str]) -> list[str]:
    return [each for each in steps if each.startswith("gtid-audit ")]


def held_by(**logged: str) -> ClusterSnapshot:
    """Return a cluster in which all have SOME, and these have a part of it in their logs."""
    whole = GtidSet.parse(SOME)
    servers = {"a": A, "b": B, "c": B}
    return a_cluster(
        "cluster",
        *(
            a_server(name, uuid, SOME, gtid_purged=whole - GtidSet.parse(logged.get(name, "")))
            for name, uuid in servers.items()
        ),
    )


def test_every_code_has_steps() -> None:
    assert NEXT_STEPS.keys() == CATALOGUE.keys()
    assert all(any(step.is_command for step in steps) for steps in NEXT_STEPS.values())


@pytest.mark.parametrize("code", CATALOGUE)
@pytest.mark.parametrize("has_fleet", [True, False])
def test_every_command_is_complete(code: str, *, has_fleet: bool) -> None:
    selection = ("--fleet", "my fleet.yaml", "--cluster", "orders") if has_fleet else ()
    servers = replace(SERVERS, selection=selection, options=("--ask-password",))
    steps = steps_of(a_finding(code, SOME), servers=servers, snapshot=held_by(a=SOME, b=SOME))
    assert commands_in(steps) != []
    for command in commands_in(steps):
        values = parsed(command)
        assert "…" not in command
        if values["command"] == "plan":
            assert (values["pair"] is None) is has_fleet
            assert values["out"] == Path("plan")
        # A fleet file has its own accounts: the option is for DSNs.
        assert values.get("ask_password", False) is any(dsns_in(values))
    assert len(commands_in(steps)) >= len(
        [each for each in NEXT_STEPS[code] if each.is_command and "{consumer}" not in each.text]
    )


@pytest.mark.parametrize("code", CATALOGUE)
def test_without_servers_a_command_is_left(code: str) -> None:
    steps = steps_of(replace(a_finding(code, ""), source=None), servers=ServersInCommands())
    assert commands_in(steps) == [f"gtid-audit explain {code}"]


@pytest.mark.parametrize(
    ("code", "first", "second"),
    [
        ("E1", f"binlog show {SOME} audit@b:2", "repair plan --pair"),
        ("E2", f"binlog show {SOME} audit@b:2", "repair plan --pair"),
        ("E3", f"binlog show {SOME} audit@b:2", "repair plan --pair"),
        ("H1", f"binlog show {SOME} 'mysql://audit@a:1/?ssl=", "repair plan --pair"),
        ("J3", f"binlog show {SOME} audit@b:2", "handshake 'mysql://"),
        ("A2", "trace audit@b:2", "repair plan --pair"),
        ("A3", "trace audit@b:2", "repair plan --pair"),
        ("A4", "trace audit@b:2", "handshake 'mysql://"),
        ("A5", "locks audit@b:2", None),
        ("P5", "handshake 'mysql://", "explain P5"),
        ("S1", "schema versions 'mysql://", "explain S1"),
    ],
)
def test_the_first_step_fits_the_finding(code: str, first: str, second: str | None) -> None:
    found = commands_in(steps_of(a_finding(code, SOME), snapshot=held_by(a=SOME, b=SOME)))
    assert found[0].startswith(f"gtid-audit {first}")
    assert [each.startswith(f"gtid-audit {second}") for each in found[1:2]] == [True] * bool(second)


def test_the_content_is_read_where_it_is_logged() -> None:
    purged = a_finding("E2", SOME)
    three = replace(SERVERS, dsns={**NAMES, "c": "audit@c:3"})
    shown = steps_of(purged, servers=three, snapshot=held_by(c=SOME))
    assert shown[0] == f"gtid-audit binlog show {SOME} audit@c:3"
    part = steps_of(purged, snapshot=held_by(a=f"{A}:8"))
    assert part[0].startswith(f"gtid-audit binlog show {A}:8 'mysql://audit@a:1/")
    assert part[1] == "(1 of 3 transactions; a does not have the others in its binary logs)"
    assert steps_of(purged, snapshot=held_by())[0].startswith("gtid-audit repair plan")
    unread = a_cluster("cluster", a_server("a", A, SOME), an_unread("b"))
    assert steps_of(purged, snapshot=unread)[0].startswith(f"gtid-audit binlog show {SOME} 'mysql")
    alone = replace(purged, source=None)
    assert steps_of(alone, snapshot=held_by(b=SOME))[0].endswith(" audit@b:2")
    # Without a snapshot only the rule shows that a server has them.
    assert "binlog show" not in steps_of(purged)[0]
    assert steps_of(a_finding("E1", SOME))[0] == f"gtid-audit binlog show {SOME} audit@b:2"
    assert "mysql://audit@a:1/" in steps_of(a_finding("H1", SOME))[0]


def test_what_cannot_wait_comes_first() -> None:
    first, *others = steps_of(
        a_finding("A2", SOME), a_finding("E3", SOME), snapshot=held_by(a=SOME, b=SOME)
    )
    assert first.startswith("Stop writes on a now: it assigns GTIDs again that b already has")
    assert [each.split()[1] for each in others] == ["trace", "binlog", "repair"]
    [stop, _] = steps_of(replace(a_finding("A9", ""), source=None))
    assert stop.startswith("Stop writes on b now:")
    unnamed = replace(a_finding("E3", SOME), source=None)
    assert "None" not in " ".join(steps_of(unnamed))


def test_further_codes_add_their_first_command() -> None:
    conflict, joining = a_finding("A2", SOME), a_finding("J3", SOME)
    both = steps_of(conflict, joining, conflict, snapshot=held_by(b=SOME))
    assert [each.split()[1] for each in both] == ["trace", "binlog", "repair"]
    codes = [a_finding(code, SOME) for code in ("A5", "A3", "A4", "P5", "S1", "S2")]
    assert [each.split()[1] for each in steps_of(*codes)] == [
        *("locks", "trace", "handshake", "schema"),
        "repair",
    ]


def test_a_plan_is_for_all_servers_of_the_audit() -> None:
    backwards = replace(a_finding("E1", SOME), source="b", replica="a")
    assert parsed(steps_of(backwards)[-1])["pair"] == (DSN_A, DSN_B)
    three = replace(SERVERS, dsns={"c": "audit@c:3", **NAMES})
    alone = replace(backwards, source=None)
    for found in (backwards, alone):
        planned = parsed(steps_of(found, servers=three)[-1])
        assert planned["dsns"] == ("audit@c:3", DSN_A, DSN_B)
        assert planned["pair"] is None
    many = replace(SERVERS, dsns={**{f"s{at}": f"audit@s{at}:1" for at in range(7)}, **NAMES})
    assert parsed(steps_of(backwards, servers=many)[-1])["pair"] == (DSN_B, DSN_A)
    assert len(steps_of(alone, servers=many)) == 1


def test_a_consumer_is_in_a_fleet_file() -> None:
    fleet = replace(SERVERS, selection=("--fleet", "f", "--cluster", "c"))
    late = replace(a_finding("P4", SOME), replica="cdc")
    assert steps_of(late, servers=fleet)[0] == (
        "gtid-audit handshake --fleet f --cluster c --consumer cdc"
    )
    assert steps_of(late) == ["gtid-audit explain P4"]
    assert steps_of(replace(late, replica=None), servers=fleet) == ["gtid-audit explain P4"]


@pytest.mark.parametrize(("count", "first"), [(1, "explain"), (8, "handshake"), (9, "explain")])
def test_a_command_names_few_servers(count: int, first: str) -> None:
    servers = ServersInCommands({f"s{at}": f"audit@s{at}:1" for at in range(count)})
    assert steps_of(a_finding("J1", SOME), servers=servers)[0].split()[1] == first


def test_only_commands_are_marked_as_commands() -> None:
    codes = [a_finding(code, f"{A}:1,{B}:1") for code in CATALOGUE]
    for each in codes:
        steps = next_steps([each], named=lambda _: SERVERS, snapshots={"cluster": held_by(b=SOME)})
        assert [one.is_command for one in steps] == [
            one.text.startswith("gtid-audit ") for one in steps
        ]
    part = next_steps(
        [a_finding("E1", f"{SOME},{B}:1")],
        named=lambda _: SERVERS,
        snapshots={"cluster": held_by(b=SOME)},
    )
    assert [each.is_command for each in part] == [True, False, True]
    denied = [Unknown("c", "a", "channels", "privilege: no")]
    assert [each.is_command for each in grants(denied)] == [False]
    # `--content` finds what only the memory of an audit led to.
    plan = steps_of(a_finding("C3", ""))[1]
    assert steps_of(a_finding("E4", "")) == [f"{plan} --content"]
    # So does `--definitions`: without it the plan had no findings, and ended with 0.
    assert steps_of(a_finding("S2", ""))[1] == f"{plan} --definitions"
    assert steps_of(a_finding("E4", ""), a_finding("S2", ""))[-1] == (
        f"{plan} --content --definitions"
    )


def test_the_first_command_is_about_the_most_severe() -> None:
    """Offline no server can be asked: `explain` of the first finding, and not of another one."""
    nothing = ServersInCommands()
    hole, remark = a_finding("H1", SOME), a_finding("C3", "")
    assert steps_of(hole, remark, servers=nothing)[0] == "gtid-audit explain H1"
    assert steps_of(hole, remark)[0].startswith("gtid-audit binlog show ")


def test_a_long_set_is_cut() -> None:
    whole = ",".join(f"{A}:{number}" for number in range(1, 2001, 2))
    command, note, *_ = steps_of(a_finding("E1", whole))
    wanted = GtidSet.parse(parsed(command)["wanted"])
    assert SET_CHARACTERS_MAX / 2 < len(str(wanted)) <= SET_CHARACTERS_MAX
    assert wanted == GtidSet.parse(whole).first(wanted.gtid_count)
    assert note == (
        f"(the first {wanted.gtid_count} of 1,000 transactions; --json has the whole set, which"
        " can stand here as @FILE)"
    )
    uuids = ",".join(f"{UUID(int=number)}:1-2" for number in range(1, 100))
    wanted = GtidSet.parse(parsed(steps_of(a_finding("E1", uuids))[0])["wanted"])
    assert len(str(wanted)) <= SET_CHARACTERS_MAX
    assert len(wanted.tsids) > SET_CHARACTERS_MAX / 50
    assert "first" not in " ".join(steps_of(a_finding("E1", f"{A}:1-1000000")))


def test_a_command_of_a_rule_is_kept_without_dsns() -> None:
    rule = 'gtid-audit schema drift "mysql://a@x:1/" "mysql://a@y:2/" --schema shop'
    made = a_finding("S2", "")
    found = replace(made, evidence=(Evidence(DRIFT_COMMAND, rule, "b", made.first_seen),))
    assert steps_of(found, servers=ServersInCommands()) == [rule]
    only_file = ServersInCommands(selection=("--fleet", "f", "--cluster", "c"))
    assert [each.split()[1] for each in steps_of(found, servers=only_file)] == ["schema", "repair"]
    assert steps_of(found)[0].endswith(" audit@b:2 --schema shop")
    assert parsed(steps_of(found)[0])["schema"] == ["shop"]


def test_only_the_cluster_of_the_first_finding_gets_commands() -> None:
    other = replace(a_finding("A5", SOME), cluster="other")
    assert [each.split()[1] for each in steps_of(a_finding("A3", SOME), other)] == [
        "trace",
        "repair",
    ]


def test_servers_are_named_as_they_were_typed() -> None:
    given = [ServerTarget(name, name[0], 1, "audit", Secret("hush")) for name in ("a:1", "b:2")]
    typed = (DSN_A, DSN_B)
    named = typed_servers(typed, given, ["a:1", "b:2", "c:3"], ask=True)("servers")
    assert dict(named.dsns) == {
        "a:1": DSN_A,
        "b:2": DSN_B,
        "c:3": "mysql://audit@c:3/?ssl=required&ssl_cert=c d&ssl_key=k",
    }
    assert named.options == ("--ask-password",)
    assert typed_servers(typed, given, [], ask=False)("servers").options == ()
    assert "hush" not in repr(named)
    assert not_reachable("x") == ServersInCommands()


def test_a_fleet_file_selects_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(
        "defaults: {user: audit, password: {env: AUDIT}}\nclusters:\n"
        "  - {name: x, servers: [{name: a, host: db1}, {name: b, host: db2, port: 3307}]}\n"
    )
    fleet = load_fleet(file, environment={"AUDIT": "hush"}, warn=pytest.fail)
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    monkeypatch.delenv("GTID_AUDIT_PASSWORD", raising=False)
    named = servers_of_fleet(fleet, file)
    assert dict(named("x").dsns) == {
        "a": "mysql://audit@db1:3306/",
        "b": "mysql://audit@db2:3307/",
    }
    assert named("x").selection == ("--fleet", str(file), "--cluster", "x")
    assert named("x").options == ("--ask-password",)
    assert named("y") == ServersInCommands()
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", "hush")
    assert named("x").options == ()


def test_what_to_grant() -> None:
    unknown = [
        Unknown("c", "a", "channels", "privilege: Access denied"),
        Unknown("c", "a", "log_end", "privilege: Access denied"),
        Unknown("c", "b", "channels", "privilege: Access denied"),
        Unknown("c", "b", "workers", "privilege: SELECT command denied"),
        Unknown("c", "c", "workers", "privilege: only with the privilege PROCESS"),
        Unknown("c", "b", "content", "the server refused the binlog dump: error 1227: denied"),
        Unknown("c", "d", "channels", "timeout: no answer"),
        Unknown("c", "d", "content", "the server refused the binlog dump: error 1236: gone"),
    ]
    said = [each.text for each in grants(unknown)]
    assert [each.partition(" TO ")[0] for each in said] == [
        "On the primary, so that it reaches c: GRANT PROCESS ON *.*",
        "On the primary, so that it reaches a, b: GRANT REPLICATION CLIENT ON *.*",
        "On the primary, so that it reaches b: GRANT REPLICATION SLAVE ON *.*",
        "On the primary, so that it reaches b: GRANT SELECT ON performance_schema.*",
    ]
    many = [Unknown("c", f"s{at}", "channels", "privilege: no") for at in range(9)]
    assert "s7 and 1 more server: GRANT" in grants(many)[0].text
    assert "s6, s7: GRANT" in grants(many[:8])[0].text
    assert next_parts([], [], named=not_reachable, snapshots={}) == []
    assert len(next_parts([], many, named=not_reachable, snapshots={})) == 2
    # No privilege makes MariaDB a server that is evaluated.
    other = replace(a_finding("U4", ""), cluster="c", replica="s0")
    assert len(next_parts([other], many[:1], named=not_reachable, snapshots={})) == 2
    assert len(next_parts([other], many[:2], named=not_reachable, snapshots={})) == 3
    elsewhere = replace(other, cluster="d")
    assert len(next_parts([elsewhere], many[:1], named=not_reachable, snapshots={})) == 3


def test_a_command_is_broken_only_in_a_picture(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    findings = [a_finding("E3", SOME)]

    def shown() -> None:
        show(*next_parts(findings, (), named=lambda _: SERVERS, snapshots={}))

    shown()
    _, *lines = capsys.readouterr().out.splitlines()
    commands = [line.strip() for line in lines if line.strip().startswith("gtid-audit")]
    assert lines[0].startswith("Next: Stop writes on a")
    assert commands == commands_in(steps_of(*findings))
    assert max(len(line) for line in lines if "gtid-audit" not in line) <= 40
    page = drawn_answer(shown, OutputForm.HTML, title="x").partition("<code>")[2]
    drawn = [re.sub("<[^>]*>", "", line) for line in page.splitlines()]
    assert drawn[1].startswith("Next: Stop writes on a now")
    assert max(map(len, map(html.unescape, drawn))) <= WIDTH
    findings = [a_finding("H1", SOME)]
    shown()
    assert capsys.readouterr().out.startswith("\nNext: gtid-audit binlog show ")
