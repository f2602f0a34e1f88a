"""Finds out which server of a plan each address leads to, by server_uuid.

The plan has the names and addresses under which the servers were audited. From another machine, or
through a tunnel, the same server has another address.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pymysql

from repair.adapters.script_runner import CONNECT_SECONDS_MAX, error_words
from repair.applying.written_plan import UnusablePlan, WrittenPlan
from topology.adapters.connection import connect
from topology.readings.target import ServerTarget


def match_servers(plan: WrittenPlan, targets: Sequence[ServerTarget]) -> dict[str, ServerTarget]:
    """Return the targets by the names that the plan uses.

    Raises:
        UnusablePlan: a server does not answer or is not the plan's, or one of the plan's is absent.
    """
    by_uuid = {each.server_uuid: each.name for each in plan.servers}
    found: dict[str, ServerTarget] = {}
    for target in targets:
        uuid = _uuid_of(target)
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
        raise UnusablePlan(f"no address was given for {', '.join(absent)}")
    return {name: replace(target, name=name) for name, target in found.items()}


def _uuid_of(target: ServerTarget) -> str:
    try:
        with (
            closing(connect(target, timeout_seconds_max=CONNECT_SECONDS_MAX)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT @@GLOBAL.server_uuid AS value")
            row = cursor.fetchone()
    except (pymysql.MySQLError, OSError) as error:
        raise UnusablePlan(f"{target.name}: {error_words(error)}") from error
    if not row:
        raise UnusablePlan(f"{target.name}: it has no server_uuid")
    return str(row["value"]).lower()
