"""`explain`: explains a server's error text, or a code of the catalogue."""

from collections.abc import Sequence
from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.completing import codes
from gtid_audit.commands.options import AsJson
from gtid_audit.output import write_json
from topology.catalogue.findings import Verdict


def explain(
    text: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT|CODE",
            help="A MySQL error text, or a code: H1, E3, …",
            autocompletion=codes,
        ),
    ],
    *,
    as_json: AsJson = False,
) -> int:
    """Explain an error text or a code: what it means, its cause, and what to do.

    Exit status: 0 it is known; 3 the text is not known, and what to read instead is shown.
    """
    from gtid_audit.finding_examples import read_examples
    from topology.catalogue.explanations import READ_INSTEAD, Unexplained
    from topology.catalogue.explanations import explain as look_up
    from topology.catalogue.verdict_table import UnknownCode

    try:
        explanation = look_up(" ".join(text))
    except UnknownCode as problem:
        raise exits.UsageProblem(str(problem)) from problem
    except Unexplained as problem:
        if as_json:
            write_json(_document(None, str(problem), "", READ_INSTEAD))
        else:
            from gtid_audit.views.explain_text import show_unexplained

            show_unexplained(str(problem))
        return exits.status_of(Verdict.UNKNOWN)
    entry = explanation.entry
    example = read_examples().get(entry.code) if entry is not None else None
    if as_json:
        document = _document(
            explanation.title, explanation.meaning, explanation.cause, explanation.advice
        )
        document["code"] = explanation.code
        document["example"] = example.record() if example is not None else None
        for key, sets in (
            ("gtid_sets", explanation.gtid_sets),
            ("computed_sets", explanation.computed_sets),
        ):
            document[key] = [
                {"what": what, "gtid_set": str(gtids), "gtid_count": gtids.gtid_count}
                for what, gtids in sets
            ]
        write_json(document)
    else:
        from gtid_audit.views.explain_text import show_example, show_explanation

        show_explanation(explanation)
        if entry is not None:
            show_example(entry, example)
    return exits.OK


def _document(
    title: str | None, meaning: str, cause: str, advice: Sequence[str]
) -> dict[str, object]:
    return {
        "title": title,
        "code": None,
        "meaning": meaning,
        "cause": cause,
        "advice": list(advice),
        "gtid_sets": [],
        "computed_sets": [],
        "example": None,
    }
