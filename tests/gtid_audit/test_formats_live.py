"""The forms of answers on real servers: the same verdict in each, and lines that parse."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from compose.faults import errant_transaction
from compose.native.shapes import Pair
from tests.gtid_audit.build import GTID_AUDIT, run_cli

COMMANDS = (
    ("pair",),
    ("audit",),
    ("handshake",),
    ("locks",),
    ("trace",),
    ("schema", "versions"),
    ("schema", "drift"),
    ("binlog", "compare"),
)


@pytest.mark.parametrize(
    "commands",
    [COMMANDS[:1], pytest.param(COMMANDS[1:], marks=pytest.mark.slow)],
    ids=["pair", "the others"],
)
def test_every_form_has_the_verdict(pair97: Pair, commands: tuple[tuple[str, ...], ...]) -> None:
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    dsns = (pair97.a.dsn, pair97.b.dsn)
    verdicts = {}
    for command in commands:
        name = " ".join(command)
        document = run_cli(*command, *dsns, "--json")
        verdict = json.loads(document.stdout)["verdict"]
        verdicts[name] = verdict
        lines = run_cli(*command, *dsns, "--format", "jsonl")
        parsed = [json.loads(line) for line in lines.stdout.splitlines()]
        assert (parsed[-1]["type"], parsed[-1]["verdict"]) == ("verdict", verdict), name
        plugin = run_cli(*command, *dsns, "--format", "plugin")
        assert plugin.stdout.startswith(f"GTID {verdict} - "), name
        assert plugin.stdout.count("\n") == plugin.stdout.count("|") == 1, name
        quiet = run_cli(*command, *dsns, "--quiet")
        assert quiet.stdout.startswith(f" {verdict} "), name
        assert quiet.stdout.count("\n") == 1, name
        statuses = {each.returncode for each in (document, lines, plugin, quiet)}
        assert len(statuses) == 1, name
        assert "" == quiet.stderr == plugin.stderr, name
    for name, expected in (("pair", "WARNING"), ("audit", "WARNING"), ("handshake", "OK")):
        assert verdicts.get(name, expected) == expected


@pytest.mark.slow
def test_an_allowed_uuid_is_allowed_in_sibling_commands(pair97: Pair) -> None:
    """`repair plan` and `handshake` evaluate extra transactions as `pair` does."""
    errant_transaction(pair97)
    uuid = pair97.b.value("@@GLOBAL.server_uuid")
    dsns = (pair97.a.dsn, pair97.b.dsn)
    answered = {}
    for options in ((), ("--allow-uuid", uuid)):
        codes = [
            each["code"]
            for each in json.loads(run_cli("pair", *dsns, "--json", *options).stdout)["findings"]
        ]
        plan = run_cli("repair", "plan", "--pair", *dsns, "--json", *options).stdout
        cells = json.loads(run_cli("handshake", *dsns, "--json", *options).stdout)["answers"]
        outcomes = {each["outcome"] for each in cells}
        answered[bool(options)] = ("E1" in codes, '"E1"' in plan, "diverged" in outcomes)
    assert answered == {False: (True, True, True), True: (False, False, False)}


@pytest.mark.parametrize("form", ["jsonl", "text"])
def test_servers_are_watched(pair97: Pair, form: str) -> None:
    words = ("audit", "--discover", pair97.a.dsn, "--watch", "0.2", "--format", form)
    with subprocess.Popen([GTID_AUDIT, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        verdict = '"type": "verdict"' if form == "jsonl" else " OK  "
        found = 0
        for line in process.stdout:
            found += verdict in line
            if found == 2:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
