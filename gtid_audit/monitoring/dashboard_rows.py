"""What each of the four dashboards shows, row by row: titles and queries. Pure.

`runbook` is the address to which codes link. Every query selects the clusters of the variable
`cluster`, except those that have no such label.
"""

from typing import Final

from gtid_audit.monitoring.alert_table import COMPONENT, name_of
from gtid_audit.monitoring.dashboard_panels import (
    BLUE,
    GREEN,
    PURPLE,
    RED,
    YELLOW,
    Json,
    PanelField,
    PanelQuery,
    PanelRow,
    TableColumn,
    matrix,
    stat,
    state_timeline,
    table,
    timeseries,
    value_mapping,
    verdict_mappings,
)

_SELECTED: Final = 'cluster=~"$cluster"'
_EDGE: Final = "{{cluster}}: {{source}} → {{replica}} {{channel}}"
_SERVER: Final = "{{cluster}}: {{server}}"
_CLUSTER: Final = "{{cluster}}"
_TO_CLUSTER: Final = (
    "Cluster",
    "/d/gtid-audit-cluster?var-cluster=${__value.raw:percentencode}&${datasource:queryparam}",
)
_VERDICT_COLORS: Final = (
    ("OK", GREEN), ("WARNING", YELLOW), ("CRITICAL", RED), ("UNKNOWN", PURPLE)
)  # fmt: skip
_SEVERITY_COLORS: Final = (("info", BLUE), ("warning", YELLOW), ("critical", RED))
_SEVERITIES: Final = value_mapping(
    {"1": ("info", BLUE), "2": ("warning", YELLOW), "3": ("critical", RED)}
)
_SEVERITY_NAMES: Final = value_mapping({name: (name, color) for name, color in _SEVERITY_COLORS})
_ANSWERS: Final = value_mapping({"0": ("no answer", RED), "1": ("answers", GREEN)})
_VERDICTS: Final = PanelField(mappings=verdict_mappings())
_TIME_LEFT: Final = ((None, RED), (4 * 3600, YELLOW), (86_400, GREEN))
_NONE_OR_YELLOW: Final = ((None, GREEN), (1, YELLOW))
_NONE_OR_RED: Final = ((None, GREEN), (1, RED))


def _of(metric: str, **labels: str) -> str:
    """Return the series of a metric in the selected clusters, with some labels."""
    more = "".join(f', {name}="{value}"' for name, value in labels.items())
    return f"gtid_audit_{metric}{{{_SELECTED}{more}}}"


# The numbers of the exit status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
_VERDICT: Final = (
    f"sum by (cluster) ({_of('verdict', verdict='WARNING')}"
    f" or {_of('verdict', verdict='CRITICAL')} * 2"
    f" or {_of('verdict', verdict='UNKNOWN')} * 3)"
)
# The worst severity of each code: 1 info, 2 warning, 3 critical.
_WORST: Final = (
    f"max by (cluster, code) (({_of('findings', severity='critical')} > 0) * 0 + 3"
    f" or ({_of('findings', severity='warning')} > 0) * 0 + 2"
    f" or ({_of('findings', severity='info')} > 0) * 0 + 1)"
)


def fleet_rows(runbook: str) -> tuple[PanelRow, ...]:
    """Return the rows of the fleet: how many clusters are how well, and what was found where."""
    now = (
        stat(
            "Clusters by verdict",
            PanelQuery(f"sum by (verdict) ({_of('verdict')})", "{{verdict}}"),
            width=10,
            values=PanelField(colors=_VERDICT_COLORS),
            text="UNKNOWN: something could not be read, and nothing critical was found.",
            by_name=True,
        ),
        stat(
            "Servers that do not answer",
            PanelQuery(f"count({_of('server_up')} == 0) or vector(0)"),
            width=5,
            values=PanelField(thresholds=_NONE_OR_RED),
            text="Nothing is known about them.",
        ),
        stat(
            "Clusters partly unknown",
            PanelQuery(f"count(max by (cluster) ({_of('unread_facts')}) > 0) or vector(0)"),
            width=4,
            values=PanelField(thresholds=_NONE_OR_YELLOW),
            text="Facts could not be read. A cluster with a critical finding counts, too.",
        ),
        stat(
            "Next deadline",
            PanelQuery(f"min({_of('finding_deadline_timestamp_seconds')} - time())"),
            width=5,
            values=PanelField("s", _TIME_LEFT),
            text="Until binary logs that a repair needs can be deleted.",
        ),
        matrix(
            "Clusters and codes",
            _WORST,
            rows=TableColumn("cluster", "cluster", link=_TO_CLUSTER),
            columns="code",
            values=PanelField(mappings=(_SEVERITIES,)),
            text="The worst severity of each code. A cluster without a finding has no row.",
        ),
        _findings(runbook),
    )
    by_severity = f"count by (severity) ({_of('finding_transactions')})"
    later = (
        state_timeline(
            "Verdict over time", PanelQuery(_VERDICT, _CLUSTER), width=12, values=_VERDICTS
        ),
        timeseries(
            "Findings by severity",
            PanelQuery(by_severity, "{{severity}}"),
            width=12,
            values=PanelField(colors=_SEVERITY_COLORS),
        ),
    )
    return (PanelRow("Now", now), PanelRow("Over time", later))


def cluster_rows(runbook: str) -> tuple[PanelRow, ...]:
    """Return the rows of one cluster: its findings, servers and channels."""
    verdict = stat(
        "Verdict", PanelQuery(_VERDICT, _CLUSTER), width=24, values=_VERDICTS, by_name=True
    )
    differences = (("Missing", "missing"), ("Holes", "hole"), ("Errant", "errant"))
    sets = (
        timeseries(
            "Transactions per second",
            PanelQuery(f"deriv({_of('server_executed_transactions')}[$__rate_interval])", _SERVER),
            width=12,
        ),
        timeseries(
            "Intervals of gtid_executed",
            PanelQuery(_of("server_executed_intervals"), _SERVER),
            width=12,
        ),
    )
    return (
        PanelRow("Now", (verdict, _findings(runbook), _servers(), _channels())),
        PanelRow(
            "Differences over time",
            tuple(
                timeseries(title, PanelQuery(_of(f"{name}_transactions"), _EDGE), width=8)
                for title, name in differences
            ),
        ),
        PanelRow("Sets over time", sets),
    )


def runway_rows(runbook: str) -> tuple[PanelRow, ...]:
    """Return the rows of the time that is left: for repairs, and until logs are deleted."""
    place = (
        TableColumn("cluster", "cluster", link=_TO_CLUSTER),
        TableColumn("source", "source"),
        TableColumn("replica", "replica"),
    )
    now = (
        table(
            "Shortest runways",
            [f"bottomk(20, {_of('runway_seconds')})"],
            (*place, TableColumn("Value", "runway", "s", _TIME_LEFT)),
            width=12,
            text="How long the source keeps what the replica needs, or would need if it stopped"
            " now.",
        ),
        table(
            "Deadlines of findings",
            [f"{_of('finding_deadline_timestamp_seconds')} - time()"],
            (*place, _code(runbook), TableColumn("Value", "time left", "s", _TIME_LEFT)),
            width=12,
            text="After it, no binary log has what the repair needs.",
        ),
    )
    graphs = (
        ("Runway", _of("runway_seconds"), _EDGE, "s"),
        ("Age of holes", f"time() - {_of('hole_first_seen_timestamp_seconds')}", _EDGE, "s"),
        ("Purged transactions", _of("server_purged_transactions"), _SERVER, "short"),
        ("GTIDs left", _of("server_gno_headroom"), _SERVER, "short"),
    )
    return (PanelRow("Now", now), PanelRow("Over time", _graphs(graphs, width=12)))


def health_rows(_runbook: str) -> tuple[PanelRow, ...]:
    """Return the rows of the audit itself: its age, its duration, its failures."""
    firing = table(
        "Alerts that fire",
        [f'ALERTS{{component="{COMPONENT}", alertstate="firing"}}'],
        (
            TableColumn("alertname", "alert"),
            TableColumn("severity", "severity", mappings=(_SEVERITY_NAMES,)),
            TableColumn("cluster", "cluster", link=_TO_CLUSTER),
            *(TableColumn(name, name) for name in ("server", "source", "replica")),
        ),
        width=16,
    )
    services = table(
        "Services",
        ["gtid_audit_build_info"],
        (TableColumn("instance", "instance"), TableColumn("version", "version")),
        width=8,
    )
    finished = _of("last_audit_timestamp_seconds")
    rate, failures = _of("audits_total"), _of("audit_failures_total")
    graphs = (
        (
            "Age of the latest audit",
            f"time() - {finished}",
            _CLUSTER,
            "s",
        ),
        ("Duration of an audit", _of("audit_duration_seconds"), _CLUSTER, "s"),
        ("Interval", _of("interval_seconds"), _CLUSTER, "s"),
        ("Audits per minute", f"60 * rate({rate}[$__rate_interval])", _CLUSTER, "short"),
        ("Failures", f"increase({failures}[$__rate_interval])", _CLUSTER, "short"),
        ("Facts that could not be read", _of("unread_facts"), _SERVER, "short"),
    )
    answers = state_timeline(
        "Servers that answer",
        PanelQuery(_of("server_up"), _SERVER),
        width=24,
        values=PanelField(mappings=(_ANSWERS,)),
    )
    return (
        PanelRow("Now", (firing, services)),
        PanelRow("Over time", _graphs(graphs, width=8)),
        PanelRow("Servers", (answers,)),
    )


def _graphs(rows: tuple[tuple[str, str, str, str], ...], *, width: int) -> tuple[Json, ...]:
    return tuple(
        timeseries(title, PanelQuery(expr, legend), width=width, values=PanelField(unit))
        for title, expr, legend, unit in rows
    )


def _code(runbook: str) -> TableColumn:
    link = ("Runbook", f"{runbook}#{name_of('${__value.raw}')}")
    return TableColumn("code", "code", link=link)


_TIMES_OF_FINDINGS: Final = ("first_seen", "last_seen", "deadline")


def _findings(runbook: str) -> Json:
    times = tuple(f"finding_{name}_timestamp_seconds" for name in _TIMES_OF_FINDINGS)
    # Grafana's units of time count milliseconds.
    queries = [_of("finding_transactions"), *(f"{_of(name)} * 1000" for name in times)]
    return table(
        "Findings",
        queries,
        (
            TableColumn("severity", "severity", mappings=(_SEVERITY_NAMES,)),
            _code(runbook),
            TableColumn("cluster", "cluster", link=_TO_CLUSTER),
            *(TableColumn(name, name) for name in ("source", "replica", "channel")),
            TableColumn("Value #A", "transactions", "locale"),
            TableColumn("Value #B", "since", "dateTimeFromNow"),
            TableColumn("Value #C", "last found", "dateTimeFromNow"),
            TableColumn("Value #D", "repairable until", "dateTimeAsIso"),
        ),
        width=24,
        text="A code leads to its runbook, a cluster to its dashboard.",
    )


def _servers() -> Json:
    names = (
        *("server_up", "unread_facts", "server_executed_transactions"),
        *("server_purged_transactions", "server_executed_intervals", "server_executed_tsids"),
        "server_gno_headroom",
    )
    return table(
        "Servers",
        [_of(name) for name in names],
        (
            TableColumn("server", "server"),
            TableColumn("Value #A", "state", mappings=(_ANSWERS,)),
            TableColumn("Value #B", "facts unread", thresholds=_NONE_OR_YELLOW),
            TableColumn("Value #C", "executed", "locale"),
            TableColumn("Value #D", "purged", "locale"),
            TableColumn("Value #E", "intervals", "locale"),
            TableColumn("Value #F", "UUIDs and tags", "locale"),
            TableColumn("Value #G", "GTIDs left", "short"),
        ),
        width=12,
        text="The sets of each server, in transactions. NaN: could not be read.",
    )


def _channels() -> Json:
    names = ("missing", "hole", "errant")
    return table(
        "Channels",
        [*(_of(f"{name}_transactions") for name in names), _of("runway_seconds")],
        (
            *(TableColumn(name, name) for name in ("source", "replica", "channel")),
            TableColumn("Value #A", "missing", "locale"),
            TableColumn("Value #B", "holes", "locale", _NONE_OR_RED),
            TableColumn("Value #C", "errant", "locale", _NONE_OR_RED),
            TableColumn("Value #D", "runway", "s", _TIME_LEFT),
        ),
        width=12,
        text="Holes are what the channel does not deliver any more.",
    )
