"""`explain`: explains a server's error text, or a code of the catalogue."""

from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson
from gtid_audit.output import write_json


def explain(
    text: Annotated[
        list[str],
        typer.Argument(metavar="TEXT|CODE", help="A MySQL error text, or a code: H1, E3, …"),
    ],
    *,
    as_json: AsJson = False,
) -> int:
    """Explain an error text or a code: what it means, its cause, and what to do."""
    from topology.catalogue.explanations import Unexplained
    from topology.catalogue.explanations import explain as look_up
    from topology.catalogue.verdict_table import UnknownCode

    try:
        explanation = look_up(" ".join(text))
    except (Unexplained, UnknownCode) as problem:
        raise exits.UsageProblem(str(problem)) from problem
    if as_json:
        write_json(
            {
                "title": explanation.title,
                "code": explanation.code,
                "meaning": explanation.meaning,
                "cause": explanation.cause,
                "advice": list(explanation.advice),
            }
        )
    else:
        from gtid_audit.views.explain_text import show_explanation

        show_explanation(explanation)
    return exits.OK
