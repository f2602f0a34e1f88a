"""Compares the newest transactions of two servers, where the packages for it are installed.

Without them an audit compares around restarts only, and reports that with the command that installs
them. This module imports the comparison only when it needs it: it needs NumPy, Numba and PyArrow.
"""

from importlib.util import find_spec

from binlog.adapters.compare_server import ServerCompared
from binlog.content.reuse import ContentSearch, Unread
from topology.adapters.install_command import install_command


def compare_newest_contents(
    left: ServerCompared, right: ServerCompared, counts: list[int], search: ContentSearch
) -> None:
    """Compare the newest transactions, and add their number to `counts`."""
    if any(find_spec(module) is None for module in ("numpy", "numba", "pyarrow")):
        more = install_command("columns")
        text = f"compared only around restarts; to compare more: {more}"
        search.note(Unread(f"{left.name}, {right.name}", text, is_lasting=True))
        return
    from binlog.adapters.compare_all import compare_newest

    counts.append(compare_newest(search, left, right))
