"""A plan as its directory holds it: the scripts in order, and the states before and after them.

1. The scripts are what runs; plan.json describes them. It also has the SHA-256 of each script, so
   that an edited script is noticed: it was not simulated.
2. Only the fields that applying needs are read. Anything that is missing or of another type makes
   the plan unusable, with its place.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gtid import GtidError, GtidSet
from repair.model.strategy_case import LEFT_OUT
from repair.repair_plan import unreported_of
from repair.scripts.steps import ExpectedChannel, ExpectedState

READABLE_VERSIONS: Final = (2,)


class UnusablePlan(ValueError):
    """A directory whose plan cannot be applied. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """A server that the plan was made from."""

    name: str
    address: str
    server_uuid: str


@dataclass(frozen=True, slots=True)
class PlannedScript:
    """A script, in the order of the plan: a check of a server, or the change of a step."""

    number: int
    step: int  # the number of the step that it changes, or checks
    server: str
    file_name: str
    sha256: str
    title: str
    is_check: bool
    proves: str  # the text that its last statement returns if no guard failed
    estimated_seconds: int = 0
    risk: str = ""
    if_stopped: str = ""
    before: tuple[ExpectedState, ...] = ()
    after: tuple[ExpectedState, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    """What applying needs to know of a plan."""

    id: str
    cluster: str
    command: tuple[str, ...]  # that made the plan, word by word
    servers: tuple[PlannedServer, ...]
    scripts: tuple[PlannedScript, ...]
    # The findings that an audit may show after the plan, by id, with their transactions.
    announced: Mapping[str, GtidSet]
    # Announced findings that stay in the logs only: their rows were written alike (E4).
    made_alike: frozenset[str]
    warnings: tuple[str, ...]
    # Of announced E4: no set shows these, so the audit afterwards compares their contents again.
    other_contents: GtidSet = GtidSet()  # noqa: RUF009 - immutable

    @property
    def unreported(self) -> tuple[str, ...]:
        """Return the warnings about what stays different and no later audit reports."""
        return unreported_of(self.warnings)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return what data the plan leaves out, and where: OK is not said without it."""
        return tuple(
            each.removeprefix(LEFT_OUT) for each in self.warnings if each.startswith(LEFT_OUT)
        )

    def server(self, name: str) -> PlannedServer:
        """Return a server of the plan."""
        return next(each for each in self.servers if each.name == name)

    def begin_again(self, done: int) -> int:
        """Return with how many scripts done a run begins, after `done` of them.

        A check is about the moment before its step: it counts as done only together with it.
        """
        while done and done < len(self.scripts) and self.scripts[done - 1].is_check:
            done -= 1
        return done

    def checks_of(self, script: PlannedScript) -> tuple[PlannedScript, ...]:
        """Return the checks of a script's step, which run directly before its change."""
        return tuple(each for each in self.scripts if each.step == script.step and each.is_check)

    def change_of(self, script: PlannedScript) -> PlannedScript:
        """Return the script that changes something in a script's step."""
        return next(each for each in self.scripts if each.number == script.step)

    def states_after(
        self, script: PlannedScript, server: str
    ) -> Iterator[tuple[ExpectedState, ExpectedState]]:
        """Yield the states of a server before and after each later script that changes it."""
        for later in self.scripts[self.scripts.index(script) + 1 :]:
            for before, after in zip(later.before, later.after, strict=True):
                if after.server == server:
                    yield before, after


def read_plan(text: str) -> WrittenPlan:
    """Return the plan of a plan.json.

    Raises:
        UnusablePlan: it is not a plan, one of another version, or one without a field.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnusablePlan(f"not JSON: {error}") from error
    if not isinstance(document, dict) or "schema_version" not in document:
        raise UnusablePlan("not a plan of gtid-audit")
    version = document["schema_version"]
    if version not in READABLE_VERSIONS:
        raise UnusablePlan(
            f"it has schema_version {version}; this gtid-audit applies"
            f" {', '.join(map(str, READABLE_VERSIONS))}: plan again"
        )
    if "digests" not in document:
        raise UnusablePlan("it does not have the digests of its scripts: plan again")
    try:
        return _plan(document)
    except (KeyError, TypeError, AttributeError, GtidError, ValueError) as error:
        raise UnusablePlan(f"not a plan of gtid-audit: {type(error).__name__}: {error}") from error


def _plan(document: Mapping[str, Any]) -> WrittenPlan:
    afterwards = [*document["not_planned"], *document["afterwards"]]
    return WrittenPlan(
        id=_text(document["id"]),
        cluster=_text(document["cluster"]),
        command=tuple(shlex.split(_text(document["command"]))),
        servers=tuple(map(_server, document["assumed"])),
        scripts=tuple(_scripts(document["steps"], document["digests"])),
        announced={
            _text(each["finding_id"]): GtidSet.parse(_text(each["gtids"])) for each in afterwards
        },
        made_alike=frozenset(
            _text(each["finding_id"])
            for each in document["afterwards"]
            if _flag(each.get("is_only_in_logs", False))
        ),
        warnings=tuple(map(_text, document["warnings"])),
        other_contents=GtidSet.union_of(
            GtidSet.parse(_text(each["gtids"])) for each in afterwards if each["code"] == "E4"
        ),
    )


def _server(each: Mapping[str, Any]) -> PlannedServer:
    socket = each["unix_socket"]
    address = f"{_text(each['host'])}:{each['port']}" if socket is None else _text(socket)
    return PlannedServer(_text(each["server"]), address, _text(each["server_uuid"]).lower())


def _scripts(steps: list[Mapping[str, Any]], digests: Mapping[str, str]) -> Iterator[PlannedScript]:
    for step in steps:
        number = int(step["number"])
        checks = step["checks"]
        for at, check in enumerate(checks):
            name = _file_name(check["script"])
            server = _text(check["server"])
            yield PlannedScript(
                number=number - len(checks) + at,
                step=number,
                server=server,
                file_name=name,
                sha256=_text(digests[name]),
                title=f"check {server} before step {number}: {_text(check['why'])}",
                is_check=True,
                proves=f"go on with step {number}",
            )
        name = _file_name(step["script"])
        yield PlannedScript(
            number=number,
            step=number,
            server=_text(step["server"]),
            file_name=name,
            sha256=_text(digests[name]),
            title=_text(step["title"]),
            is_check=False,
            proves=f"step {number} is done",
            estimated_seconds=int(step["estimated_seconds"]),
            risk=_text(step["risk"]),
            if_stopped=_text(step["if_stopped"]),
            before=tuple(map(_state, step["before"])),
            after=tuple(map(_state, step["after"])),
        )


def _state(each: Mapping[str, Any]) -> ExpectedState:
    for name in ("gtid_executed", "gtid_purged"):
        GtidSet.parse(_text(each[name]))  # raises GtidError
    return ExpectedState(
        server=_text(each["server"]),
        gtid_executed=each["gtid_executed"],
        gtid_purged=each["gtid_purged"],
        channels=tuple(map(_text, each["channels"])),
        replication=tuple(map(_channel, each["replication"])),
    )


def _channel(each: Mapping[str, Any]) -> ExpectedChannel:
    source = each["source"]
    return ExpectedChannel(
        name=_text(each["name"]),
        source=None if source is None else _text(source),
        auto_position=_flag(each["auto_position"]),
        running=_flag(each["running"]),
    )


def _file_name(value: object) -> str:
    name = _text(value)
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"{name!r} is no file of the plan's directory")
    return name


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value
