"""The data source `mysql_binlog`: binary and relay logs as rows, one for each transaction.

    spark.read.format("mysql_binlog").load("archive/*/binlog.*")

1. One task reads one file, or several small ones. Rows come in log order. The assignment of files
   to tasks does not change the rows.
2. A file that is damaged yields the rows before the damage, and one row with the error and its
   position. A task fails only for a defect of ours.
3. Each `load()` lists the files, and reads their headers, once.
4. Files that the options exclude are not read; rows that they exclude do not reach Spark. The
   source takes over a query's filters only with the option `pushdown`. Reason: Spark 4.1 to 4.3
   keep the filters of one query in the loaded source. They apply them to the next query as well, or
   to the other side of a self-join (docs/binlog-on-spark.md, "Filters"). Without the option Spark
   filters, and the results are correct.
5. A live server is a source too (binlog_server.py). A stream reads live servers only.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from spark_audit.adapters.binlog_files import facts_of, files_of, tasks_of
from spark_audit.adapters.binlog_options import BinlogOptions
from spark_audit.adapters.binlog_restrict import restricted, sought_by_options, with_columns
from spark_audit.binlog_conditions import is_exact, mask_of
from spark_audit.binlog_skipping import LogFacts, bounds_of, may_hold
from spark_audit.binlog_sought import Sought, sought_by
from spark_audit.ledger_schema import (
    LedgerRows,
    UnreadPart,
    chosen,
    columns_of,
    spark_schema,
)
from topology.adapters.inventory.problem import InventoryProblem

if TYPE_CHECKING:
    from binlog.ledger.ledger_columns import FileLedger

NAME: Final = "mysql_binlog"


class MysqlBinlogSource(DataSource):
    """The source that Spark asks for the schema and a reader. Holds options, and no account."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns that are asked for. Raises InventoryProblem for wrong options."""
        options = BinlogOptions.of(self.options)
        return spark_schema(
            chosen(
                digests=options.digests,
                details=options.details,
                names=options.columns,
            )
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader. Raises InventoryProblem, also for unknown columns."""
        options = BinlogOptions.of(self.options)
        columns = _columns(schema)
        if options.server is not None:
            from spark_audit.adapters.binlog_server import ServerReader

            return ServerReader(options, columns)
        reader = PushingReader if options.pushdown else LedgerReader
        return reader(options, columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream. Raises InventoryProblem, also for files."""
        options = BinlogOptions.of(self.options)
        if options.server is None:
            raise InventoryProblem("a stream is read from a server: set the option server")
        if find_spec("pyspark.sql.streaming.datasource") is None:
            raise InventoryProblem("a stream with bounded batches needs PySpark 4.2 or newer")
        from spark_audit.adapters.binlog_stream import BinlogStreamReader

        return BinlogStreamReader(options, _columns(schema))


@dataclass(slots=True)
class LedgerReader(DataSourceReader):
    """Finds the files on the driver, and reads them on the executors."""

    options: BinlogOptions
    columns: pa.Schema
    conditions: tuple[Filter, ...] = field(default=())

    def partitions(self) -> list[InputPartition]:
        """Find the files that may hold wanted rows. Raises InventoryProblem."""
        files = [file for file in files_of(self.options.paths) if self._is_wanted(file)]
        sought = sought_by(self.conditions, sought_by_options(self.options))
        if sought != Sought():
            folders = facts_of(files)
            files = [file for file in files if _may_hold(file, folders, sought)]
        # Spark replaces an empty list by a partition of its own class.
        return [LogPartition(task) for task in tasks_of(files)] or [LogPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the files of one task, in their order."""
        assert isinstance(partition, LogPartition), "we dealt it"
        for file in partition.files:
            yield from self._read_file(file)

    def _read_file(self, file: str) -> Iterator[pa.RecordBatch]:
        from binlog.adapters.ledger_files import ledger_of_file

        path = Path(file)
        place, name = _shown(file), _shown(path.name)
        options = with_columns(self.options, self.columns)
        try:
            ledger = ledger_of_file(
                path,
                options.request,
                threads_max=1,  # Spark assigns one core to a task
            )
        except OSError as error:
            yield from self._damage(UnreadPart.of(error, path=place, file=name))
            return
        yield from self._rows(place, ledger)
        if ledger.error is not None:
            yield from self._damage(UnreadPart.of(ledger.error, path=place, file=name))

    def _rows(self, place: str, ledger: "FileLedger") -> Iterator[pa.RecordBatch]:
        rows = LedgerRows(place, restricted(ledger.rows, self.options))
        mask = mask_of(self.conditions, rows)
        yield from (rows if mask is None else rows.where(mask)).batches(self.columns)

    def _damage(self, damage: UnreadPart) -> Iterator[pa.RecordBatch]:
        mask = mask_of(self.conditions, damage)
        if mask is None or mask.to_pylist() == [True]:
            yield damage.batch(self.columns)

    def _is_wanted(self, file: str) -> bool:
        """Return whether the filters on path and file name allow this file."""
        where = UnreadPart({"path": _shown(file), "file": _shown(Path(file).name)})
        mask = mask_of(filter(_is_of_files, self.conditions), where)
        return mask is None or mask.to_pylist() == [True]


@dataclass(slots=True)
class PushingReader(LedgerReader):
    """A reader that takes over filters (rule 4)."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Keep the filters that can be evaluated here exactly; return the others."""
        self.conditions = tuple(each for each in filters if is_exact(each))
        return [each for each in filters if not is_exact(each)]


@dataclass(frozen=True, slots=True)
class LogPartition(InputPartition):
    """The files of one task."""

    files: tuple[str, ...]


# -- wanted columns and files ---------------------------------------------------------------------


def _columns(schema: StructType) -> pa.Schema:
    try:
        return columns_of(schema)
    except ValueError as problem:
        raise InventoryProblem(f"{NAME}: {problem}") from None


def _is_of_files(condition: Filter) -> bool:
    return getattr(condition, "attribute", None) in {("path",), ("file",)}


def _may_hold(file: str, folders: Mapping[str, Mapping[str, LogFacts]], sought: Sought) -> bool:
    path = Path(file)
    folder = folders.get(str(path.parent), {})
    return path.name not in folder or may_hold(bounds_of(path.name, folder), sought)


def _shown(name: str) -> str:
    """Return a name as text. Bytes that are not UTF-8 become hexadecimal, after `x`."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")
