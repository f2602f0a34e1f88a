"""Empty transactions under GTIDs that a server lost and assigns itself (E3, `undo_on_replica`).

How it works
------------
The next commit of a client takes the lowest of these GTIDs. The set then looks as if the script had
executed it, while the replicas, which have the GTID, skip what the client wrote. So the script
commits the highest GTID first, and the lowest last:

    lost 10-12    script interrupted     11-12    the lowest is free: run it again
                  a client commits       10       it is executed before the script: stop
                  both                   10-12    the same

    executed, of the lost ones      of its own besides    the script
    not the lowest                  none                  goes on
    the lowest                      any                   stops
    any                             some                  stops

Between the guard and the last transaction a client may commit as well. So the script looks whether
it owns the lowest GTID itself: a session whose gtid_next is executed already owns nothing
(sql/rpl_gtid_execution.cc, set_gtid_next; seen on 5.6.24 and 9.7.4).

Once the lowest is executed, no table shows who committed it. A script that had finished stops at
that as well, and the operator knows whether it had.
"""

from collections.abc import Iterator

from binlog.quoting import quote_string
from gtid import GtidSet
from repair.model.actions import InjectEmpty
from repair.scripts.procedure import Setting
from repair.sql.guard import Guard
from repair.sql.script import commits_nothing, empty_transactions, literal, none_executed


def lost_own(action: InjectEmpty, setting: Setting) -> GtidSet:
    """Return the GTIDs that the server assigns itself, after steps that take their rows back."""
    return action.gtids.from_uuid(setting.server.server_uuid) if action.undone else GtidSet()


def not_reused(name: str, own: GtidSet, setting: Setting) -> Iterator[Guard]:
    """Yield the guards that no client has committed under these GTIDs, nor under later ones."""
    if not own:
        return
    yield commits_nothing(
        name,
        setting.server.server_uuid,
        setting.before[name].executed | own,
        so="may have reused the lost GTIDs",
    )
    first = none_executed(_lowest(own))
    yield Guard(
        f"{first} OR GTID_SUBSET({literal(own)}, @@GLOBAL.gtid_executed)",
        f"{name}: it has reused lost GTIDs for transactions of its own; its replicas skip these;"
        " nothing was changed; audit with --content and plan again",
    )
    yield Guard(
        first,
        f"{name}: all these GTIDs are executed. Had this script run before? Then go on with the"
        " next one. Otherwise they are reused: audit with --content and plan again",
    )


def highest_first(name: str, own: GtidSet) -> Iterator[str]:
    """Yield the lines that commit empty transactions, the lowest of each origin and tag last."""
    lowest = _lowest(own)
    yield from empty_transactions(own - lowest, highest_first=True)
    for gtid in lowest.gtids():
        next_gtid, begin, commit = empty_transactions(GtidSet.of(gtid))
        yield next_gtid
        yield from Guard(
            f"@@SESSION.gtid_owned = {quote_string(str(gtid))}",
            f"{name}: a client has committed {gtid} meanwhile; the replicas skip that; stop all"
            " writes, audit with --content and plan again",
        ).statements()
        yield begin
        yield commit


def _lowest(own: GtidSet) -> GtidSet:
    return GtidSet.union_of(own.from_tsid(tsid).first(1) for tsid in own.tsids)
