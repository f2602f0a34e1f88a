import json
from uuid import UUID

import pytest
from rich.rule import Rule
from rich.text import Text

from gtid import GtidSet
from gtid_audit.output import on_one_line, printable, without_credentials, write_json
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.report_parts import Unwrapped
from gtid_audit.views.report_text import labelled, show, show_report
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.readings.snapshot import ClusterSnapshot, ThreadState


def shown(
    capsys: pytest.CaptureFixture[str], *snapshots: ClusterSnapshot, pictures: bool = True
) -> str:
    report = report_of(Engine.LOCAL, [audit_cluster(each) for each in snapshots])
    show_report(report, snapshots=snapshots if pictures else ())
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_document_has_the_keys_of_the_contract_in_their_order() -> None:
    report = report_of(Engine.LOCAL, map(audit_cluster, (holed("y"), healthy("x"))))
    text = "".join(report.document_pieces())
    document = json.loads(text)
    assert text == json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    head, lists = (
        ["schema_version", "audited_at", "engine", "verdict"],
        ["clusters", "findings", "unknown"],
    )
    assert list(document) == [*head, *lists, "contents", "definitions"]
    assert document["contents"] is document["definitions"] is None
    assert document["audited_at"] == "2026-01-02T12:00:01.040000Z"
    assert document["verdict"] == "CRITICAL"
    assert [each["cluster"] for each in document["clusters"]] == ["x", "y"]
    assert [each["verdict"] for each in document["clusters"]] == ["OK", "CRITICAL"]
    (finding,) = document["findings"]
    assert finding["code"] == "H1"
    assert finding["gtid_set"] == f"{A}:51-53"
    assert finding["gtid_count"] == 3
    assert document["unknown"] == []


def test_no_part_of_an_answer_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A table's name labels evidence, and anyone who may create a table chooses it."""
    show(Text("\x1b[2J OK"), labelled([("\x1b]0;x\x07", Text("\u202e1"))]), Rule("\x9b1m"))
    out = capsys.readouterr().out
    assert r"\x1b[2J OK" in out
    assert r"\x1b]0;x" in out
    assert r"\u202e1" in out
    assert not {"\x1b", "\x9b", "\u202e", "\x07"} & {*out}


def test_a_statement_is_copied_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    literal = "COMMENT 'a long text " + "of many words " * 20 + "'"
    show(Unwrapped(f"ALTER TABLE t\n  {literal};"), Unwrapped("DROP TABLE `a\n OK  all is well`;"))
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second) == ("    ALTER TABLE t", f"      {literal};")
    assert third == "    -- a name or a text has a line end: --json has this statement"
    assert on_one_line("a\n OK\x1b") == r"a\n OK\x1b"


def test_the_same_snapshots_give_the_same_bytes() -> None:
    there, back = (
        "".join(report_of(Engine.LOCAL, map(audit_cluster, snapshots)).document_pieces())
        for snapshots in ((holed("y"), healthy("x")), (healthy("x"), holed("y")))
    )
    assert there == back


def test_every_document_begins_with_the_version_of_its_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_json({"found": 1})
    write_json({"found": 1, "schema_version": 2})  # a plan has a version of its own
    assert capsys.readouterr().out == (
        '{\n  "schema_version": 1,\n  "found": 1\n}\n{\n  "schema_version": 2,\n  "found": 1\n}\n'
    )


def test_a_cluster_appears_once() -> None:
    with pytest.raises(ValueError, match="every cluster once"):
        report_of(Engine.LOCAL, map(audit_cluster, (healthy(), holed())))


def test_no_clusters_are_not_ok() -> None:
    assert report_of(Engine.LOCAL, []).verdict is Verdict.UNKNOWN


def test_a_healthy_pair_is_told_in_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, healthy()) == (
        " OK   pair · 2 servers · read 2026-01-02 12:00:01 UTC\n\n"
        "  a\n  └─▶ b\n      └─▶ a  above\n"
    )


def test_a_finding_is_told_with_its_place_proof_and_ways(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    text = shown(capsys, holed())
    for part in (
        " CRITICAL   pair · 2 servers · 1 critical · read",
        "└─▶ b  H1, auto-position off",
        "H1 bypassed by file position  critical, proved",
        "a → b · 3 transactions",
        f"{A}:51-53",
        "aaaaaaaa of a, 1 … 100",
        "a ████████████████████████████████████████████████",
        "b ███████████████████████···██████████████████████",
        "                         ^^^",
        "█ executed  · hole",
        "auto_position: 0  b, 12:00:01",
        "refetch",
        "inject_empty",
        "gtid-audit explain H1",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


SITE = "eu-west-1.orders.example.com"


def star_of_200_uuids() -> ClusterSnapshot:
    """db1 and its replicas, with long names: db2 is errant, db3 is missing the end of one UUID."""
    uuids = [UUID(int=number) for number in range(1, 201)]
    old = ",".join(f"{uuid}:1-50" for uuid in uuids)
    source = a_channel(f"db1.{SITE}", A, source_host=f"db1.{SITE}.example")
    return a_cluster(
        "star",
        a_server(f"db1.{SITE}", A, f"{A}:1-400000000,{old}", gtid_purged=GtidSet.parse(f"{A}:1-9")),
        a_server(f"db2.{SITE}", B, f"{A}:1-400000000,{B}:1-3,{old}", channels=(source,)),
        a_server(
            f"db3.{SITE}", UUID(int=0xC << 124), f"{A}:1-400000000,{old[:-3]}", channels=(source,)
        ),
    )


def test_200_uuids_are_told_apart_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(capsys, star_of_200_uuids())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert f"  db1.{SITE}" in lines
    assert f"  ├─▶ db2.{SITE}  E1" in lines
    assert "Of 202 UUIDs in gtid_executed, 2 differ:" in lines
    listed = " ".join(text.split())
    assert f"0000…00c8 50 missing: 49 on db3.{SITE}" in listed
    assert f"missing: 3 on db1.{SITE}, 3 on db3.{SITE}" in listed
    assert "        db2.eu-…mple.com !!!" in lines
    assert "        db3.eu-…mple.com" in lines
    assert "  (blank) nothing yet  ! errant" in text


def test_what_differs_is_no_part_of_a_report_that_is_ok(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "gtid_executed" not in shown(capsys, healthy())


def test_what_was_not_read_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, half_read())
    assert text.startswith(" UNKNOWN   pair · 2 servers · ")
    assert text.count("timeout: no answer") == 1
    assert "not read" in text


def test_many_clusters_are_a_table_of_those_that_are_not_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown(capsys, healthy("a"), healthy("b"), holed("c"), half_read("d"))
    assert " CRITICAL   4 clusters · 8 servers" in text
    assert "the other 2 OK" in text
    assert "cluster c · a → b" in text
    assert text.index("c ") < text.index("d/b")


def test_lists_are_cut_and_the_rest_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    clusters = [holed(f"c{number:03}") for number in range(60)]
    text = shown(capsys, *clusters, pictures=False)
    assert "… and 10 more clusters; --json has all" in text
    assert "… and 40 more findings; --json has all" in text


def test_a_server_cannot_steer_the_terminal_or_the_markup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = "\x1b]0;owned\x07 [bold]x[/bold] \u202egnp :smile:"
    failed = a_channel("b", B, applier=ThreadState.STOPPED, applier_errno=1, applier_error=evil)
    text = shown(
        capsys, a_cluster("pair", a_server("a", A, "", channels=(failed,)), a_server("b", B, ""))
    )
    assert "\\x1b]0;owned\\x07 [bold]x[/bold] \\u202egnp :smile:" in " ".join(text.split())
    assert "\x1b" not in text


@pytest.mark.parametrize("no_color", [True, False])
def test_colours_only_on_a_terminal_and_not_with_no_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, no_color: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    text = shown(capsys, holed())
    colours = {part.split("m")[0] for part in text.split("\x1b[")[1:]}
    assert any("41" in colour for colour in colours) is not no_color


def test_narrow_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, shown(capsys, holed()).splitlines())) <= 60


def test_printable_and_without_credentials() -> None:
    assert printable("a\x00b\x9bc\u2066\nd\te") == "a\\x00b\\x9bc\\u2066\nd\te"
    assert without_credentials("at mysql://u:p@h/ and x") == "at mysql://…@h/ and x"
    assert without_credentials("at mysql://u@h/") == "at mysql://u@h/"
