"""Cases of scripts in which one or two facts are other ones, and what the script then is.

`python -m tests.approve` writes changed_scripts.txt: read the difference before you keep it. An
entry names a case of script_cases.py and the changes, and has the lines that come (+) and go (-). A
change is one of the servers (before the plan reads them), of a reading, or of the action itself.

The entries were selected from some thousand: each notices changes of the code that no other does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

from gtid import GtidSet
from repair.content.transaction_content import NetRow
from repair.model.actions import Action, AutoPositionOn, RedoTransactions, StartChannel, simulate
from repair.model.replication_model import Model, ModelServer
from repair.scripts.procedure import Setting
from repair.scripts.procedures import make_step
from repair.sql.replay import Replayed
from repair.sql.touched_tables import TouchedTable
from tests.digests import digest
from tests.finding_words import wrapped
from tests.repair.build import UUIDS, channel, gtids, server, snapshot_of
from tests.repair.cases import ENUMS, a_table
from tests.repair.script_cases import cases, finding, in_short
from tests.repair.test_data_repair import row
from tests.topology.changed_facts import CHANGES as OF_READINGS
from tests.topology.changed_facts import changed
from topology.readings.version import ServerVersion

APPROVED = Path(__file__).with_name("changed_scripts.txt")
_BETWEEN = "\n\n"
_LINES_SHOWN = 40
_TAGGED = GtidSet.parse(f"{UUIDS['a']}:dba:4-5")


@dataclass(frozen=True, slots=True)
class Case:
    """A script: the servers as a plan knows them, and the action."""

    servers: Model
    action: Action


CaseChange = Callable[[Case], Case]


def _server(change: Callable[[ModelServer, Model], ModelServer]) -> CaseChange:
    """Change the server of the action."""

    def make(case: Case) -> Case:
        here = case.servers[case.action.server]
        return replace(case, servers=case.servers.replace(change(here, case.servers)))

    return make


def _channels(**facts: Any) -> CaseChange:
    return _server(
        lambda here, _: replace(
            here, channels=tuple(replace(each, **facts) for each in here.channels)
        )
    )


def _and(made: Callable[[Case], ModelServer]) -> CaseChange:
    return lambda case: replace(case, servers=case.servers.replace(made(case)))


def _below(case: Case, executed: GtidSet, *, runs: bool = True) -> ModelServer:
    made = server("e", "", channel(case.action.server, runs=runs))
    return replace(made, executed=executed)


def _here(case: Case) -> GtidSet:
    return case.servers[case.action.server].executed


def _of_the_action(case: Case) -> GtidSet:
    gtids_of: GtidSet = getattr(case.action, "gtids", GtidSet())
    return gtids_of


def _everything(case: Case) -> GtidSet:
    return GtidSet.union_of(each.executed for each in case.servers.servers.values())


def _version(version: str) -> CaseChange:
    def make(case: Case) -> Case:
        found = {
            name: replace(each, version=ServerVersion.parse(version))
            for name, each in case.servers.servers.items()
        }
        return replace(case, servers=Model(found))

    return make


# The first that have another privilege or another word, and those before.
_VERSIONS_TRIED = (
    *("5.7.44", "8.0.0", "8.0.13", "8.0.14", "8.0.17", "8.0.18", "8.0.20", "8.0.21"),
    *("8.0.22", "8.0.23", "8.0.26", "8.4.0"),
)
OF_SERVERS: Mapping[str, CaseChange] = {
    "e below": _and(lambda case: _below(case, _here(case))),
    "e below, stopped": _and(lambda case: _below(case, _here(case), runs=False)),
    "e below, new": _and(lambda case: _below(case, GtidSet())),
    "e below, has all": _and(lambda case: _below(case, _everything(case))),
    "e below, has its own": _and(lambda case: _below(case, _here(case) | gtids("e:1-2"))),
    "f below e": lambda case: replace(
        case,
        servers=case.servers.replace(_below(case, _here(case))).replace(
            replace(server("f", "", channel("e")), executed=_here(case))
        ),
    ),
    "e unlinked, has all": _and(lambda case: replace(server("e", ""), executed=_everything(case))),
    "e unlinked, has its own": _and(
        lambda case: replace(server("e", ""), executed=_everything(case) | gtids("e:1-2"))
    ),
    "e unlinked, has just these": _and(
        lambda case: replace(server("e", ""), executed=_of_the_action(case))
    ),
    "e above, has all": lambda case: replace(
        case,
        servers=case.servers.replace(
            replace(server("e", ""), executed=_everything(case) | gtids("e:1-2"))
        ).replace(
            replace(
                case.servers[case.action.server],
                channels=(
                    *case.servers[case.action.server].channels,
                    channel("e", name="second"),
                ),
            )
        ),
    ),
    "by sets": _channels(auto_position=True),
    "by position": _channels(auto_position=False),
    "stopped": _channels(running=False),
    "running": _channels(running=True),
    "stuck": _channels(is_stuck=True),
    "source outside": _channels(source=None),
    "until": _channels(until="SQL_AFTER_GTIDS"),
    "held back": _channels(held_back_seconds=600),
    "passed some": _channels(passed=gtids("a:4-5")),
    "has more": _server(lambda here, _: replace(here, executed=here.executed | gtids("a:4 d:1"))),
    "has nothing": _server(lambda here, _: replace(here, executed=GtidSet())),
    "has all": _server(
        lambda here, servers: replace(
            here, executed=GtidSet.union_of(each.executed for each in servers.servers.values())
        )
    ),
    "many to fetch": lambda case: replace(
        case,
        servers=Model(
            {
                name: replace(each, executed=each.executed | gtids("a:10-30000"))
                if name != case.action.server
                else each
                for name, each in case.servers.servers.items()
            }
        ),
    ),
    **{version: _version(version) for version in _VERSIONS_TRIED},
}


def _rows(*rows: NetRow) -> Mapping[str, tuple[NetRow, ...]]:
    return {"rows": rows}


def _replayed(letter: str, number: int, *, table: str = "t", tag: str = "") -> Replayed:
    lines = ("BEGIN;", f"INSERT INTO `d`.`{table}` VALUES ({number});", "COMMIT;")
    tsid = f"{UUIDS[letter]}:{tag}" if tag else str(UUIDS[letter])
    [gtid] = GtidSet.parse(f"{tsid}:{number}").gtids()
    return Replayed(str(gtid), lines, frozenset({TouchedTable("d", table)}), gtid=gtid)


_TWO = (
    NetRow(a_table(), (1, 5), (1, 6)),
    NetRow(a_table("u"), None, (2, 7)),
    NetRow(a_table("u"), (3, 8), None),
)
_THREE = (row((1, 5), (1, 6)), row(None, (2, 7)), row((3, 8), None))

# Values of the fields of actions, by name. A change applies to the actions that have the field.
_VALUES: Mapping[str, Mapping[str, Any]] = {
    "gtids": {
        "of two servers": gtids("a:4 b:2"),
        "tagged": _TAGGED,
        "with and without a tag": _TAGGED | gtids("a:4"),
        "many": gtids("a:4-403"),
    },
    "may_be_executed": {"yes": True},
    "rows_are_there": {"yes": True},
    "restart": {"none": (), "two": ("", "second")},
    "filled": {"one": gtids("a:4")},
    "compared_at": {"nothing": GtidSet(), "some": gtids("a:1-3")},
    "retried": {"one": gtids("a:4")},
    "waiting": {
        "none": GtidSet(),
        "some": gtids("a:4-6"),
        "of two servers": gtids("a:4-6 d:2-3"),
    },
    "in_order": {"yes": True, "no": False},
    "until_executed": {"some": gtids("a:4-5")},
}
_NET_ROWS = {"none": (), "of two tables": _TWO, "one": _TWO[:1], "unread": None}
_VERSIONS = {
    "changed": _THREE[:1],
    "deleted": _THREE[1:2],
    "inserted": _THREE[2:],
    "of an ENUM": (row((1, 1), (1, 2), ENUMS),),
    "many": tuple(row((number, 5), (number, 6)) for number in range(1, 120)),
}
_REDONE = {
    "its own": (_replayed("a", 10), _replayed("a", 11)),
    "of two servers": (_replayed("b", 1), _replayed("d", 1, table="u")),
    "tagged": (_replayed("b", 1, tag="dba"),),
    "some there": (_replayed("b", 1), _replayed("b", 2)),
    "two hundred": tuple(_replayed("d", number) for number in range(1, 201)),
}


def _with(field: str, value: Any) -> CaseChange:
    def make(case: Case) -> Case:
        action = case.action
        if field not in {each.name for each in fields(action)}:
            return case
        changed: Action = replace(action, **{field: value})
        return replace(case, action=changed)

    return make


def _with_rows(value: object, *, net: bool) -> CaseChange:
    """Change the rows of an action that has rows of this kind."""

    def make(case: Case) -> Case:
        action = case.action
        takes_net = isinstance(action, AutoPositionOn | StartChannel | RedoTransactions)
        takes_none = isinstance(action, RedoTransactions)
        if net is not takes_net or (value is None and not takes_none):
            return case
        return _with("rows", value)(case)

    return make


OF_ACTIONS: Mapping[str, CaseChange] = {
    **{
        f"{field}: {name}": _with(field, value)
        for field, values in _VALUES.items()
        for name, value in values.items()
    },
    **{f"rows: {name}": _with_rows(rows, net=True) for name, rows in _NET_ROWS.items()},
    **{f"rows: {name}": _with_rows(rows, net=False) for name, rows in _VERSIONS.items()},
    **{f"redone: {name}": _with("transactions", each) for name, each in _REDONE.items()},
}
OF_CASES: Mapping[str, CaseChange] = {**OF_SERVERS, **OF_ACTIONS}


@dataclass(frozen=True, slots=True)
class Entry:
    """A case by its name, and its changes: of the case, and of readings (`a: name`)."""

    name: str
    changes: tuple[str, ...]

    def text(self) -> str:
        """Return the entry without what was approved."""
        return "\n".join([f"# {self.name}", *self.changes])


@cache
def _cases() -> Mapping[str, Case]:
    return {name: Case(servers, action) for name, servers, action in cases()}


def script(entry: Entry) -> str:
    """Return the script of an entry, in short."""
    case = _cases()[entry.name]
    of_readings = []
    for each in entry.changes:
        if each in OF_CASES:
            case = OF_CASES[each](case)
        else:
            name, _, change = each.partition(": ")
            of_readings.append((name, "last", change))
    snapshot = changed(snapshot_of(case.servers), tuple(of_readings))
    setting = Setting(
        case.servers[case.action.server],
        before=case.servers,
        after=simulate(case.servers, case.action),
        seen=snapshot.last_read,
    )
    step = make_step(case.action, setting, after=0, finding=finding())
    return wrapped(in_short(step))


def outcome(entry: Entry) -> str:
    """Return what is otherwise than without the changes."""
    before = script(Entry(entry.name, ())).splitlines()
    made = unified_diff(before, script(entry).splitlines(), lineterm="", n=0)
    lines = [line for line in made if not line.startswith(("---", "+++", "@@"))]
    left = lines[_LINES_SHOWN:]
    if left:
        lines = [*lines[:_LINES_SHOWN], f"and {len(left)} more lines: {digest(left)}"]
    return "\n".join(f"  {line}" for line in lines)


def every_change() -> Iterator[Entry]:
    """Yield each case with each change."""
    for name, case in _cases().items():
        for change in OF_CASES:
            yield Entry(name, (change,))
        for asked in case.servers.servers:
            yield from (Entry(name, (f"{asked}: {change}",)) for change in OF_READINGS)


def read_entries(text: str) -> list[tuple[Entry, str]]:
    """Read the whole file: entries, and what was approved for each."""
    found = []
    for block in text.strip("\n").split(_BETWEEN):
        lines = block.splitlines()
        above = [line for line in lines if not line.startswith("  ")]
        entry = Entry(above[0].removeprefix("# "), tuple(above[1:]))
        found.append((entry, "\n".join(lines[len(above) :])))
    return found


def text() -> str:
    """Return the text of the file, for its entries, as the product is now."""
    entries = [entry for entry, _ in read_entries(APPROVED.read_text())]
    found = [(each, outcome(each)) for each in entries if each.name in _cases()]
    return _BETWEEN.join(f"{each.text()}\n{lines}" for each, lines in found if lines) + "\n"
