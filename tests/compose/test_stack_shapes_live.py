"""The other shapes of `make up`, with load: each replicates, and the auditor reports OK."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compose.containers.stack import SHAPES, Stack
from compose.native.installation import ProviderMissing
from compose.native.server import free_port
from gtid import GtidSet
from tests.compose.test_stack_live import PORTS, SECONDS_MAX, read

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PROJECT = "gtid-audit-test-shapes"
# The server of each shape that everything reaches last.
LAST = {"chain": "c3", "multi-source": "m3", "group": "g3"}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    try:
        made = Stack(
            PROJECT, variables={f"{name}_PORT": str(free_port("127.0.0.1")) for name in PORTS}
        )
        made.down()  # what an interrupted run left
        try:
            made.up(list(LAST), load=True)
            yield made
        finally:
            made.down()
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


def clusters(stack: Stack) -> dict[str, dict[str, Any]]:
    """Return what the auditor's interface says of each cluster."""
    (address,) = [line for line in stack.addresses() if line.startswith("auditor: ")]
    token = (stack.folder / "token").read_text()
    url = f"{address.removeprefix('auditor: ')}api/v1/clusters"
    found = json.loads(read(url, Authorization=f"Bearer {token}"))
    return {each["cluster"]: each for each in found["clusters"]}


def executed(stack: Stack, server: str) -> GtidSet:
    return GtidSet.parse(stack.sql(server, "SELECT @@GLOBAL.gtid_executed;").replace("\\n", ""))


def test_these_are_all_shapes() -> None:
    assert SHAPES.keys() == {"pair", *LAST}


def test_each_shape_is_ok_while_it_is_written_to(stack: Stack) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while {name: each["verdict"] for name, each in clusters(stack).items()} != dict.fromkeys(
        LAST, "OK"
    ):
        assert time.monotonic() < deadline, clusters(stack)
        time.sleep(1)
    first = {name: each["read_at"] for name, each in clusters(stack).items()}
    before = {shape: executed(stack, last) for shape, last in LAST.items()}
    # What every writer commits reaches the last server.
    while any(not (executed(stack, LAST[shape]) - before[shape]).uuids for shape in LAST) or any(
        each["read_at"] == first[name] for name, each in clusters(stack).items()
    ):
        assert time.monotonic() < deadline, before
        time.sleep(1)
    new = executed(stack, LAST["multi-source"]) - before["multi-source"]
    while len(new.uuids) < len(SHAPES["multi-source"]):
        assert time.monotonic() < deadline, new
        time.sleep(1)
        new = executed(stack, LAST["multi-source"]) - before["multi-source"]
    assert {each["verdict"] for each in clusters(stack).values()} == {"OK"}
