"""What a store of definitions holds, row by row."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def content(path: Path) -> list[Any]:
    """Return all that following logs has put there; ids, which count attempts, are left out."""
    with closing(sqlite3.connect(path)) as database:
        tables = ("servers", "databases", "temporary_tables")
        rows = [
            database.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in tables
        ]
        rows.append(
            database.execute(
                "SELECT schema_name, table_name, number, position, document FROM entries ORDER BY id"
            ).fetchall()
        )
    return rows
