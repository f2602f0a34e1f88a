"""`monitoring`: writes alert rules, routes and dashboards for the metrics of `serve`."""

from pathlib import Path
from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson
from gtid_audit.exits import UsageProblem
from gtid_audit.output import printable, write_json, write_line


def monitoring(
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Write the files below this directory.")
    ],
    runbook_url: Annotated[
        str | None,
        typer.Option(
            "--runbook-url",
            metavar="URL",
            help="Where people reach /runbook of `serve`. Alerts and dashboards link to it."
            " Default: the address on which `serve` listens by default.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write Prometheus rules, an Alertmanager example and Grafana dashboards.

    Files that an earlier version wrote there are replaced.
    """
    from gtid_audit.monitoring.alert_rules import RUNBOOK_URL
    from gtid_audit.monitoring.monitoring_files import write_files

    url = RUNBOOK_URL if runbook_url is None else _checked(runbook_url)
    written = [str(path) for path in write_files(out, url)]
    if as_json:
        write_json({"files": written})
    else:
        for path in written:
            write_line(printable(path))
    return exits.OK


def _checked(url: str) -> str:
    """Return a URL without its final slash. Raises UsageProblem."""
    is_url = url.startswith(("http://", "https://")) and url.isprintable() and " " not in url
    # Both would change what the template of an annotation, or a link of Grafana, means.
    if not is_url or set(url) & set("{}#$\"'\\"):
        raise UsageProblem("--runbook-url: expected http://... or https://... without # and quotes")
    return url.removesuffix("/")
