"""The fleet files that B10 reads are fleet files of the same servers."""

import pytest

from benchmarks.fleet_text import ENVIRONMENT, block_text, dsn_text
from topology.adapters.inventory.fleet_file import parse_fleet


def test_both_forms_have_the_same_servers() -> None:
    block, dsns = (
        parse_fleet(text, name="f", environment=ENVIRONMENT, warn=pytest.fail)
        for text in (block_text(3), dsn_text(3))
    )
    assert len(block.clusters) == 3
    for one, other in zip(block.clusters, dsns.clusters, strict=True):
        assert [(each.name, each.host, each.port) for each in one.targets] == [
            (each.name, each.host, each.port) for each in other.targets
        ]
