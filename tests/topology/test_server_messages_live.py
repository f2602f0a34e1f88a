"""Each number that `explain` knows, and the text that the server itself has for it, are one row."""

import re
import struct
import subprocess
from pathlib import Path

import pytest

from compose.native.installation import Installation
from topology.catalogue.error_texts import NUMBERS
from topology.catalogue.explanations import explain

# What the server puts in the place of a format, where any text would not do.
FILLED = {
    1236: "1236",
    13114: "1236",
    1290: "--read-only",
    1304: "PROCEDURE",
    1305: "PROCEDURE",
    1396: "CREATE USER",
}
# The text of these has the cause; the number alone has not.
WITHOUT_TEXT = {1593, 13117, 1756, 3002, 13113}
# A number alone is looked up on behalf of a receiver; the same text without its frame is a client's.
OF_RECEIVERS = {1040, 1045, 1129, 1130}
_FORMAT = re.compile(r"%(?:-?\.?\d*)*\.?\*?l*[dsu]")


def filled(number: int, text: str) -> str:
    def value(found: re.Match[str]) -> str:
        return FILLED.get(number, "7" if found[0][-1] in "du" else "x")

    return _FORMAT.sub(value, text)


def packaged(installation: Installation) -> dict[int, str]:
    """Return the messages that `perror` of the packages prints."""
    perror = [part.replace("sbin/mysqld", "bin/perror") for part in installation.mysqld]
    done = subprocess.run(
        [*perror, *map(str, NUMBERS)], capture_output=True, text=True, check=False
    )
    found = re.findall(r"^MySQL error code MY-0*(\d+) \(\w+\): (.*)$", done.stdout, re.MULTILINE)
    return {int(number): text for number, text in found}


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


def test_the_messages_of_9_7(native97: Installation) -> None:
    messages = packaged(native97)
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
