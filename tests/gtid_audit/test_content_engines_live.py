"""Numbers given twice, on real servers: both engines say the same, and so does what they stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit.cli import run

# 26 s of processor time. With every change, test_content_live.py holds this of the local engine on
# real servers, and test_engines.py that Spark finds the same in what was read.
pytestmark = [pytest.mark.spark, pytest.mark.slow]


def fleet_file(path: Path, pair: Pair) -> Path:
    servers = "".join(
        f"      - {{name: {name}, host: 127.0.0.1, port: {server.port}}}\n"
        for name, server in pair.servers.items()
    )
    path.write_text(f"defaults: {{user: root}}\nclusters:\n  - name: lost\n    servers:\n{servers}")
    return path


@pytest.mark.usefixtures("spark")
def test_both_engines_find_numbers_given_twice(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def audited(*options: str) -> tuple[int, dict[str, Any]]:
        status = run(["audit", *options, "--json"])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return status, found

    def essence(found: dict[str, Any]) -> object:
        """What does not depend on the moment of reading."""
        names = ("id", "code", "severity", "grade", "source", "replica", "gtid_set", "explanation")
        quoted = [[each["value"] for each in one["evidence"]] for one in found["findings"]]
        compared = [
            {name: value for name, value in each.items() if name != "read_at"}
            for each in found["contents"]
        ]
        return [[one[name] for name in names] for one in found["findings"]], quoted, compared

    fault = faults.reused_numbers(pair97)
    fleet = str(fleet_file(tmp_path / "fleet.yaml", pair97))
    kept = str(tmp_path / "kept")
    status, here = audited("--fleet", fleet, "--engine", "local")
    assert (status, here["unknown"]) == (2, [])
    [finding] = here["findings"]
    assert (finding["code"], finding["source"], finding["replica"]) == ("E4", "a", "b")
    assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.reused)

    status, on_spark = audited("--fleet", fleet, "--engine", "spark", "--out", kept)
    assert (status, on_spark["engine"]) == (2, "spark")
    assert essence(on_spark) == essence(here)

    status, again = audited("--snapshots", kept, "--engine", "local")
    assert (status, {**again, "engine": "spark"}) == (2, on_spark)
    # The results are there already: anything but the same would be refused.
    assert audited("--snapshots", kept, "--engine", "spark", "--out", kept) == (2, on_spark)

    status, blind = audited("--fleet", fleet, "--engine", "spark", "--no-content")
    assert (status, blind["findings"], blind["contents"]) == (0, [], None)
