"""When kernels are used, and that nobody pays for them otherwise. What they compute is held to the
definition by the other files of this folder, in the form "kernels"."""

import subprocess
import sys
from textwrap import dedent

import pytest

from gtid import GtidSet, MalformedGtidSet, accelerated, flat

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
HEAVY = ("numpy", "numba", "llvmlite", "pyarrow", "ctypes")


def run_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_gtid_imports_nothing_heavy() -> None:
    program = f"""
        import sys
        import gtid, gtid.binary
        from gtid import GtidSet
        executed = GtidSet.parse("{U}:" + ":".join(f"{{n}}" for n in range(1, 20_000, 2)))
        assert str(executed - GtidSet.parse("{U}:1-100"))
        print([name for name in {HEAVY} if name in sys.modules])
    """
    assert run_python(program) == "[]"


@pytest.mark.long
def test_long_sequences_of_a_process_that_has_paid_go_to_the_kernels() -> None:
    program = f"""
        import sys
        from gtid import GtidSet, accelerated
        accelerated._account.price = 100_000
        text = "{U}:" + ":".join(f"{{n}}" for n in range(1, 120_000, 2))
        executed = GtidSet.parse(text)
        before = "numba" in sys.modules
        for _ in range(3):
            again = GtidSet.parse(text)
        print(before, "numba" in sys.modules, again == executed, str(again) == text)
    """
    assert run_python(program) == "False True True True"


@pytest.mark.parametrize("lacking", ["numpy", "numba"])
def test_without_the_extra_everything_is_done_in_python(lacking: str) -> None:
    program = f"""
        import sys
        sys.modules["{lacking}"] = None
        from gtid import GtidSet, accelerated
        accelerated._account.price = 0
        text = "{U}:" + ":".join(f"{{n}}" for n in range(1, 20_000, 2))
        print(str(GtidSet.parse(text)) == text, accelerated.kernels_for(10**9))
    """
    assert run_python(program) == "True None"


def test_what_is_not_installed_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    account = accelerated._Account()
    monkeypatch.setattr(accelerated, "_account", account)
    monkeypatch.setitem(sys.modules, "numba", None)
    for _ in range(3):
        assert accelerated.kernels_for(accelerated.PRICE) is None
    assert account.spent == accelerated.PRICE
    assert not account.is_open


def test_a_broken_installation_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerated, "_account", accelerated._Account())
    monkeypatch.setitem(sys.modules, "gtid.flat", None)
    monkeypatch.delattr("gtid.flat", raising=False)
    with pytest.raises(ImportError):
        accelerated.kernels_for(accelerated.PRICE)


def test_python_works_until_it_has_cost_as_much_as_the_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accelerated, "_account", accelerated._Account())
    half = accelerated.PRICE // 2
    assert accelerated.kernels_for(half) is None
    assert accelerated.kernels_if_there() is None
    for _ in range(10_000):  # what is too short counts for nothing
        assert accelerated.kernels_for(accelerated.CALL_MIN - 1) is None
    bought = accelerated.kernels_for(half)
    assert bought is not None
    assert accelerated.kernels_if_there() is bought
    assert accelerated.kernels_for(accelerated.CALL_MIN) is bought
    assert accelerated.kernels_for(accelerated.CALL_MIN - 1) is None


@pytest.mark.parametrize("is_kept", [True, False])
def test_where_nothing_is_kept_the_price_is_that_of_compiling(
    monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    monkeypatch.setattr(accelerated, "_account", accelerated._Account())
    monkeypatch.setattr(flat, "is_kept", lambda: is_kept)
    assert (accelerated.kernels_for(accelerated.PRICE) is not None) is is_kept
    assert accelerated.kernels_for(accelerated.PRICE_OF_COMPILING) is flat


@pytest.mark.long
def test_a_fault_far_into_a_long_text_has_its_place_and_words() -> None:
    good = f"{U}:" + ":".join(f"{n}-{n + 1}" for n in range(1, 3_000_000, 6))
    found = []
    for kernels in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            account = accelerated._Account()
            account.is_open = kernels
            account.price = 0
            patch.setattr(accelerated, "_account", account)
            with pytest.raises(MalformedGtidSet) as caught:
                GtidSet.parse(good + "::1")
            found.append(str(caught.value))
    assert found[0] == found[1]
    assert f"a tag or an interval at character {len(good) + 1}:" in found[0]
