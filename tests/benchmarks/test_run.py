"""The page of results, and the instruments: nothing here looks at how long anything takes."""

import os
import subprocess
import sys
import time

import pytest

from benchmarks.measuring import Line, Section, duel, evaluated, table
from benchmarks.memory import look, watched_memory
from benchmarks.run import BENCHMARKS, RESULTS, benchmark, page, written

MEBIBYTE = 1024 * 1024
A_SECTION = Section("a title", (Line("work", "1 s", "2 s", "0.50", "≤ 1: reached"),), ("A note.",))


def test_every_benchmark_of_the_table_is_there() -> None:
    for name in BENCHMARKS:
        assert callable(benchmark(name)), name


def test_a_section_says_where_it_was_measured() -> None:
    text = written("B1", A_SECTION)
    assert text.startswith("## B1: a title\n")
    assert "Python 3." in text
    assert "| work | 1 s | 2 s | 0.50 | ≤ 1: reached |" in text
    assert text.endswith("A note.\n")


def test_a_section_replaces_the_one_of_its_benchmark_and_no_other() -> None:
    first = page("", written("B2", A_SECTION))
    both = page(first, written("B1", A_SECTION))
    assert both.index("## B1") < both.index("## B2")
    newer = Section("a newer title", A_SECTION.lines)
    again = page(both, written("B2", newer))
    assert "## B1: a title" in again
    assert "## B2: a newer title" in again
    assert "## B2: a title" not in again
    assert page(again, written("B2", newer)) == again


def test_the_page_in_the_repository_is_made_of_sections() -> None:
    text = RESULTS.read_text()
    name = next(name for name in BENCHMARKS if f"## {name}: " in text)
    section = text[text.index(f"## {name}: ") :].partition("\n## ")[0]
    assert page(text, section) == text


def test_runs_alternate_and_the_first_of_each_does_not_count() -> None:
    order: list[str] = []
    ours = iter((9.0, 1.0, 2.0, 6.0))
    theirs = iter((9.0, 2.0, 2.0, 2.0))

    def our_run() -> float:
        order.append("ours")
        return next(ours)

    def peer_run() -> float:
        order.append("peer")
        return next(theirs)

    result = duel(our_run, peer_run, runs=3)
    assert order == ["ours", "peer"] * 4
    assert (result.our_seconds, result.peer_seconds, result.ratio) == (2.0, 2.0, 1.0)


def test_a_missed_goal_is_called_missed() -> None:
    assert evaluated("≤ 1", reached=True) == "≤ 1: reached"
    assert evaluated("≤ 1", reached=False) == "≤ 1: missed"


def test_a_table_has_a_column_for_each_part_of_a_line() -> None:
    rows = table(A_SECTION.lines)
    assert {row.count("|") for row in rows} == {6}


@pytest.mark.long
def test_the_peak_of_a_child_stands_after_it_let_go_and_after_it_ended() -> None:
    """It takes 300 MiB, gives it back, ends, and lies there unasked for its status for a while."""
    script = "x = bytearray(300 << 20); del x; print('ready', flush=True); input()"
    with watched_memory({"bytearray": "greedy"}) as peaks:
        child = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child.stdin, child.stdout:
            assert child.stdout.readline() == b"ready\n"
            for _ in range(1_000):
                if peaks.of("greedy") and peaks.of("greedy")[0] > 300 * MEBIBYTE:
                    break
                time.sleep(0.02)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        look(peaks, {"bytearray": "greedy"})
        child.wait()
    (greedy,) = peaks.of("greedy")
    assert 300 * MEBIBYTE < greedy < 600 * MEBIBYTE
    (mine,) = peaks.of("driver")
    assert mine > 10 * MEBIBYTE
    assert peaks.of("nobody") == []
