"""Reads what a run stores beside its rows: contents, definitions, consumers and labels."""

from pyspark.sql import SparkSession

from spark_audit.adapters.storage import Storage, storage_of
from spark_audit.run_context import Beside, Gaps
from topology.adapters.stored_consumers import CONSUMERS, consumers_in
from topology.adapters.stored_contents import CONTENTS, contents_in
from topology.adapters.stored_definitions import DEFINITIONS, definitions_in
from topology.adapters.stored_labels import LABELS_FILE, labels_in


def beside_rows(session: SparkSession, run: str, gaps: Gaps | None) -> tuple[Beside, int | None]:
    """Return the facts beside the rows of a run, and of how many clusters contents were compared.

    None: no contents were compared. `gaps` are added to the facts. Raises UnreadableSnapshots.
    """
    storage, root = storage_of(run, session)
    compared, read, labelled, defined = (
        text_beside(storage, root, name) for name in (CONTENTS, CONSUMERS, LABELS_FILE, DEFINITIONS)
    )
    contents = None if compared is None else contents_in(compared[0], place=compared[1])
    consumers = {} if read is None else consumers_in(read[0], place=read[1])
    definitions = None if defined is None else definitions_in(defined[0], place=defined[1])
    labels = {} if labelled is None else labels_in(labelled[0], place=labelled[1])
    beside = Beside.telling(contents, gaps, consumers, labels, definitions)
    return beside, None if contents is None else len(contents)


def text_beside(storage: Storage, run: str, name: str) -> tuple[str, str] | None:
    """Return the text of a file beside the rows of a run, and its place; None if there is none."""
    place = f"{run}/{name}"
    try:
        return storage.read_text(place), place
    except FileNotFoundError:
        return None
