"""`spark package|command|submit`: the line that is run, what it may not hold, and how it ends."""

import json
import os
import shlex
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gtid_audit import cli, exits
from gtid_audit.operands.load_fleet import load_without_accounts
from spark_audit.adapters.java import JavaMissing, require_java
from spark_audit.expected_fleet import ExpectedCluster, ExpectedFleet, ExpectedServer
from tests.documents import check_text
from tests.spark_audit.audits import a_summary
from topology.catalogue.findings import Severity, Verdict
from topology.facts.accepted_findings import AcceptedFinding

UUID = "aaaaaaaa-0000-0000-0000-000000000001"
PLACES = ["--snapshots", "/srv/gtid", "--out", "hdfs://here/my results"]
HERE = ["--master", "spark://there:7077", *PLACES]

FLEET = f"""
policy: {{allowed_uuids: [{UUID}]}}
clusters:
  - name: orders
    servers: [{{name: one, host: 10.0.0.1, user: auditor}}]
"""


def line_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert cli.run(["spark", "command", *HERE, *arguments]) == exits.OK
    said = capsys.readouterr()
    assert said.err == ""
    return shlex.split(said.out)


def sent_by_package(fleet: Path, folder: Path) -> ExpectedFleet:
    """Return what `spark package --fleet` writes for the cluster."""
    out = folder / "code.zip"
    assert cli.run(["spark", "package", "--out", str(out), "--fleet", str(fleet)]) == exits.OK
    return fleet_in(folder / "code-fleet.zip")


def fleet_in(archive: Path) -> ExpectedFleet:
    with zipfile.ZipFile(archive) as packed:
        return ExpectedFleet.from_text(packed.read("gtid_audit_fleet/fleet.json").decode())


def test_the_policy_of_the_fleet_file_reaches_the_cluster(tmp_path: Path) -> None:
    plan = {
        "schema_version": 2,
        "id": "0123456789abcdef",
        "assumed": [],
        "steps": [],
        "snapshot_read_at": "2026-01-01T00:00:00+00:00",
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    more = 'accepted: [plan.json], external_sources: ["b:2", "a:1"], definitions: true,'
    more += " stall_seconds_max: 90, levels: {C9: warning}, "
    entry = "{code: C5, server: one, severity: warning, reason: 'a b', expires: 2026-01-02}"
    fleet = tmp_path / "fleet.yaml"
    text = FLEET.replace("policy: {", f"policy: {{{more}")
    fleet.write_text(f"{text}    accepted_findings: [{entry}]\n")
    policy = sent_by_package(fleet, tmp_path).policy
    assert policy == load_without_accounts(fleet).policy
    assert policy.external_sources == {"a:1", "b:2"}
    assert (policy.stall_seconds_max, policy.levels) == (90, (("C9", "warning"),))
    assert [each.plan_id for each in policy.accepted] == ["0123456789abcdef"]
    assert [str(each) for each in policy.allowed_uuids] == [UUID]
    assert policy.definitions
    assert policy.accepted_findings == (
        AcceptedFinding(
            "C5", Severity.WARNING, "a b", date(2026, 1, 2), cluster="orders", replica="one"
        ),
    )


SECRETS = """
clusters:
  - name: orders
    labels: {team: blue}
    servers:
      - {name: one, host: 10.0.0.1, user: auditor-7, password: {env: VARIABLE_7}}
      - {name: two, host: 10.0.0.2, port: 3307, user: u, password: {password_file: /file-7}}
    consumers: [{name: cdc, server: one, command: [show, -p, word-7]}]
"""


def test_no_account_reaches_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VARIABLE_7", "hunter-7")
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(SECRETS)
    found = sent_by_package(fleet, tmp_path)
    (cluster,) = found.clusters
    assert cluster == ExpectedCluster(
        "orders",
        (ExpectedServer("one", "10.0.0.1", 3306), ExpectedServer("two", "10.0.0.2", 3307)),
        ("cdc",),
        (("team", "blue"),),
    )
    assert "-7" not in found.to_text()
    assert "VARIABLE" not in found.to_text()
    capsys.readouterr()
    assert "-7" not in shlex.join(line_of(capsys, "--fleet", str(fleet)))


@pytest.mark.long
def test_a_large_fleet_does_not_make_the_line_longer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = [
        {
            "name": f"c{number}",
            "servers": [{"name": "one", "host": f"db{number}.example", "user": "u"}],
            "accepted_findings": [
                {"code": "C5", "server": "one", "severity": "warning", "reason": "known"}
                | {"expires": "2026-01-02"}
            ],
        }
        for number in range(1_000)
    ]
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(json.dumps({"clusters": clusters}))
    line = line_of(capsys, "--fleet", str(fleet))
    assert len(shlex.join(line)) < 400
    found = sent_by_package(fleet, tmp_path)
    assert len(found.clusters) == len(found.policy.accepted_findings) == 1_000


def test_the_line_says_all_that_spark_needs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET)
    line = line_of(
        capsys, "--package", "/srv/code.zip", "--conf", "spark.executor.memory=2g",
        "--python", "./environment/bin/python", "--driver-python", "/usr/bin/python3.11",
        "--archive", "environment.tar.gz#environment", "--fleet", str(fleet),
        "--allow-uuid", UUID.upper(),
    )  # fmt: skip
    assert line == [
        "spark-submit", "--master", "spark://there:7077", "--deploy-mode", "client",
        "--name", "gtid-audit", "--py-files", "/srv/code.zip,/srv/code-fleet.zip",
        "--archives", "environment.tar.gz#environment",
        "--conf", "spark.executor.memory=2g",
        "--conf", "spark.pyspark.python=./environment/bin/python",
        "--conf", "spark.pyspark.driver.python=/usr/bin/python3.11",
        "/srv/code.py", *PLACES, "--max-age", "24h", "--allow-uuid", UUID, "--fleet",
    ]  # fmt: skip


def test_on_the_cluster_a_verdict_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    line = line_of(capsys, "--deploy-mode", "cluster")
    assert line[-2:] == ["--exit", "done"]
    assert "gtid-audit.py" in line
    assert "--exit" not in line_of(capsys)


@pytest.mark.parametrize(
    "setting",
    [
        "spark.hadoop.fs.s3a.secret.key=hunter2",
        "spark.hadoop.fs.s3a.access.key=hunter2",
        "spark.authenticate.secret=hunter2",
        "spark.ssl.keyPassword=hunter2",
        "hunter2",
        "fs.key=hunter2",
    ],
)
def test_a_secret_is_refused_and_not_repeated(
    setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["spark", "command", *HERE, "--conf", setting]) == exits.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "--conf" in said.err
    assert "hunter2" not in said.err


@pytest.mark.parametrize(
    "setting",
    [
        "spark.hadoop.fs.s3a.aws.credentials.provider=com.example.Provider",
        "spark.hadoop.hadoop.security.credential.provider.path=jceks://hdfs/keys.jceks",
        "spark.authenticate=true",
    ],
)
def test_where_secrets_are_may_be_said(setting: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert setting in line_of(capsys, "--conf", setting)


def test_an_age_that_is_none_is_refused_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["spark", "command", *HERE, "--max-age", "soon"]) == exits.USAGE
    assert "--max-age: expected a time span" in capsys.readouterr().err


def test_a_uuid_that_is_none_is_refused_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["spark", "command", *HERE, "--allow-uuid", "1-2-3"]) == exits.USAGE
    assert "expected a UUID, found 1-2-3" in capsys.readouterr().err


def test_a_package_is_written_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["spark", "package", "--out", str(tmp_path / "code.zip")]) == exits.OK
    written = capsys.readouterr().out.splitlines()
    assert written == [str(tmp_path / "code.zip"), str(tmp_path / "code.py")]
    assert all(Path(each).stat().st_size for each in written)


@pytest.mark.parametrize("name", ["code.tar", "nowhere/code.zip"])
def test_a_package_that_cannot_be_written_is_wrong_usage(name: str, tmp_path: Path) -> None:
    assert cli.run(["spark", "package", "--out", str(tmp_path / name)]) == exits.USAGE


# -- submit, with a program in place of spark-submit ----------------------------------------------


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    try:
        require_java(os.environ)
    except JavaMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(home))
    return home


def stand_in(home: Path, *, status: int, says: str = "") -> None:
    """Put a program there that shows what it was told, answers, and ends in a status."""
    (home / "answer").write_text(says)
    program = home / "bin" / "spark-submit"
    program.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {home}/told\n"
        f'while [ $# -gt 0 ]; do [ "$1" = --py-files ] && sent="$2"; shift; done\n'
        f'for each in code:"${{sent%,*}}" fleet:"${{sent#*,}}"; do\n'
        f'[ -e "${{each#*:}}" ] && cp "${{each#*:}}" {home}/"${{each%%:*}}".zip; done\n'
        f"cat {home}/answer\nexit {status}\n"
    )
    program.chmod(0o755)


def test_a_summary_is_passed_on_with_its_verdict(
    spark_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(spark_home, status=2, says=a_summary(Verdict.CRITICAL).to_text())
    assert cli.run(["spark", "submit", *HERE]) == 2
    assert json.loads(capsys.readouterr().out)["server_count"] == 2
    told = (spark_home / "told").read_text().splitlines()
    assert told[:2] == ["--master", "spark://there:7077"]
    assert told[-6:] == [*PLACES, "--max-age", "24h"]
    assert (spark_home / "code.zip").read_bytes()[:2] == b"PK"
    assert not Path(told[told.index("--py-files") + 1]).exists()  # it was made for this


@pytest.mark.parametrize("package", [(), ("--package", "hdfs://x/code.zip")])
def test_the_fleet_file_is_sent_as_it_is_now(
    package: tuple[str, ...], spark_home: Path, tmp_path: Path
) -> None:
    """Also beside a package that the operator wrote earlier."""
    stand_in(spark_home, status=0, says=a_summary(Verdict.OK).to_text())
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET)
    assert cli.run(["spark", "submit", *HERE, *package, "--fleet", str(fleet)]) == exits.OK
    told = (spark_home / "told").read_text().splitlines()
    code, _, sent = told[told.index("--py-files") + 1].partition(",")
    assert code == package[1] if package else code.endswith("/gtid-audit.zip")
    assert told[-1] == "--fleet"
    assert not Path(sent).exists()  # it was made for this
    assert [each.name for each in fleet_in(spark_home / "fleet.zip").clusters] == ["orders"]


def test_the_commands_have_json(
    spark_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def document(*arguments: str, status: int = 0) -> dict[str, Any]:
        assert cli.run(["spark", *arguments, "--json"]) == status
        text = capsys.readouterr().out
        assert check_text(f"spark {arguments[0]}", text)
        found: dict[str, Any] = json.loads(text)
        assert found.pop("schema_version") == 1
        return found

    stand_in(spark_home, status=2, says=a_summary(Verdict.CRITICAL).to_text())
    found = document("submit", *HERE, status=2)
    summary = json.loads(a_summary(Verdict.CRITICAL).to_text())
    assert found == {"verdict": "CRITICAL", **summary}
    on_cluster = ("--deploy-mode", "cluster", "--package", "hdfs://x/code.zip")
    found = document("submit", *HERE, *on_cluster, status=exits.DEFECT)
    assert found["spark_submit_status"] == 2
    assert cli.run(["spark", "command", *HERE]) == 0
    line = shlex.split(capsys.readouterr().out)
    assert document("command", *HERE) == {"command": line}
    written = tmp_path / "code.zip"
    found = document("package", "--out", str(written))
    assert found == {"files": [str(written), str(written.with_suffix(".py"))]}


def test_a_malformed_summary_is_no_document(
    spark_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(spark_home, status=2, says="\n{\n}\n")
    assert cli.run(["spark", "submit", *HERE, "--json"]) == exits.DEFECT
    assert "without a summary" in capsys.readouterr().err


def test_what_the_driver_says_beside_its_summary_is_kept_apart(
    spark_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = "a warning: {\n}\n{and another}\n"
    stand_in(spark_home, status=1, says=beside + a_summary(Verdict.WARNING).to_text())
    assert cli.run(["spark", "submit", *HERE]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == (a_summary(Verdict.WARNING).to_text(), beside)


def test_what_the_driver_complains_of_is_no_answer(
    spark_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(spark_home, status=64, says="gtid-audit: no complete run\n")
    assert cli.run(["spark", "submit", *HERE]) == exits.USAGE
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "gtid-audit: no complete run\n")


@pytest.mark.parametrize(
    ("returned", "status"),
    # 3 without a summary: the run was refused, and the reason is on standard error.
    [(0, exits.DEFECT), (1, exits.DEFECT), (3, 3), (64, 64), (70, 70), (137, exits.DEFECT)],
)
def test_without_a_summary_there_is_no_verdict(
    spark_home: Path, returned: int, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(spark_home, status=returned)
    assert cli.run(["spark", "submit", *HERE]) == status
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("returned", "status"), [(0, exits.OK), (1, exits.DEFECT)])
def test_on_the_cluster_only_done_or_not_is_known(
    spark_home: Path, returned: int, status: int
) -> None:
    stand_in(spark_home, status=returned)
    line = ["spark", "submit", *HERE, "--deploy-mode", "cluster", "--package", "hdfs://x/code.zip"]
    assert cli.run(line) == status
    assert "hdfs://x/code.py" in (spark_home / "told").read_text().splitlines()


def test_a_home_without_spark_is_named(
    spark_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["spark", "submit", *HERE]) == exits.USAGE
    assert "no bin/spark-submit" in capsys.readouterr().err
