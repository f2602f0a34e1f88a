"""Which rows a refusal names."""

from repair.adapters.rows_in_place import not_as_expected


def test_rows_that_are_as_after_the_transactions_are_not_named_beside_others() -> None:
    rows = [("t 1", True), ("t 2", False), ("t 3", True)]
    assert not_as_expected(rows) == "row t 2 is not as expected"
    after = [(f"t {number}", True) for number in range(5)]
    assert not_as_expected(after) == "row t 0, t 1, t 2 and 2 more is not as expected"
    neither = [(f"t {number}", False) for number in range(3)]
    assert not_as_expected(neither) == "row t 0, t 1, t 2 is not as expected"
