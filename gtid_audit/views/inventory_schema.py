"""The JSON Schema of what a command of the fleet file prints: docs/reference/inventory.schema.json.

Derived from the models that read it: an output is read exactly if the schema accepts it, except for
a key that an object has twice and the names of labels, which the schema does not express.
"""

import json
import sys
from typing import Any

from pydantic import TypeAdapter

from topology.adapters.inventory.listed_servers import ListedClusters, ListedServers


def inventory_schema() -> dict[str, Any]:
    """Return the schema of both forms."""
    forms: TypeAdapter[ListedServers | ListedClusters] = TypeAdapter(ListedServers | ListedClusters)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The servers or clusters that a command of a fleet file lists",
        **forms.json_schema(),
    }


def schema_text() -> str:
    """Return the schema as a file."""
    return json.dumps(inventory_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
