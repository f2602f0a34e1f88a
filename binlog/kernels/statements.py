"""Classifies a statement by its first words, with the rules of binlog.transactions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binlog.kernels.addresses import byte_at
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import load_byte, load_four

WORD_BEGIN, WORD_END, WORD_XA_BEGIN, WORD_XA_INNER, WORD_XA_END, WORD_PLAIN = range(6)

_BEGI, _N = np.uint64(0x49474542), np.uint64(ord("N"))
_BEGIN = np.frombuffer(b"begin", np.uint8)
_COMMIT = np.frombuffer(b"commit", np.uint8)
_ROLLBACK = np.frombuffer(b"rollback", np.uint8)
_XA = np.frombuffer(b"xa", np.uint8)
_XA_START = np.frombuffer(b"start", np.uint8)
_XA_END = np.frombuffer(b"end", np.uint8)


@kernel
def text_of_statement(at: int, end: int, post: int) -> int:
    """Return where the statement begins in a QUERY's body; 0 if the body is malformed.

    `post` is the length of the body's fixed part, from the file's format description.
    """
    if end - at < post or post < 13:
        return 0
    sql = at + post + byte_at(at + 8) + (byte_at(at + 11) | byte_at(at + 12) << 8) + 1
    return sql if sql <= end and load_byte(sql - 1) == 0 else 0


@kernel
def word_of_statement(at: int, end: int, post: int) -> int:
    """Return the class of a QUERY's statement (WORD_…); -1 if its body is malformed."""
    sql = text_of_statement(at, end, post)
    return _word(sql, end) if sql else -1


@kernel
def _word(at: int, end: int) -> int:
    if end - at == 5 and load_four(at) == _BEGI and load_byte(at + 4) == _N:
        return WORD_BEGIN  # as servers write it
    if _alone(at, end, _BEGIN):
        return WORD_BEGIN
    if _alone(at, end, _COMMIT) or _alone(at, end, _ROLLBACK):
        return WORD_END
    at = behind_word(at, end, _XA)
    if at in (0, end) or not _is_space(at):
        return WORD_PLAIN
    while at < end and _is_space(at):
        at += 1
    if _bounded(at, end, _XA_START) or _bounded(at, end, _BEGIN):
        return WORD_XA_BEGIN
    if _bounded(at, end, _XA_END):
        return WORD_XA_INNER
    if _bounded(at, end, _COMMIT) or _bounded(at, end, _ROLLBACK):
        return WORD_XA_END
    return WORD_PLAIN


@kernel
def behind_word(at: int, end: int, word: NDArray[np.uint8]) -> int:
    """Return the address after a word if the bytes begin with it, in any case; else 0."""
    if end - at < len(word):
        return 0
    for index in range(len(word)):
        if load_byte(at + index) | np.uint64(0x20) != word[index]:
            return 0
    return at + len(word)


@kernel
def _alone(at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Return whether the bytes are only this word and trailing white space."""
    at = behind_word(at, end, word)
    while 0 < at < end and _is_space(at):
        at += 1
    return at == end


@kernel
def _bounded(at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Return whether the bytes begin with this whole word."""
    at = behind_word(at, end, word)
    if at in (0, end):
        return at == end
    byte = byte_at(at)
    return not (48 <= byte <= 57 or byte == 95 or 65 <= byte <= 90 or 97 <= byte <= 122)


@inlined
def _is_space(at: int) -> bool:
    return load_byte(at) == 32 or 9 <= load_byte(at) <= 13
