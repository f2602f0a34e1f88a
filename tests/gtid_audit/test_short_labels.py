"""Labels tell things apart, at 2 and at 200."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from gtid_audit.views.short_labels import fitted_names, labels_of
from tests.snapshots import A, B

WIDE = 16


def test_random_uuids_have_eight_characters() -> None:
    assert labels_of([A, B]) == {A: "aaaaaaaa", B: "bbbbbbbb"}


def test_200_uuids_with_the_same_first_characters_are_told_apart() -> None:
    uuids = [UUID(int=number) for number in range(1, 201)]
    labels = labels_of([*uuids, A])
    assert len(set(labels.values())) == 201
    assert max(map(len, labels.values())) <= 9
    assert labels[A] == "aaaaaaaa", "the others cost it nothing"


@given(st.sets(st.uuids(), max_size=40))
def test_every_uuid_has_a_label_of_its_own(uuids: set[UUID]) -> None:
    alike = {UUID(int=each.int >> shift) for each in uuids for shift in (0, 64, 100)}
    labels = labels_of(alike)
    assert labels.keys() == alike
    assert len(set(labels.values())) == len(alike)


def test_long_names_are_shortened_where_they_do_not_differ() -> None:
    sites = [f"orders-mysql-{number}.prod.example.com" for number in (1, 2)]
    assert [*fitted_names(sites, characters_max=WIDE).values()] == [
        "orders-mysql-1…",
        "orders-mysql-2…",
    ]
    nodes = ["db1.eu-west-1.example.com", "db2.eu-west-1.example.com", "db3"]
    assert [*fitted_names(nodes, characters_max=WIDE).values()] == [
        *("db3", "db1.eu-…mple.com", "db2.eu-…mple.com"),
    ]
    one = fitted_names(["a" * 40], characters_max=WIDE)
    assert [*one.values()] == ["aaaaaaa…aaaaaaaa"]


@given(st.lists(st.text("ab.-", min_size=1, max_size=40), unique=True, max_size=30))
def test_names_fit_and_are_told_apart(names: list[str]) -> None:
    fitted = fitted_names(names, characters_max=WIDE)
    assert fitted.keys() == set(names)
    assert len(set(fitted.values())) == len(names)
    assert all(len(each) <= WIDE for each in fitted.values())
