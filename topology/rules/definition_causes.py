"""What the definitions that an audit compared say about the error of a stopped applier.

S2 reports the difference, and the error's finding (A2, A3) refers to it. Which of the two came
first is not known: the text says only that such a difference leads to such an error.
"""

from topology.readings.definition_reading import DefinitionReading, DifferingObject
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot


def applier_errors(server: ServerSnapshot) -> frozenset[int]:
    """Return the error numbers of the stopped appliers of a server, and of their workers."""
    found: set[int] = set()
    for channel in server.channels or ():
        found |= errors_of_channel(channel)
    return frozenset(found)


def errors_of_channel(channel: ChannelSnapshot) -> frozenset[int]:
    """Return the error numbers of a channel's applier and of its workers."""
    numbers = (channel.applier_errno, *(worker.errno for worker in channel.workers))
    return frozenset(each for each in numbers if each)


def drift_behind(
    reading: DefinitionReading | None, *, source: str | None, replica: str, errors: frozenset[int]
) -> str:
    """Return the sentence that refers to S2; "" if no difference leads to one of these errors."""
    objects = [
        each
        for pair in (reading.pairs if reading is not None else ())
        if (pair.source, pair.replica) == (source, replica)
        for each in pair.differing
        if leads_to(each, errors)
    ]
    if not objects:
        return ""
    more = f" and {len(objects) - 1:,} more" if len(objects) > 1 else ""
    return (
        f" {objects[0].label}{more} differs from {source} in a way that leads to this error (see S2"
        " of this audit)."
    )


def leads_to(each: DifferingObject, errors: frozenset[int]) -> bool:
    """Return whether a difference may lead to one of these errors."""
    return not errors.isdisjoint(each.errors)
