"""Metrics of the service itself: procedures of repairs by state, and whether its files load.

1. Every state has a series, so that "none" is 0 and not a missing series.
2. If the journal cannot be read, the states are NaN: not known is not none.
3. `gtid_audit_configuration_loaded` is 0 while the fleet file, the tokens or the certificate in use
   are not those of the files. Otherwise a file with an error would be noticed in the log only.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gtid_audit.service.cluster_results import ConfigurationState
from gtid_audit.service.procedure_source import ProceduresRead
from repair.applying.procedures_applied import ProcedureState

PROCEDURES: Final = "gtid_audit_procedures"
LOADED: Final = "gtid_audit_configuration_loaded"
LOADED_AT: Final = "gtid_audit_fleet_loaded_timestamp_seconds"
SERVICE_METRICS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    PROCEDURES: (
        "Procedures of the journal of repairs, by state. NaN: the journal cannot be read.",
        ("state",),
    ),
    LOADED: ("1, or 0 if a file could not be loaded again: what was loaded before is in use.", ()),
    LOADED_AT: ("Unix time at which the fleet that is audited was loaded.", ()),
}
_NOT_KNOWN: Final = float("nan")


class ServiceCollector(Collector):
    """Reports what was last read. It reads no file."""

    def __init__(
        self,
        procedures: Callable[[], ProceduresRead],
        configuration: Callable[[], ConfigurationState],
    ) -> None:
        self._procedures = procedures
        self._configuration = configuration

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values, for the registry."""
        yield from map(_family, SERVICE_METRICS)

    def collect(self) -> Iterator[Metric]:
        """Yield the values."""
        read, state = self._procedures(), self._configuration()
        counts = Counter(one.state for one in read.procedures)
        procedures = _family(PROCEDURES)
        for each in ProcedureState:
            known = read.problem is None
            procedures.add_metric((each.value,), float(counts[each]) if known else _NOT_KNOWN)
        yield procedures
        loaded = _family(LOADED)
        loaded.add_metric((), float(state.problem is None))
        yield loaded
        loaded_at = _family(LOADED_AT)
        loaded_at.add_metric((), state.loaded_at.timestamp())
        yield loaded_at


def _family(name: str) -> GaugeMetricFamily:
    text, labels = SERVICE_METRICS[name]
    return GaugeMetricFamily(name, text, labels=labels)
