"""Servers that have written binlogs of every kind, once per run; the logs are the material."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compose.native.installation import Installation
from tests.binlog.material import SCRIPT_56, SCRIPT_97, Written, written_by


@pytest.fixture(scope="session")
def written97(installation97: Installation) -> Iterator[Written]:
    with written_by(installation97, SCRIPT_97) as written:
        yield written


@pytest.fixture(scope="session")
def written56(installation56: Installation) -> Iterator[Written]:
    with written_by(installation56, SCRIPT_56) as written:
        yield written


@pytest.fixture(params=["written56", "written97"])
def written(request: pytest.FixtureRequest) -> Written:
    found: Written = request.getfixturevalue(request.param)
    return found
