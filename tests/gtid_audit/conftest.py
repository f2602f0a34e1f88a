"""Servers are lent from test to test here, one Spark session serves all, and the page is wide.

Every document that a command prints while a test runs is compared with its JSON Schema.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest

from gtid_audit import output
from gtid_audit.views.command_schemas import closed, schema_for
from tests.one_spark import spark
from tests.server_pool import pair97, pairs97
from topology.documents.document_version import versioned

__all__ = ["pair97", "pairs97", "spark"]


@pytest.fixture(autouse=True)
def _page_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the path of a test's folder is, and so where a line breaks, is no matter of ours."""
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(autouse=True)
def _documents_follow_their_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(document: Mapping[str, Any]) -> dict[str, Any]:
        whole = versioned(document)
        schema = schema_for(whole)
        if schema is not None:
            jsonschema.Draft202012Validator(closed(schema)).validate(whole)
        return whole

    monkeypatch.setattr(output, "versioned", checked)
