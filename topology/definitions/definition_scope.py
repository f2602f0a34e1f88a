"""Which objects a comparison is restricted to: one schema, or one table with its triggers."""

from dataclasses import dataclass

from binlog.quoting import quote_identifier
from topology.definitions.canonical import CanonicalDefinition
from topology.definitions.ddl_searches import concerns, names_of, triggered_tables
from topology.definitions.schema_objects import ObjectKey, ObjectKind
from topology.readings.logged_ddl import LoggedDdl


@dataclass(frozen=True, slots=True)
class DefinitionScope:
    """A schema, and a table or view of it; "" for all objects of the schema."""

    schema: str
    table: str = ""

    def __str__(self) -> str:
        """Return the name as an operand is written: with backquotes where it needs them."""
        if not self.table:
            return self.schema
        return ".".join(
            quote_identifier(each) if {".", "`"} & {*each} else each
            for each in (self.schema, self.table)
        )

    def includes(self, key: ObjectKey, *definitions: CanonicalDefinition | None) -> bool:
        """Return whether an object is in scope; of a trigger, its table decides."""
        if key.schema.casefold() != self.schema.casefold():
            return False
        if not self.table:
            return True
        if key.kind in {ObjectKind.TABLE, ObjectKind.VIEW}:
            return key.name.casefold() == self.table.casefold()
        if key.kind is ObjectKind.SCHEMA:
            return any(each is None for each in definitions)  # without it there is no table
        tables = {
            name.casefold() for each in definitions if each for name in triggered_tables(each)
        }
        return key.kind is ObjectKind.TRIGGER and self.table.casefold() in tables

    def concerns(self, ddl: LoggedDdl) -> bool:
        """Return whether a DDL transaction may have changed an object in scope.

        A statement may name no schema. So every one may concern a schema.
        """
        key = ObjectKey(ObjectKind.TABLE, self.schema, self.table)
        return not self.table or concerns(ddl, key, names_of(key, ()))
