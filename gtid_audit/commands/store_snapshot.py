"""`gtid-audit snapshot`: reads a fleet and stores the readings."""

from pathlib import Path
from typing import Annotated

import typer

from gtid.counted_nouns import counted
from gtid_audit import exits
from gtid_audit.commands.options import (
    AsJson,
    CompareContent,
    CompareDefinitions,
    FleetFile,
    OneCluster,
)
from gtid_audit.output import hint, progress, warn, write_json, write_line


def snapshot(
    *,
    fleet: FleetFile,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the run there.")],
    cluster: OneCluster = None,
    as_json: AsJson = False,
    content: CompareContent = None,
    definitions: CompareDefinitions = None,
) -> int:
    """Read a fleet twice and store the readings as Parquet.

    Exit status: 0 every fact was read; 3 some were not.
    """
    from gtid_audit.operands.load_fleet import load
    from gtid_audit.optional_packages import require_parquet
    from gtid_audit.tasks.fleet_reading import read_fleet
    from topology.catalogue.findings import Verdict
    from topology.documents.records import time_to_text

    require_parquet()
    settings = load(fleet, cluster)
    with progress() as line:
        read = read_fleet(
            settings,
            for_audit=False,
            content=content,
            definitions=definitions,
            store_in=out,
            say=line.say,
        )
    taken, contents, run = read.snapshots, read.contents, read.run
    servers = sum(len(each.last) for each in taken)
    unread = sum(len(server.unread) for each in taken for server in (*each.first, *each.last))
    unread += sum(len(each.unread) for each in (contents or {}).values())
    unread += sum(len(each.unread) for each in (read.definitions or {}).values())
    unread += sum(bool(one.unread) for each in taken for one in each.consumers)
    ended = max(each.read_ended for each in taken if each.read_ended is not None)
    if as_json:
        compared = None if contents is None else len(contents)
        counts = {"clusters": len(taken), "servers": servers, "unread_facts": unread}
        document = {"run": str(run), "read_ended": time_to_text(ended), **counts}
        write_json({**document, "contents_compared": compared, "partial": settings.is_partial})
    else:
        write_line(f"{run}")
        size = f"{counted(len(taken), 'cluster')}, {counted(servers, 'server')}"
        (warn if unread else hint)(f"{size}, {counted(unread, 'fact')} not read")
        if settings.is_partial:
            hint(
                "this run has only the selected clusters: to audit it, give `audit --snapshots` the"
                " path of the run itself"
            )
    return exits.status_of(Verdict.UNKNOWN) if unread else exits.OK
