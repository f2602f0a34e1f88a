"""Facts about a server that decide what its statements mean, and are not in its log."""

from dataclasses import dataclass

from binlog.events import Query
from binlog.schema.column_types import Timestamps


@dataclass(frozen=True, slots=True)
class SchemaFacts:
    """Facts about a server that its log does not contain."""

    # Whether a TIMESTAMP without NULL is nullable, if the log does not contain it (before 8.0).
    timestamps: Timestamps = Timestamps.UNKNOWN
    # lower_case_table_names: names are compared in lower case.
    folds_names: bool = False

    def timestamps_of(self, query: Query) -> Timestamps:
        """Return how the statement's server read a TIMESTAMP without NULL: since 8.0 it is logged.

        Older servers log nothing of it, so it must be among the facts.
        """
        explicit = query.explicit_defaults_for_timestamp
        if explicit is None:
            return self.timestamps
        return Timestamps.NULLABLE if explicit else Timestamps.NOT_NULL
