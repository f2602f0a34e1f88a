"""The version of the fields of JSON documents, with which every document begins.

It has no imports of ours: commands that only calculate with sets load it too.
"""

from collections.abc import Mapping
from typing import Any, Final

# It grows if a field is removed or changes its meaning. A new field is no new version.
SCHEMA_VERSION: Final = 1


def versioned(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document that begins with its schema_version; a plan has one of its own."""
    return {"schema_version": SCHEMA_VERSION, **document}
