"""Which work a server's filters leave out: the rules of the manual, one by one."""

from uuid import UUID

import pytest

from topology.readings.replication_filters import ReplicationFilters, ServerFilters, tables_named_in

A, B = UUID(int=1), UUID(int=2)


def filters(**columns: str) -> ReplicationFilters:
    return ReplicationFilters.of((f"Replicate_{name}", text) for name, text in columns.items())


@pytest.mark.parametrize(
    ("found", "left_out", "applied"),
    [
        (filters(Do_DB="a,b"), ("c.t",), ("a.t", "b.t")),
        (filters(Ignore_DB="a"), ("a.t",), ("b.t",)),
        (filters(Do_DB="a", Ignore_DB="a"), ("b.t",), ("a.t",)),
        (filters(Do_Table="a.t"), ("a.u", "b.t"), ("a.t",)),
        (filters(Ignore_Table="a.t"), ("a.t",), ("a.u", "b.t")),
        (filters(Do_Table="a.t", Ignore_Table="a.t"), ("a.u",), ("a.t",)),
        (filters(Wild_Do_Table="a%.t_"), ("a.t", "b.tt"), ("ab.tx", "a.t1")),
        (filters(Wild_Ignore_Table=r"a.x\_%"), ("a.x_1",), ("a.xy", "a.x")),
        (filters(Wild_Do_Table="a.%", Wild_Ignore_Table="a.t"), ("b.t",), ("a.t",)),
        (filters(Ignore_DB="a", Do_Table="a.t"), ("a.t", "b.t"), ()),
    ],
)
def test_what_is_left_out(
    found: ReplicationFilters, left_out: tuple[str, ...], applied: tuple[str, ...]
) -> None:
    def pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
        return [(schema, table) for schema, _, table in (name.partition(".") for name in names)]

    assert all(map(found.leave_out, pairs(left_out)))
    assert not any(map(found.leave_out, pairs(applied)))
    for server in (ServerFilters(found), ServerFilters(channels=((str(A), found),))):
        assert server.explain(pairs(left_out), A)
        assert not server.explain([], A)
        if applied:
            assert not server.explain(pairs((*left_out, *applied)), A)


def test_a_filter_of_another_channel_explains_nothing() -> None:
    """A channel from the source decides alone; without one, the work may have come by any."""
    ignoring, other = filters(Ignore_Table="a.t"), filters(Ignore_Table="a.u")
    table, both = [("a", "t")], [("a", "t"), ("a", "u")]
    from_both = ServerFilters(channels=((str(A), ignoring), (str(B), ReplicationFilters())))
    assert from_both.explain(table, A)
    assert not from_both.explain(table, B)
    assert not from_both.explain(table, None)
    relayed = ServerFilters(channels=((str(B), ignoring), ("", ignoring)))
    assert relayed.explain(table, A)
    assert not ServerFilters().explain(table, A)
    assert ServerFilters(other, ((str(A), ignoring),)).explain(both, A), "each leaves out one"


def test_filters_of_the_binary_log_count_and_other_columns_do_not() -> None:
    found = ReplicationFilters.of([("Binlog_Ignore_DB", "a"), ("Executed_Gtid_Set", "a")])
    assert found == ReplicationFilters(ignore_db=frozenset({"a"}))
    assert ReplicationFilters.of([("Replicate_Do_DB", "")]) == ReplicationFilters()


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("ALTER TABLE `u` ADD n INT", {("d", "u")}),
        ("DROP TABLE IF EXISTS e.t", {("e", "t")}),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", {("d", "t")}),
        ("CREATE VIEW v AS SELECT * FROM t JOIN e.u", {("d", "v"), ("d", "t"), ("e", "u")}),
        ("CREATE DATABASE d", {("d", "")}),
    ],
)
def test_the_tables_of_a_statement(sql: str, tables: set[tuple[str, str]]) -> None:
    assert tables_named_in(sql, "d") == tables


def test_a_statement_without_a_table_counts_by_its_schema() -> None:
    [schema] = tables_named_in("CREATE DATABASE d", "d")
    assert filters(Ignore_DB="d").leave_out(schema)
    assert not filters(Ignore_Table="d.t").leave_out(schema)
