"""The cluster that a command reads: its servers, its limits and its policy."""

from dataclasses import dataclass

from gtid import GtidSet
from topology.adapters.collect import CollectLimits
from topology.adapters.consumer_source import ConsumerSource
from topology.policy import Policy
from topology.questions.contents_to_compare import QUERY_SECONDS_MAX
from topology.readings.target import ServerTarget


@dataclass(frozen=True, slots=True)
class ClusterToRead:
    """A cluster, as a command line or a fleet file describes it."""

    name: str
    targets: tuple[ServerTarget, ...]
    limits: CollectLimits
    policy: Policy
    query_seconds_max: float = QUERY_SECONDS_MAX  # for one query while contents are compared
    consumers: tuple[ConsumerSource, ...] = ()
    # GTIDs whose contents are compared in any case: an earlier audit found them to be different.
    suspects: GtidSet = GtidSet()  # noqa: RUF009 - immutable
