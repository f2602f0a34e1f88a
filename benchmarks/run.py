"""Measures, and writes benchmarks/results.md: `make bench`.

    python -m benchmarks.run [B1 B2 B3 …] [--runs 9] [--largest]

1. The benchmarks are a table; each gives a section of the page. One that is not run keeps the
   section it has.
2. Absolute times describe one machine on one day. No test looks at them.
"""

import argparse
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from benchmarks.measuring import Options, Section, machine, table

RESULTS = Path(__file__).with_name("results.md")

# (module, function): imported when it is run, because not everybody has what each needs.
BENCHMARKS: Mapping[str, tuple[str, str]] = {
    "B1": ("benchmarks.algebra", "two_large_sets"),
    "B2": ("benchmarks.many_pairs", "many_small_pairs"),
    "B3": ("benchmarks.fleet_audit", "fleet_audit"),
    "B4": ("benchmarks.ledger", "ledger"),
    "B5": ("benchmarks.stream", "ledger_of_a_stream"),
    "B6": ("benchmarks.pair", "audit_of_a_pair"),
    "B7": ("benchmarks.endpoints", "many_endpoints"),
    "B8": ("benchmarks.locate", "one_gtid"),
    "B9": ("benchmarks.rows_as_sql", "rows_as_sql"),
    "B10": ("benchmarks.planning", "planning_and_injecting"),
    "B11": ("benchmarks.fleet_text", "fleet_of_pairs"),
    "B12": ("benchmarks.scrapes", "scrapes_at_once"),
}

_HEAD = """\
# Measured

Written by `make bench`. Ours and the peer's runs alternate; times are medians, and the ratio is the
median of the ratios of neighbouring runs.

"""
_SECTION = re.compile(r"^## (?P<id>B\d+): .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Run the benchmarks asked for and write their sections."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help=", ".join(BENCHMARKS))
    parser.add_argument("--runs", type=int, default=Options().runs)
    parser.add_argument("--largest", action="store_true", help="10,000,000 pairs as well")
    given = parser.parse_args()
    unknown = sorted(set(given.ids) - BENCHMARKS.keys())
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    options = Options(runs=given.runs, largest=given.largest)
    for name in given.ids or BENCHMARKS:
        section = written(name, benchmark(name)(options))
        print(section)
        RESULTS.write_text(page(RESULTS.read_text() if RESULTS.exists() else "", section))


def benchmark(name: str) -> Callable[[Options], Section]:
    """Return a benchmark of the table."""
    module, function = BENCHMARKS[name]
    found: Callable[[Options], Section] = getattr(import_module(module), function)
    return found


def written(name: str, section: Section) -> str:
    """Write one section of the page."""
    lines = [f"## {name}: {section.title}", "", machine(), "", *table(section.lines), ""]
    for note in section.notes:
        lines += [note, ""]
    return "\n".join(lines)


def page(old: str, section: str) -> str:
    """Return the page with this section in the place of the one it had."""
    sections = {found["id"]: found[0] for found in _SECTION.finditer(old)}
    sections[section[3:].partition(":")[0]] = section
    kept = (sections[name].strip() for name in BENCHMARKS if name in sections)
    return _HEAD + "\n\n".join(kept) + "\n"


if __name__ == "__main__":
    main()
