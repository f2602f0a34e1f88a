"""`gtid-audit history`: what a history file has recorded, and what audits no longer remember."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson
from gtid_audit.exits import UsageProblem
from gtid_audit.output import write_json, write_line

File = Annotated[
    str, typer.Argument(metavar="FILE", help="What --history wrote; for --forget, or an --out DIR.")
]
Forget = Annotated[
    str | None,
    typer.Option(
        "--forget",
        metavar="SET",
        help="The rows that these GTIDs changed are equal now: remove what audits remember of them"
        " (E4, lost sets). Exit status 1 if that is nothing.",
    ),
]
Server = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="NAME",
        help="With --forget: a server whose rows you have compared with those of the others; its"
        " name or server_uuid. Once for each. Needed if more than two servers differ.",
    ),
]


def history(
    file: File, *, forget: Forget = None, server: Server = None, as_json: AsJson = False
) -> int:
    """Show since when findings exist, and until when others did, from a history file."""
    if forget is not None:
        if as_json:
            raise UsageProblem("--forget has no JSON document: leave --json out")
        return _forgotten(Path(file), forget, server or ())
    if server:
        raise UsageProblem("--server is for --forget")
    from gtid_audit.tasks.kept_history import episodes_of
    from gtid_audit.views.history_text import history_document, show_history

    episodes = episodes_of(Path(file))
    if as_json:
        write_json(history_document(episodes))
    else:
        show_history(episodes)
    return exits.OK


def _forgotten(place: Path, text: str, servers: Sequence[str]) -> int:
    from gtid.counted_nouns import counted
    from gtid_audit.operands.sets_from_operands import parsed
    from gtid_audit.tasks.forgotten_memory import forget

    found = forget(place, parsed(text, "--forget"), servers)
    if not found.differences and not found.lost:
        between = " between the servers that are named" if servers else ""
        write_line(f"{place}: audits remember nothing of these GTIDs{between}")
        return exits.FALSE
    about = f", of {' and '.join(found.servers)}"
    if found.differences:
        write_line(f"forgotten: {counted(found.differences, 'difference')}{about}")
    if found.lost:
        write_line(f"forgotten, as lost by another server: {found.lost}{about}")
    return exits.OK
