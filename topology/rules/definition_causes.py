"""What the definitions that an audit compared say about the error of a stopped applier.

S2 reports the difference, and the error's finding (A2, A3) refers to it. The number and the text of
the error decide: a difference leads to it if its class has the number, and the text contains the
name of the object. Which of the two came first is not known.
"""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from topology.readings.definition_reading import DefinitionReading, DifferingObject
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot


class ApplierError(NamedTuple):
    """The error of an applier or of one of its workers."""

    number: int
    text: str


def applier_errors(server: ServerSnapshot) -> tuple[ApplierError, ...]:
    """Return the errors of the stopped appliers of a server, and of their workers."""
    return tuple(error for channel in server.channels or () for error in errors_of_channel(channel))


def errors_of_channel(channel: ChannelSnapshot) -> tuple[ApplierError, ...]:
    """Return the errors of a channel's applier and of its workers."""
    found = [
        ApplierError(channel.applier_errno, channel.applier_error),
        *(ApplierError(worker.errno, worker.error) for worker in channel.workers),
    ]
    return tuple(each for each in found if each.number)


def error_of(
    name: str, numbers: Collection[int], errors: Iterable[ApplierError]
) -> ApplierError | None:
    """Return the error to which a difference leads; None if there is none.

    `name` is that of the object, `numbers` are those of its class.
    """
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])", re.IGNORECASE)
    for error in errors:
        if error.number in numbers and word.search(error.text):
            return error
    return None


def error_after(each: DifferingObject, errors: Iterable[ApplierError]) -> ApplierError | None:
    """Return the error to which an object that differs leads; None if there is none."""
    return error_of(each.name or each.schema, each.errors, errors)


def drift_behind(
    reading: DefinitionReading | None,
    *,
    source: str | None,
    replica: str,
    errors: Collection[ApplierError],
) -> str:
    """Return the sentence that refers to S2; "" if no difference leads to one of these errors."""
    objects = [
        each
        for pair in (reading.pairs if reading is not None else ())
        if (pair.source, pair.replica) == (source, replica)
        for each in pair.differing
        if error_after(each, errors) is not None
    ]
    if not objects:
        return ""
    more = f" and {len(objects) - 1:,} more" if len(objects) > 1 else ""
    verb = "differ" if more else "differs"
    return (
        f" {objects[0].label}{more} {verb} from {source} in a way that leads to this error (see S2"
        " of this audit)."
    )
