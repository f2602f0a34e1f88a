"""`gtid-audit binlog scan`: the ledger of logs, as a summary, a document, JSON lines or Parquet."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson, AskPassword, ServerSeconds, seconds_of
from gtid_audit.exits import UsageProblem
from gtid_audit.global_options import GLOBAL_OPTIONS
from gtid_audit.operands.logs_from_operands import (
    SECONDS_DEFAULT,
    LogServer,
    one_source,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.optional_packages import require_columns
from gtid_audit.output import progress, write, write_json
from gtid_audit.output_form import OutputForm, form_of

if TYPE_CHECKING:
    import pyarrow as pa

FORMS: Final = (OutputForm.TEXT, OutputForm.JSON, OutputForm.JSONL)
_PARQUET: Final = ".parquet"

Sources = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Files, directories, globs; or a server's DSN."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="text and json: a summary; jsonl: one line per row.",
        autocompletion=lambda: [each.value for each in FORMS],
    ),
]
Out = Annotated[
    str | None, typer.Option("--out", metavar="FILE.parquet", help="Write all rows to this file.")
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Verify every checksum and every event position.")
]
Details = Annotated[
    bool, typer.Option("--details", help="Add tables, row counts, and the text of DDL.")
]
Digests = Annotated[
    bool, typer.Option("--digests", help="Add a digest of each transaction's content.")
]


def scan(
    sources: Sources,
    *,
    as_json: AsJson = False,
    form: Format = None,
    out: Out = None,
    verify: Verify = False,
    details: Details = False,
    digests: Digests = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Read logs into a ledger of one row per transaction, and summarize it.

    If a file is damaged, the transactions before the damage are read, and the place is reported.
    Exit status: 0 all was read; 3 something was not.
    """
    chosen = form_of(form, as_json=as_json, forms=FORMS)
    target = _parquet_path(out)
    seconds = seconds_of(timeout) or SECONDS_DEFAULT
    operands = read_log_operands(sources, ask=ask_password)
    source = one_source(operands)
    require_columns()

    from binlog.ledger.ledger_columns import LedgerRequest
    from gtid_audit.tasks import ledger_scan
    from gtid_audit.views import ledger_text

    if not isinstance(source, LogServer) and (target is not None or chosen is OutputForm.JSONL):
        _refuse_same_names(ledger_scan.same_names(source))
    wanted = LedgerRequest(verify=verify, details=details, digests=digests)

    def work() -> int:
        takers: list[ledger_scan.Rows] = [_write_lines] if chosen is OutputForm.JSONL else []
        with ExitStack() as opened:
            line = opened.enter_context(progress())
            if target is not None:
                file = ledger_scan.parquet_file(target, wanted.schema)
                takers.append(opened.enter_context(file))
            summary = ledger_scan.scan(source, wanted, rows=takers, line=line, seconds_max=seconds)
        name, written = ", ".join(each.name for each in operands), out
        if chosen is OutputForm.JSON:
            write_json(ledger_text.document_of(summary, source=name, out=written))
        elif chosen is OutputForm.TEXT and GLOBAL_OPTIONS.is_quiet:
            ledger_text.show_verdict(summary, source=name)
        elif chosen is OutputForm.TEXT:
            ledger_text.show_summary(summary, source=name, out=written)
        else:
            ledger_text.warn_of_errors(summary)
        return exits.status_of(ledger_text.verdict_of(summary))

    return said_if_unread(work)


def _parquet_path(out: str | None) -> Path | None:
    if out is None:
        return None
    path = Path(out).expanduser()
    if path.suffix != _PARQUET:
        raise UsageProblem(f"--out: expected a name that ends in {_PARQUET}, found {out}")
    return path


def _refuse_same_names(names: list[str]) -> None:
    """Refuse files with equal names: rows have the name of a file without its folder."""
    if names:
        raise UsageProblem(
            f"more than one file is named {names[0]}: rows contain no folder to distinguish them"
        )


def _write_lines(rows: "pa.Table") -> None:
    from gtid_audit.views.ledger_text import lines_of

    for lines in lines_of(rows):
        write(lines)
