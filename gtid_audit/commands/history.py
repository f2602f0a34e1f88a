"""`gtid-audit history`: what a history file has recorded."""

from pathlib import Path
from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson
from gtid_audit.output import write_json

File = Annotated[str, typer.Argument(metavar="FILE", help="What --history wrote.")]


def history(file: File, *, as_json: AsJson = False) -> int:
    """Show since when findings exist, and until when others did, from a history file."""
    from gtid_audit.tasks.kept_history import episodes_of
    from gtid_audit.views.history_text import history_document, show_history

    episodes = episodes_of(Path(file))
    if as_json:
        write_json(history_document(episodes))
    else:
        show_history(episodes)
    return exits.OK
