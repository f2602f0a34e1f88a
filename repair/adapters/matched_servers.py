"""Finds out which server of a plan each address leads to, by server_uuid.

The plan has the names and addresses under which the servers were audited. From another machine, or
through a tunnel, the same server has another address.

A server that did not answer when the plan was made is not in the plan. It may still not answer, as
a source that died: that is no reason not to apply the plan to the others. The audit afterwards
reads it again.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pymysql

from binlog.adapters.server_errors import server_words
from repair.adapters.script_runner import CONNECT_SECONDS_MAX
from repair.applying.written_plan import UnusablePlan, WrittenPlan
from topology.adapters.connection import connect
from topology.readings.target import ServerTarget


def match_servers(plan: WrittenPlan, targets: Sequence[ServerTarget]) -> dict[str, ServerTarget]:
    """Return the targets by the names that the plan uses.

    A target that does not answer keeps its name, if every server of the plan is another one.

    Raises:
        UnusablePlan: a server of the plan does not answer or is absent; a target is not the plan's.
    """
    by_uuid = {each.server_uuid: each.name for each in plan.servers}
    found: dict[str, ServerTarget] = {}
    silent: list[tuple[ServerTarget, str]] = []
    for target in targets:
        try:
            uuid = _uuid_of(target)
        except (pymysql.MySQLError, OSError) as error:
            silent.append((target, f"{target.name}: {server_words(error)}"))
            continue
        name = by_uuid.get(uuid)
        if name is None:
            known = ", ".join(f"{each.name} ({each.server_uuid})" for each in plan.servers)
            raise UnusablePlan(
                f"{target.name} has server_uuid {uuid}: no server of the plan, which has {known}"
            )
        if name in found:
            raise UnusablePlan(f"{target.name} and {found[name].name} are the same server: {name}")
        found[name] = target
    absent = [f"{each.name} ({each.address})" for each in plan.servers if each.name not in found]
    if absent:
        if not silent:
            raise UnusablePlan(f"no address was given for {', '.join(absent)}")
        raise UnusablePlan(
            f"{'; '.join(why for _, why in silent)}; the plan is also about {', '.join(absent)}: if"
            " that server stays away, plan again without it"
        )
    others = {target.name: target for target, _ in silent if target.name not in found}
    return {name: replace(target, name=name) for name, target in (found | others).items()}


def _uuid_of(target: ServerTarget) -> str:
    """Return the server_uuid behind an address. Raises MySQLError, OSError, UnusablePlan."""
    with (
        closing(connect(target, timeout_seconds_max=CONNECT_SECONDS_MAX)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT @@GLOBAL.server_uuid AS value")
        row = cursor.fetchone()
    if not row:
        raise UnusablePlan(f"{target.name}: it has no server_uuid")
    return str(row["value"]).lower()
