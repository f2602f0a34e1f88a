"""The runbook as one HTML page: what each alert means, why it arises, what to do. Pure.

`gtid-audit serve` answers it at /runbook. Each section has the name of its alert as anchor, so that
alerts and dashboards can link to it. The page holds no fact of a fleet and loads nothing.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from gtid_audit.monitoring.alert_table import OF_THE_AUDIT, name_of
from topology.catalogue.verdict_table import CATALOGUE, FAMILIES, CatalogueEntry

_HEAD: Final = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>gtid-audit: runbook</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
code { background: #eee; padding: 0 .2em; }
h3:target { background: #fe9; }
</style></head>
<body>
<h1>Runbook of gtid-audit</h1>
"""


def runbook_page() -> str:
    """Return the whole page."""
    return _HEAD + "\n".join(_sections()) + "\n</body></html>\n"


def _sections() -> Iterator[str]:
    yield "<h2>The audit itself</h2>"
    for alert in OF_THE_AUDIT:
        yield f'<h3 id="{alert.name}">{alert.name}</h3>'
        yield f"<p>{_text(alert.to_do)}</p>"
    for family, heading in FAMILIES.items():
        yield f"<h2>{family}: {escape(heading)}</h2>"
        for entry in CATALOGUE.values():
            if entry.code.startswith(family):
                yield from _entry(entry)


def _entry(entry: CatalogueEntry) -> Iterator[str]:
    yield f'<h3 id="{name_of(entry.code)}">{entry.code} {escape(entry.name)}'
    yield f"({entry.severity.value})</h3>"
    yield f"<p>{_text(entry.means)}</p>"
    yield f"<p><b>Why:</b> {_text(entry.arises)}</p>"
    yield f"<p><b>Proof:</b> {_text(entry.proof)}</p>"
    if entry.strategies:
        yield "<ul>"
        for each in entry.strategies:
            risk = f"Risk: {each.risk}."
            yield f"<li><b>{escape(each.name)}:</b> {_text(each.why)}. {_text(risk)}</li>"
        yield "</ul>"
    yield f"<p>Run <code>gtid-audit explain {entry.code}</code>, then"
    yield "<code>gtid-audit repair plan --fleet FILE --cluster NAME</code>.</p>"


def _text(text: str) -> str:
    """Escape a text; what is in backticks is code."""
    parts = escape(text, quote=False).split("`")
    return "".join(
        f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)
    )
