"""The commands of pages that have no test of their own: all of them run, on real servers.

A page's commands run in its order, in one folder, in a shell. Names of servers, folders and GTIDs on
the page are replaced by those of the test. A command must end with a verdict: not with 64, which is
what an option that does not exist, or an example that is not complete, would give.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from compose import faults
from compose.native.installation import Clients
from compose.native.server import Server
from compose.native.shapes import Topology
from gtid_audit.exits import status_of
from tests.gtid_audit.build import GTID_AUDIT
from topology.adapters.history_file import HistoryFile
from topology.catalogue.findings import Verdict

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    *("binlog", "binlog-content", "binlog-schema", "fleet-results", "fleet-runs", "fleet"),
    *("handshake", "promotion", "json", "locks", "on-call", "repair", "repair-definitions"),
    *("repair-fetch", "repair-records", "repair-reset", "repair-rows", "repair-unseen"),
    *("same-gtid-different-content", "spark-local"),
)
SPARK = "test_results_command.py runs it: it needs Java"
EXCEPTIONS = {
    "gtid-audit spark trends": SPARK,
    "gtid-audit audit --snapshots DIR --engine spark": SPARK,
    "pip install": "it would change the environment of the tests; test_wheel.py installs the wheel",
    "less plan-1/RUNBOOK.md": "it shows a file on a terminal",
    "mysql --defaults-extra-file=admin.cnf": "tests/repair runs scripts by the client",
}
# Targets of `make` that start long runs: their names and variables are checked.
OF_MAKE = {"mutation", "random-faults", "simulator", "stack"}
# A page selects a strategy for a finding that these servers do not have, or asks on a terminal.
REFUSALS = ("has no finding", "there is no terminal to ask on: use --yes")
VERDICTS = {status_of(each) for each in Verdict}


def fenced(page: str) -> list[str]:
    """Return the lines of a page's blocks; a line that ends in a backslash goes on."""
    text = (DOCS / f"{page}.md").read_text()
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fences if not language]
    return [line for block in blocks for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines()]


def commands_of(page: str) -> list[str]:
    """Return the commands of a page, without syntax (`[--out DIR]`, `SOURCE…`) and exceptions."""
    found = []
    for line in fenced(page):
        command = re.split(r" +# |   {2,}(?!-)", line.removeprefix("$ "))[0].rstrip()
        is_command = re.match(r"(gtid-audit (?!reports)|mysql|less|pip) ?", command)
        is_syntax = re.search(r"\[[-A-Z]|SET SOURCE|DSN_A", command)
        if is_command and not is_syntax:
            found.append(command)
    return [each for each in found if not each.startswith(tuple(EXCEPTIONS))]


def test_every_page_with_commands_has_a_test() -> None:
    """Either a test names the page, or it is here."""
    tests = "\n".join(each.read_text() for each in DOCS.parent.glob("tests/**/test_*.py"))
    pages = {
        each.stem
        for each in DOCS.glob("*.md")
        if re.search(r"^```\n", each.read_text(), re.MULTILINE)
    }
    with_commands = {
        page
        for page in pages
        if any(
            re.match(r"(\$ )?(gtid-audit|make|docker|kubectl|curl) ", line) for line in fenced(page)
        )
    }
    alone = {page for page in with_commands if not re.search(rf'["/]{page}\.md\b', tests)}
    assert sorted(alone - {*PAGES, *OF_MAKE}) == []
    lines = [line.removeprefix("$ ") for page in PAGES for line in fenced(page)]
    assert [each for each in EXCEPTIONS if not any(line.startswith(each) for line in lines)] == []


def test_make_has_the_targets_and_variables_of_the_pages() -> None:
    makefile = (DOCS.parent / "Makefile").read_text()
    rules = re.findall(r"^([a-z][a-z -]*):", makefile, re.MULTILINE)
    named = [target for rule in rules for target in rule.split()]
    seen = set()
    for page in sorted(OF_MAKE):
        for line in fenced(page):
            if not line.startswith("make "):
                continue
            seen.add(page)
            words = shlex.split(line, comments=True)[1:]
            targets = [each for each in words if "=" not in each]
            assert set(targets) <= set(named), line
            for name in re.findall(r"\b([A-Z]\w*)=", line):
                assert re.search(rf"\$\({name}\)|\$\(if \$\({name}\)|\$\$@|{name}=", makefile), line
    assert seen == OF_MAKE


@dataclass
class Place:
    """The folder in which the commands of a page run, and the servers in place of its names."""

    folder: Path
    servers: dict[str, Server]
    gtid: str

    def here(self, command: str) -> str:
        """Return a command with the names of this place."""
        uuid, _, number = self.gtid.partition(":")
        logs = str(self.servers["db1"].value("@@log_bin_basename"))
        for old, new in (
            (r"mysql://\w+@(db\d)/\?ssl=required", self._dsn),
            (r"3e11fa47-71ca-11e1-9e33-c80aa9429562|3e11fa47-…|\bUUID(?=:)", uuid),
            (r":(4711|23|7:99)\b", f":{number}"),
            (r"'/backup/binlog\.\*'", f"'{logs}.0*'"),
            (r"/var/lib/mysql/binlog\.index", f"{logs}.index"),
            (r"/var/lib/mysql|/srv/archive/db1", str(Path(logs).parent)),
            (r"/srv/gtid", str(self.folder / "runs")),
        ):
            command = re.sub(old, new, command)
        return command

    def _dsn(self, name: re.Match[str]) -> str:
        server = self.servers[name[1]]
        return f"mysql://root@{server.host}:{server.port}/?ssl=required"

    def run(self, command: str) -> tuple[int, str]:
        """Run a command in a shell; return its exit status and what it printed."""
        source = self.servers["db1"]
        kept = {
            name: text for name, text in os.environ.items() if not name.startswith("GTID_AUDIT")
        }
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", self.here(command)],
            cwd=self.folder,
            env={
                **kept,
                "PATH": f"{self.folder}:{Path(GTID_AUDIT).parent}:{kept['PATH']}",
                "HOME": str(self.folder),
                "XDG_STATE_HOME": str(self.folder),
                "GTID_AUDIT_DEFAULTS_FILE": "",
                "MYSQL_HOST": source.host,
                "MYSQL_TCP_PORT": str(source.port),
                "executed_1": self.gtid,
                "executed_2": "",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def place(star97: Topology, mysql_clients: Clients, tmp_path: Path) -> Place:
    servers = dict(zip(("db1", "db2", "db3"), star97.servers.values(), strict=True))
    source = servers["db1"]
    source.execute(
        "CREATE DATABASE shop",
        "CREATE DATABASE app",
        "CREATE TABLE app.orders (id INT PRIMARY KEY)",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20))",
    )
    gtid = faults.commit(source, "INSERT INTO shop.orders VALUES (1, 'Anna')")
    [replica] = [name for name, each in star97.servers.items() if each is servers["db2"]]
    faults.position_bypass(star97, source=next(iter(star97.servers)), replica=replica)
    listed = "".join(
        f"  - {{name: {name}, host: {each.host}, port: {each.port}}}\n"
        for name, each in servers.items()
    )
    files = {
        "fleet.yaml": f"defaults: {{user: root}}\nclusters:\n- name: shop\n  servers:\n{listed}",
        "orders.sql": "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20)) CHARSET utf8mb4;\n",
        "consumer.gtid": gtid,
        "backup.gtid": "",
        "mysql": f'#!/bin/sh\nexec {" ".join(mysql_clients.command("mysql"))} --user=root "$@"\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "mysql").chmod(0o755)
    HistoryFile.at(tmp_path / "history.sqlite3")
    return Place(tmp_path, servers, gtid)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_command_ends_with_a_verdict(place: Place) -> None:
    """One folder for all pages: a later command may need what an earlier one wrote."""
    wrong = []
    for page in PAGES:
        assert commands_of(page) or page in {"fleet", "spark-local"}, page
        for command in commands_of(page):
            if written := re.search(r"--out (plan\S*)", command):  # each page begins without it
                shutil.rmtree(place.folder / written[1], ignore_errors=True)
            status, output = place.run(command)
            if status not in VERDICTS and not any(each in output for each in REFUSALS):
                wrong.append((page, command, status, output[-300:]))
    assert not wrong, "\n".join(map(str, wrong))
