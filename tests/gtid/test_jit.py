"""Compiled kernels are kept where only we can write, found again, and never mistaken for others."""

import errno
import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numba.core.caching import FunctionCache

from gtid import jit

ROOT = Path(jit.__file__).resolve().parents[1]
PROBE = """
from gtid.jit import kernel

@kernel
def twice(number):
    return number + number
"""
MAIN = """
import json
import probe
from gtid import jit

said = [probe.twice(3), probe.twice(1.5)]
stats = probe.twice.stats
print(json.dumps({
    "said": said,
    "hits": sum(stats.cache_hits.values()),
    "misses": sum(stats.cache_misses.values()),
    "folder": str(jit.cache_directory()),
    "jit": jit.__file__,
}))
"""


def probe_in(folder: Path, text: str = PROBE) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "probe.py").write_text(text)
    return folder


def in_a_process(
    *path: Path, variables: Mapping[str, str], main: str = MAIN, umask: int = 0o022
) -> Any:
    """Run `main` with nothing in its environment but these, and return what it says."""
    ran = subprocess.run(
        [sys.executable, "-P", "-B", "-W", "error", "-c", main],
        env={"PYTHONPATH": os.pathsep.join(map(str, path))} | dict(variables),
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


def files_below(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file()}


# -- processes that share a cache -----------------------------------------------------------------


@pytest.mark.long
def test_what_one_process_compiled_the_next_finds(tmp_path: Path) -> None:
    probe = probe_in(tmp_path / "probe")
    cache = {"GTID_AUDIT_CACHE": str(tmp_path / "cache")}
    # With this umask, usual where every user has a group, folders are made writable by the group.
    first = in_a_process(probe, ROOT, umask=0o002, variables=cache)
    assert (first["said"], first["hits"], first["misses"]) == ([6, 3.0], 0, 2)
    foreign = {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    second = in_a_process(probe, ROOT, variables=cache | foreign)
    assert (second["said"], second["hits"], second["misses"]) == ([6, 3.0], 2, 0)
    assert Path(second["folder"]).is_relative_to(tmp_path / "cache")
    probe_in(probe, PROBE.replace("number + number", "number * 20"))
    changed = in_a_process(probe, ROOT, variables=cache)
    assert (changed["said"], changed["hits"]) == ([60, 30.0], 0)


@pytest.mark.slow  # a constant that it imports, below, takes the same way
@pytest.mark.long
def test_a_kernel_is_compiled_anew_when_one_that_it_imports_changes(tmp_path: Path) -> None:
    variables = {"GTID_AUDIT_CACHE": str(tmp_path / "cache")}
    text = PROBE.replace("import kernel", "import kernel\nfrom other import plus")
    probe = probe_in(tmp_path / "probe", text.replace("number + number", "plus(number)"))
    other = PROBE.replace("twice", "plus")
    for added, said in (("number", [6, 3.0]), ("10", [13, 11.5])):
        (probe / "other.py").write_text(other.replace("+ number", f"+ {added}"))
        for hits in (0, 2):
            ran = in_a_process(probe, ROOT, variables=variables)
            assert (ran["said"], ran["hits"]) == (said, hits)


@pytest.mark.long
@pytest.mark.parametrize(
    ("imported", "added"),
    [
        ("NUMBER", "NUMBER"),
        pytest.param("Kind", "int(Kind.ONLY)", marks=pytest.mark.slow),
        pytest.param("within", "within.NUMBER", marks=pytest.mark.slow),
    ],
)
def test_a_kernel_is_compiled_anew_when_a_constant_that_it_imports_changes(
    tmp_path: Path, imported: str, added: str
) -> None:
    variables = {"GTID_AUDIT_CACHE": str(tmp_path / "cache")}
    text = PROBE.replace(
        "import kernel", f"import kernel\nfrom others import {imported}\nADDED = {added}"
    )
    probe = probe_in(tmp_path / "probe", text.replace("number + number", "number + ADDED"))
    others = probe_in(probe / "others")
    (others / "__init__.py").write_text(
        "from enum import IntEnum\nfrom others.within import NUMBER\n"
        "class Kind(IntEnum):\n    ONLY = NUMBER\n"
    )
    for number, said in ((1, [4, 2.5]), (2, [5, 3.5])):
        (others / "within.py").write_text(f"{PROBE}\nNUMBER = {number}\n")
        for hits in (0, 2):
            ran = in_a_process(probe, ROOT, variables=variables)
            assert (ran["said"], ran["hits"]) == (said, hits)


@pytest.mark.slow
@pytest.mark.long
def test_a_package_that_cannot_be_written_to_is_no_obstacle(tmp_path: Path) -> None:
    installed = probe_in(tmp_path / "installed")
    shutil.copytree(ROOT / "gtid", installed / "gtid", ignore=shutil.ignore_patterns("__pycache__"))
    folders = [installed, *(each for each in installed.rglob("*") if each.is_dir())]
    before = files_below(installed)
    try:
        for folder in folders:
            folder.chmod(0o555)
        for hits in (0, 2):
            said = in_a_process(installed, variables={"XDG_CACHE_HOME": str(tmp_path / "users")})
            assert Path(said["jit"]).is_relative_to(installed)
            assert (said["said"], said["hits"]) == ([6, 3.0], hits)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert files_below(installed) == before


@pytest.mark.slow
@pytest.mark.long
def test_kernels_of_an_archive_are_kept_wherever_it_lies(tmp_path: Path) -> None:
    names = {"probe.py": PROBE}
    for file in (*(ROOT / "gtid").glob("*.py"), *(ROOT / "gtid/kernels").glob("*.py")):
        names[str(file.relative_to(ROOT))] = file.read_text()
    for hits, place in enumerate(("one", "another")):  # as executors have it
        archive = tmp_path / place / "code.zip"
        archive.parent.mkdir()
        with zipfile.ZipFile(archive, "w") as packed:
            for name, text in names.items():
                packed.writestr(name, text)
        said = in_a_process(archive, variables={"HOME": str(tmp_path / "home")})
        assert said["jit"] == f"{archive}/gtid/jit.py"
        assert (said["said"], said["hits"]) == ([6, 3.0], 2 * hits)
        assert Path(said["folder"]).is_relative_to(tmp_path / "home/.cache/gtid-audit")


@pytest.mark.slow
@pytest.mark.long
def test_without_any_folder_every_process_compiles(tmp_path: Path) -> None:
    file = tmp_path / "a-file"
    file.touch()
    nowhere = f"import tempfile; tempfile.tempdir = {str(file)!r}\n"
    named = {name: str(file) for name in ("GTID_AUDIT_CACHE", "XDG_CACHE_HOME", "HOME")}
    probe = probe_in(tmp_path / "probe")
    said = in_a_process(probe, ROOT, main=nowhere + MAIN, variables=named)
    assert (said["said"], said["hits"], said["folder"]) == ([6, 3.0], 0, "None")


# -- folders that are trusted ---------------------------------------------------------------------


def a_cache(root: Path) -> Path:
    return root / "kernels" / "0123456789abcdef"


def test_a_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert jit._is_ours(a_cache(tmp_path / "deep" / "cache"))
    finally:
        os.umask(before)
    made = [each for each in (tmp_path / "deep").rglob("*") if each.is_dir()]
    assert len(made) == 3
    assert {each.stat().st_mode & 0o777 for each in made} == {0o700}
    assert jit._is_ours(a_cache(tmp_path / "deep" / "cache"))


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
@pytest.mark.parametrize("below", ["", "kernels", "kernels/0123456789abcdef"])
def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, mode: int, below: str
) -> None:
    a_cache(tmp_path / "cache").mkdir(parents=True)
    assert jit._is_ours(a_cache(tmp_path / "cache"))
    (tmp_path / "cache" / below).chmod(mode)
    assert not jit._is_ours(a_cache(tmp_path / "cache"))


def test_a_folder_that_others_can_put_another_in_place_of_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o777)
    assert not jit._is_ours(a_cache(above / "cache"))
    above.chmod(0o1777)
    assert jit._is_ours(a_cache(above / "cache"))


def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jit._is_ours(a_cache(tmp_path / "cache"))
    if os.geteuid() == 0:
        os.chown(tmp_path / "cache" / "kernels", 12_345, 12_345)
    else:
        somebody = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: somebody)
    assert not jit._is_ours(a_cache(tmp_path / "cache"))


def test_a_read_only_folder_serves_if_it_was_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = a_cache(tmp_path / "cache")
    assert jit._is_ours(cache)
    monkeypatch.setattr(jit, "_can_be_written", lambda _: False)  # for root, all can be
    assert not jit._is_ours(cache)
    (cache / "gtid.kernels.eight_bytes-0123456789abcdef").mkdir()
    assert jit._is_ours(cache)


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    assert jit._is_ours(a_cache(tmp_path / "cache"))
    (tmp_path / "link").symlink_to(tmp_path / "cache")
    assert not jit._is_ours(a_cache(tmp_path / "link"))


def test_the_folder_of_a_user_nobody_knows_is_under_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GTID_AUDIT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does in such a case
    (only,) = jit._roots()
    assert only.name == f"gtid-audit-{os.geteuid()}"


# -- entries --------------------------------------------------------------------------------------

Imported = Callable[[], ModuleType]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Imported:
    """Import the probe anew each time, as another process would, with a cache of its own."""
    cache = a_cache(tmp_path / "cache")
    assert jit._is_ours(cache)
    monkeypatch.setattr(jit, "cache_directory", lambda: cache)
    file = probe_in(tmp_path / "probe") / "probe.py"

    def import_it() -> ModuleType:
        spec = importlib.util.spec_from_file_location("probe", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return import_it


def hits(module: ModuleType) -> int:
    return sum(module.twice.stats.cache_hits.values())


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left_bytes", [0, 40])
def test_a_damaged_entry_is_made_anew(
    imported: Imported, tmp_path: Path, ending: str, left_bytes: int
) -> None:
    assert imported().twice(4) == 8
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(file.read_bytes()[:left_bytes])
    again = imported()
    assert (again.twice(4), hits(again)) == (8, 0)
    healed = imported()
    assert (healed.twice(4), hits(healed)) == (8, 1)


def test_a_cache_swept_away_while_we_run_is_made_again(imported: Imported, tmp_path: Path) -> None:
    module = imported()
    shutil.rmtree(tmp_path / "cache")
    assert module.twice(4) == 8
    again = imported()
    assert (again.twice(4), hits(again)) == (8, 1)


def test_a_full_disk_costs_the_entry_and_not_the_answer(
    imported: Imported, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(FunctionCache, "save_overload", full)
        assert imported().twice(4) == 8
    again = imported()
    assert (again.twice(4), hits(again)) == (8, 0)


def test_entries_are_written_one_process_at_a_time(
    imported: Imported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    save = FunctionCache.save_overload

    def watched(cache: FunctionCache, signature: Any, data: Any) -> None:
        (lock,) = tmp_path.rglob("lock")
        with lock.open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        save(cache, signature, data)  # type: ignore[no-untyped-call]
        written.append(signature)

    monkeypatch.setattr(FunctionCache, "save_overload", watched)
    module = imported()
    assert (module.twice(4), module.twice(1.5)) == (8, 3.0)
    assert len(written) == 2
    (lock,) = tmp_path.rglob("lock")
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # and let go afterwards


_AT_ONCE = """
import sys
import probe
ready = sys.stdout.write("ready\\n"), sys.stdout.flush()
sys.stdin.read()
kinds = {"int": int, "float": float, "complex": complex, "bool": bool}
value = kinds[sys.argv[1]](1)
assert probe.twice(value) == value + value
"""


@pytest.mark.slow
def test_processes_that_compile_at_once_do_not_take_each_others_code(tmp_path: Path) -> None:
    kinds = ("int", "float", "complex", "bool")
    probe = probe_in(tmp_path / "probe")
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (probe, ROOT))),
        "GTID_AUDIT_CACHE": str(tmp_path / "cache"),
    }
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-B", "-c", _AT_ONCE, kind],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for kind in kinds
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
    for process in running:
        with process:
            assert process.wait() == 0
    (index,) = tmp_path.rglob("*.nbi")
    assert len(list(index.parent.glob("*.nbc"))) == len(kinds)
