"""Replays what fuzzing found worth keeping; `make fuzz` looks for more."""

import tracemalloc
from collections.abc import Iterator

import pytest

from tests.fuzz.properties import TARGETS
from tests.fuzz.run import CORPUS, INPUT_BYTES_MAX, TRACE_THEMSELVES, name_of
from tests.fuzz.servers import try_seed

LONG_LOG_BYTES = 10_000
CORPUS_BYTES_MAX = 400_000


@pytest.fixture
def _traced_memory(target: str) -> Iterator[None]:
    if target in TRACE_THEMSELVES:
        yield
        return
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.long
@pytest.mark.usefixtures("_traced_memory")
@pytest.mark.parametrize("target", TARGETS)
def test_every_kept_input_keeps_the_properties(target: str) -> None:
    inputs = [file.read_bytes() for file in sorted((CORPUS / target).iterdir())]
    assert len(inputs) > 20, "an empty corpus proves nothing"
    for data in inputs:
        try:
            TARGETS[target](data)
        except Exception as broken:
            broken.add_note(f"input {name_of(data)}: {data!r}")
            raise


@pytest.mark.long
@pytest.mark.usefixtures("_traced_memory")
@pytest.mark.parametrize(
    "target",
    # The two that take long are tried every night.
    [
        pytest.param(target, marks=pytest.mark.slow) if target in ("binlog", "text") else target
        for target in TARGETS
    ],
)
def test_what_is_long_is_read_in_bounded_memory(target: str) -> None:
    """Every kept input many times over: what fuzzing with short inputs would not see."""
    for file in sorted((CORPUS / target).iterdir()):
        data = file.read_bytes()
        TARGETS[target](_long(target, data))


def _long(target: str, data: bytes) -> bytes:
    if target == "binlog":  # the first byte says how the others are read
        return data[:1] + data[1:] * (LONG_LOG_BYTES // max(len(data), 1))
    return b",".join([data] * 50) if target == "text" else data * 50


def test_the_corpus_is_small_and_named_by_content() -> None:
    files = sorted(file for target in TARGETS for file in (CORPUS / target).iterdir())
    contents = [file.read_bytes() for file in files]
    assert [file.name for file in files] == [name_of(content) for content in contents]
    assert sum(map(len, contents)) < CORPUS_BYTES_MAX
    for file, content in zip(files, contents, strict=True):
        assert len(content) <= INPUT_BYTES_MAX[file.parent.name]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 7, 13, 26, 44, 54, 86, 94, 102, 104])
def test_a_server_that_answers_as_none_does_ends_no_command_in_a_defect(seed: int) -> None:
    """Seeds that once ended in exit status 70, or that run each command once."""
    try_seed(seed)
