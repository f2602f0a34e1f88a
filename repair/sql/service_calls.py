"""How an account of a managed service does what it may not do itself: it calls a procedure.

RDS, Aurora, Azure and Cloud SQL give no account the privilege to start a channel, or to add to
gtid_purged (topology/readings/vendors.py). Each has stored procedures in the schema `mysql` that do
so with the privileges of their definer. This module is the table of them; a procedure is added as a
field or a row.

What they do, as their manuals and published definitions show:

* A skip commits an empty transaction under one GTID: gtid_next, BEGIN, COMMIT. RDS does so with
  sql_log_bin = OFF, and mysqld logs it nevertheless (seen on 9.7.4). One that is executed already
  is an error on Azure, so a script calls it only for what is missing.
* A start is refused on RDS while one of the two threads runs. A stop is refused while none does.
* RDS sets auto-position with a stop before and a start after it.

None of them was tested on its service. A script that calls one verifies the result, as every script
does; an error of the procedure ends it.

Sources: Amazon RDS User Guide, "Replicating transactions using GTIDs", "Configuring, starting, and
stopping binary log replication", "Managing multi-source replication"; Amazon Aurora User Guide, the
same pages; Azure Database for MySQL, "Data-in Replication"; Cloud SQL, "Stored procedures".
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from binlog.quoting import quote_string
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion


@dataclass(frozen=True, slots=True)
class ServiceCalls:
    """The procedures of a service; "" for what it has none for."""

    skip: str  # of one GTID
    start: str
    stop: str
    auto_position: str = ""  # of 1 or 0
    append_purged: str = ""  # of a set that begins with +
    purge_range: str = ""  # of a server_uuid and the two ends of a range (called_sets.py)
    start_channel: str = ""  # the same for a channel with a name
    stop_channel: str = ""
    auto_position_channel: str = ""  # of 1 or 0, and the channel

    def skipping(self, gtid: str) -> str:
        """Return the call that commits an empty transaction under a GTID."""
        return f"CALL {self.skip}({quote_string(gtid)})"

    def appending(self, gtids: str) -> str:
        """Return the expression of the call that adds a set, also an expression, to gtid_purged."""
        return f"CONCAT('CALL {self.append_purged}(''+', {gtids}, ''')')"

    def purging(self, server_uuid: str, first: int, last: int) -> str:
        """Return the call that adds one range of GTIDs to gtid_purged; its ends are inclusive."""
        return f"CALL {self.purge_range}({quote_string(server_uuid)}, {first}, {last})"

    def steers(self, channel: str, *, switches: bool, alone: bool) -> bool:
        """Return whether there are procedures for a channel, also to switch to auto-position."""
        calls = [self.starting(channel, alone=alone), self.stopping(channel, alone=alone)]
        if switches:
            calls.append(self.switching(channel, alone=alone))
        return all(calls)

    def starting(self, channel: str, *, alone: bool) -> str:
        """Return the call that starts both threads of a channel; "" if there is none.

        A channel is `alone` if the server has no other one.
        """
        return _of_channel(self.start, self.start_channel, channel, alone=alone)

    def stopping(self, channel: str, *, alone: bool) -> str:
        """Return the call that stops both threads of a channel; "" if there is none."""
        return _of_channel(self.stop, self.stop_channel, channel, alone=alone)

    def switching(self, channel: str, *, alone: bool) -> str:
        """Return the call that switches a channel to auto-position; "" if there is none."""
        mode = ("1",)
        return _of_channel(
            self.auto_position, self.auto_position_channel, channel, *mode, alone=alone
        )


def service_calls(vendor: Vendor | None, version: ServerVersion) -> ServiceCalls | None:
    """Return the procedures of a server's service; None if it has none that are known."""
    rows = _CALLS.get(vendor, ()) if vendor is not None else ()
    return next((calls for since, calls in rows if version >= since), None)


def untested(vendor: Vendor) -> str:
    """Return the warning of a script that calls procedures of a service."""
    return (
        f"this script calls procedures of {vendor.value}. It was not tested on the service, and"
        " verifies what they did"
    )


def _of_channel(default: str, named: str, channel: str, *arguments: str, alone: bool) -> str:
    """Return a call. Without a channel's name it may act on every channel of the server."""
    name, values = default, list(arguments)
    if channel or not alone:
        name, values = named, [*arguments, quote_string(channel)]
    return f"CALL {name}({', '.join(values)})" if name else ""


_RDS: Final = ServiceCalls(
    skip="mysql.rds_skip_transaction_with_gtid",
    start="mysql.rds_start_replication",
    stop="mysql.rds_stop_replication",
    auto_position="mysql.rds_set_master_auto_position",
)
_RDS_CHANNELS: Final = ServiceCalls(
    skip=_RDS.skip,
    start=_RDS.start,
    stop=_RDS.stop,
    auto_position=_RDS.auto_position,
    start_channel="mysql.rds_start_replication_for_channel",
    stop_channel="mysql.rds_stop_replication_for_channel",
    auto_position_channel="mysql.rds_set_source_auto_position_for_channel",
)
_RDS_RANGES: Final = replace(_RDS_CHANNELS, purge_range="mysql.rds_set_external_source_gtid_purged")
_RDS_SOURCE: Final = ServiceCalls(
    skip=_RDS.skip,
    start=_RDS.start,
    stop=_RDS.stop,
    auto_position="mysql.rds_set_source_auto_position",
    start_channel=_RDS_CHANNELS.start_channel,
    stop_channel=_RDS_CHANNELS.stop_channel,
    auto_position_channel=_RDS_CHANNELS.auto_position_channel,
    purge_range=_RDS_RANGES.purge_range,
)
# Aurora MySQL 3 is 8.0. `rds_gtid_purged` is there since 3.04, which is 8.0.28.
_AURORA: Final = ServiceCalls(
    skip=_RDS.skip,
    start=_RDS.start,
    stop=_RDS.stop,
    auto_position="mysql.rds_set_source_auto_position",
    append_purged="mysql.rds_gtid_purged",
)
_AZURE: Final = ServiceCalls(
    skip="mysql.az_replication_skip_gtid_transaction",
    start="mysql.az_replication_start",
    stop="mysql.az_replication_stop",
)
_CLOUD_SQL: Final = ServiceCalls(
    skip="mysql.skipTransactionWithGtid",
    start="mysql.startReplication",
    stop="mysql.stopReplication",
)
_OLDEST: Final = ServerVersion(5, 7, 0)  # before it, no service has them for GTIDs
# By vendor: the procedures since a version, the newest first. RDS for MySQL 8.0.35, 5.7.44 and 8.4
# have those for channels; 8.0.0 to 8.0.34 do not. 8.0.37 and 8.4 have the one for gtid_purged.
_CALLS: Final[Mapping[Vendor, tuple[tuple[ServerVersion, ServiceCalls], ...]]] = {
    Vendor.RDS: (
        (ServerVersion(8, 4, 0), _RDS_SOURCE),
        (ServerVersion(8, 0, 37), _RDS_RANGES),
        (ServerVersion(8, 0, 35), _RDS_CHANNELS),
        (ServerVersion(8, 0, 0), _RDS),
        (ServerVersion(5, 7, 44), _RDS_CHANNELS),
        (_OLDEST, _RDS),
    ),
    Vendor.AURORA: ((ServerVersion(8, 0, 28), _AURORA), (_OLDEST, _RDS)),
    Vendor.AZURE: ((_OLDEST, _AZURE),),
    Vendor.CLOUD_SQL: ((_OLDEST, _CLOUD_SQL),),
}
