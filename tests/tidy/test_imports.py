"""How our modules import one another."""

from collections.abc import Iterator

import grimp

IMPORTED_MAX = 15  # of ours by one module: above that it has more than one job
# Whose one job is to list others.
REGISTRIES = {"topology.rules", "gtid_audit.cli", "repair.strategies.strategy_registry"}
OURS = ("gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit", "compose")


def _circles(imports: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yield each group of modules that reach one another, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        number[module] = lowest[module] = len(number)
        path.append(module)
        for other in imports[module]:
            if other not in number:
                yield from visit(other)
            if other in path:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            group = path[path.index(module) :]
            del path[-len(group) :]
            if len(group) > 1:
                yield sorted(group)

    for module in sorted(imports):
        if module not in number:
            yield from visit(module)


def test_circles_are_found() -> None:
    graph = {"a": {"b", "d"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": set[str](), "f": {"a"}}
    assert list(_circles(graph)) == [["a", "b", "c"]]
    assert list(_circles({**graph, "c": set()})) == []


def test_no_module_imports_itself_through_others() -> None:
    """Imports within functions count, too: they show the same knot, only later."""
    graph = grimp.build_graph(*OURS, cache_dir=None)
    imports = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    assert len(imports) > 400
    assert list(_circles(imports)) == []


def test_no_module_imports_many_others() -> None:
    graph = grimp.build_graph(*OURS, cache_dir=None)
    counts = {each: len(graph.find_modules_directly_imported_by(each)) for each in graph.modules}
    product = {each: count for each, count in counts.items() if not each.startswith("compose")}
    assert {each for each in REGISTRIES if counts[each] > IMPORTED_MAX} == REGISTRIES
    product = {each: count for each, count in product.items() if each not in REGISTRIES}
    assert {each: count for each, count in product.items() if count > IMPORTED_MAX} == {}
    assert max(product.values()) > IMPORTED_MAX // 2, "nothing was counted"
