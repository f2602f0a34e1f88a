"""What the servers' own messages are to `explain`, in both directions.

1. Each number that `explain` knows, and the text that the server has for it, are one row.
2. Each error of the written list (stopping_errors.py), as a thread reports it, has the cause that
   the list states. Each message of the server about replication is in the list or is of no thread.
"""

import mmap
import re
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from compose.native.installation import Installation
from tests.topology.stopping_errors import FRAMES, IN_PROGRAM, OF_NO_THREAD, STOPPING
from topology.catalogue.error_texts import NUMBERS
from topology.catalogue.explanations import explain

# What the server puts in the place of a format, where any text would not do.
FILLED = {
    1236: "1236",
    13114: "1236",
    1290: "--read-only",
    1304: "PROCEDURE",
    1305: "PROCEDURE",
    1347: "VIEW",
    1396: "CREATE USER",
    3910: "group_replication_set_as_primary",
}
# The text of these has the cause; the number alone has not.
WITHOUT_TEXT = {1593, 13117, 1756, 3002, 13113}
# A number alone is looked up on behalf of a receiver; the same text without its frame is a client's.
OF_RECEIVERS = {1040, 1045, 1129, 1130}
_FORMAT = re.compile(r"%(?:-?\.?\d*)*\.?\*?l*[dsu]|%0\d+d")
_OF_REPLICATION = re.compile(
    r"REPLICA|SLAVE|MTA|RPL|BINLOG|GTID|SOURCE|MASTER|RELAY|XA_|XAER|ANONYMOUS|APPLIER|CHANNEL|"
    r"PRIVILEGE_CHECKS|JSON_DIFF|ROW_FORMAT|INCIDENT"
)


def filled(number: int, text: str) -> str:
    def value(found: re.Match[str]) -> str:
        return FILLED.get(number, "7" if found[0][-1] in "du" else "x")

    return _FORMAT.sub(value, text)


def packaged(installation: Installation, numbers: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the symbols and messages that `perror` of the packages prints."""
    perror = [part.replace("sbin/mysqld", "bin/perror") for part in installation.mysqld]
    done = subprocess.run(
        [*perror, *map(str, numbers)], capture_output=True, text=True, check=False
    )
    found = re.findall(r"^MySQL error code MY-0*(\d+) \((\w+)\): (.*)$", done.stdout, re.MULTILINE)
    return {int(number): (symbol, text) for number, symbol, text in found}


def in_file(path: Path) -> dict[int, str]:
    """Read errmsg.sys of 5.6: a header of 32 bytes, an offset for each number, the texts."""
    data = path.read_bytes()
    (count,) = struct.unpack_from("<H", data, 10)
    offsets = struct.unpack_from(f"<{count}I", data, 32)
    texts = data[32 + 4 * count :]
    return {
        1000 + number: texts[offset : texts.index(b"\0", offset)].decode()
        for number, offset in enumerate(offsets)
    }


def assert_one_row(messages: dict[int, str]) -> None:
    for number, title in NUMBERS.items():
        if number not in messages or number in WITHOUT_TEXT | OF_RECEIVERS:
            continue
        text = filled(number, messages[number])
        assert (number, explain(text).title) == (number, title), text


def assert_causes(messages: dict[int, str]) -> int:
    """Explain each listed message as a thread reports it; return how many the server has."""
    count = 0
    for frame, numbers, title, code in STOPPING:
        for number in numbers:
            if number not in messages:
                continue
            count += 1
            message = filled(number, messages[number]).removesuffix(".")
            for shape in FRAMES[frame]:
                text = shape.format(text=message, number=number)
                found = explain(text)
                assert (number, found.title, found.code) == (number, title, code), text
                assert found.advice
            assert explain(str(number)).title == title
    return count


def test_the_messages_of_9_7(native97: Installation) -> None:
    found = packaged(native97, NUMBERS)
    messages = {number: text for number, (_, text) in found.items()}
    # Client errors and those of MariaDB (1927) are in no server's list.
    assert {each for each in NUMBERS if not 2000 <= each < 3000} - messages.keys() == {1927}
    assert_one_row(messages)


def test_the_messages_of_5_6(installation56: Installation) -> None:
    mysqld = Path(installation56.mysqld[-1])
    messages = in_file(mysqld.parent / "share/english/errmsg.sys")
    assert len(messages) > 800
    assert_one_row(messages)


@pytest.mark.parametrize("number", sorted(OF_RECEIVERS))
def test_a_number_of_a_connection_is_a_receivers(number: int) -> None:
    assert explain(str(number)).code == "A4"


# -- from the servers to `explain` ----------------------------------------------------------------


def test_every_error_that_stops_a_thread_of_9_7_has_its_cause(native97: Installation) -> None:
    listed = [number for _, numbers, _, _ in STOPPING for number in numbers]
    assert len(listed) == len({*listed})
    found = packaged(native97, listed)
    assert found.keys() == {*listed}
    assert assert_causes({number: text for number, (_, text) in found.items()}) == len(listed)


def test_every_error_that_stops_a_thread_of_5_6_has_its_cause(installation56: Installation) -> None:
    mysqld = Path(installation56.mysqld[-1])
    assert assert_causes(in_file(mysqld.parent / "share/english/errmsg.sys")) > 180


def test_every_message_about_replication_is_listed_or_of_no_thread(native97: Installation) -> None:
    listed = {number for _, numbers, _, _ in STOPPING for number in numbers}
    of_no_thread = re.compile("|".join(OF_NO_THREAD.values()))
    forgotten = [
        f"{number} {symbol}: {text}"
        for number, (symbol, text) in packaged(native97, range(1000, 7000)).items()
        if _OF_REPLICATION.search(symbol)
        and number not in listed
        and not of_no_thread.search(symbol.removeprefix("OBSOLETE_"))
    ]
    assert not forgotten


def test_every_text_that_is_only_in_the_program_has_its_cause(
    native97: Installation, installation56: Installation
) -> None:
    programs = [Path(each.mysqld[-1]) for each in (native97, installation56)]
    for part, title, code in IN_PROGRAM:
        assert any(contains(path, part) for path in programs), part
        text = filled(0, part)
        found = explain(text)
        assert (found.title, found.code) == (title, code), text


def contains(path: Path, text: str) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(text.encode()) >= 0
