"""Reads .mylogin.cnf, the file of `mysql_config_editor`, in which accounts are obfuscated.

The format is that of client/mysql_config_editor.cc and mysys/my_default.cc (mysql_file_getline) of
9.7; the tests compare with files that mysql_config_editor writes:

    4 bytes, unused | 20 bytes, the key | lines: 4 bytes of length (little-endian), then that many
                                          bytes of AES-128 in ECB mode, with padding

The key of AES is the 20 bytes, folded into 16 by XOR (my_aes_create_key). It is in the file, so the
file hides nothing from a program that can read it. For the same reason the client ignores a file
that another user may read, and this module refuses it.
"""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from topology.adapters.inventory.option_file import OptionFile, OptionFileProblem, options_in

FILE_BYTES_MAX: Final = 1 << 20
VARIABLE: Final = "MYSQL_TEST_LOGIN_FILE"

_UNUSED_BYTES: Final = 4
_KEY_BYTES: Final = 20  # LOGIN_KEY_LEN
_LENGTH_BYTES: Final = 4  # MAX_CIPHER_STORE_LEN
_LINE_BYTES_MAX: Final = 4096  # the client's buffer
_BLOCK_BYTES: Final = 16
# Any right of group and others, and to execute for the owner: check_file_permissions there.
_FORBIDDEN: Final = stat.S_IRWXG | stat.S_IRWXO | stat.S_IXUSR


def login_file_path(environment: Mapping[str, str]) -> Path | None:
    """Return where the client looks for the file; None without a home directory."""
    if VARIABLE in environment:
        return Path(environment[VARIABLE])
    home = environment.get("HOME")
    return Path(home) / ".mylogin.cnf" if home else None


def read_login_file(path: Path) -> OptionFile:
    """Read the login paths.

    Raises:
        OptionFileProblem: the file is unreadable or damaged, or other users may read it.
    """
    try:
        mode = path.stat().st_mode
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise OptionFileProblem(f"{path}: {error.strerror or error}") from error
    if mode & _FORBIDDEN or not stat.S_ISREG(mode):
        raise OptionFileProblem(
            f"{path}: only its owner may read and write it; run `chmod 600` on it"
        )
    if len(content) > FILE_BYTES_MAX:
        raise OptionFileProblem(f"{path}: larger than {FILE_BYTES_MAX} bytes")
    lines = [line.decode(errors="surrogateescape") for line in _decrypted_lines(content, path)]
    return options_in(lines, places=lambda number: f"{path}, line {number}", has_comments=False)


def _decrypted_lines(content: bytes, path: Path) -> list[bytes]:
    """Return the lines in plain text. Raises OptionFileProblem."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    at = _UNUSED_BYTES + _KEY_BYTES
    if len(content) < at:
        raise OptionFileProblem(f"{path}: not a login file of mysql_config_editor")
    cipher = Cipher(algorithms.AES128(_folded(content[_UNUSED_BYTES:at])), modes.ECB())  # noqa: S305 - the format
    lines: list[bytes] = []
    while at < len(content):
        length = int.from_bytes(content[at : at + _LENGTH_BYTES], "little")
        at += _LENGTH_BYTES
        text = content[at : at + length]
        at += length
        damaged = f"{path}: damaged in line {len(lines) + 1}"
        if not 0 < length <= _LINE_BYTES_MAX or length % _BLOCK_BYTES or len(text) < length:
            raise OptionFileProblem(damaged)
        decryptor, unpadder = cipher.decryptor(), PKCS7(8 * _BLOCK_BYTES).unpadder()
        padded = decryptor.update(text) + decryptor.finalize()
        try:
            lines.append(unpadder.update(padded) + unpadder.finalize())
        except ValueError:
            raise OptionFileProblem(damaged) from None
    return lines


def _folded(key: bytes) -> bytes:
    folded = bytearray(_BLOCK_BYTES)
    for index, byte in enumerate(key):
        folded[index % _BLOCK_BYTES] ^= byte
    return bytes(folded)
