"""The forms of an answer: --format, and --json as another word for one of them."""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from gtid_audit.exits import UsageProblem


class OutputForm(Enum):
    """The values of --format."""

    TEXT = "text"  # for the operator
    JSON = "json"  # one document
    JSONL = "jsonl"  # one JSON object per line: the items, then the verdict
    PLUGIN = "plugin"  # one line for Nagios, Icinga and others that run monitoring plugins
    SVG = "svg"  # a picture of what the terminal shows
    HTML = "html"  # the same as a page


EVERY_FORM: Final = tuple(OutputForm)


def form_of(
    text: str | None, *, as_json: bool, forms: Sequence[OutputForm] = EVERY_FORM
) -> OutputForm:
    """Return the form of --format and --json. Raises UsageProblem if the two contradict.

    `forms` are those that the command has.
    """
    if text is None:
        return OutputForm.JSON if as_json else OutputForm.TEXT
    found = [each for each in forms if each.value == text]
    if not found:
        raise UsageProblem(f"--format: expected one of {', '.join(each.value for each in forms)}")
    if as_json and found != [OutputForm.JSON]:
        raise UsageProblem(f"--json means --format json, which contradicts --format {text}")
    return found[0]
