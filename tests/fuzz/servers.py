"""Fuzzes commands with servers that answer as none does: `python -m tests.fuzz.servers SECONDS [SEED]`.

A fake server speaks MySQL's protocol and answers each question as a healthy server would, until,
at a moment that the seed chooses, it does something else: other columns, OK for rows, packets cut,
swelled, repeated or mixed up, random bytes, silence, an early end. Whatever it does, a command ends
with an exit status that is not a defect's, in time, and in bounded memory.
"""

from __future__ import annotations

import contextlib
import io
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gtid_audit.cli import run
from tests.binlog.builders import UUID_A
from tests.binlog.ledger_shapes import SHAPES
from tests.fake_server import CAPABILITIES, END, OK, SALT, Peer, column, fake_server, row

STATUSES: Final = frozenset({0, 1, 2, 3, 64})
SECONDS_MAX: Final = 60.0  # ten times what the slowest needs: reconnects wait, up to 26 s
MIB_MAX: Final = 900
SET: Final = f"{UUID_A}:1-9"
COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("pair", "{dsn}", "{other}"),
    ("pair", "{dsn}", "{other}", "--content"),
    ("binlog", "show", SET, "{dsn}"),
    ("binlog", "show", SET, "{dsn}", "--undo", "--schema-from", "{dsn}"),
    ("binlog", "scan", "{dsn}", "--details", "--digests"),
    ("binlog", "locate", SET, "{dsn}"),
    ("binlog", "compare", "{dsn}", "{other}"),
    ("binlog", "schema", "follow", "{dsn}", "--store", "{tmp}/store"),
    ("binlog", "schema", "compare", "d.t", "--source", "{dsn}", "--at", f"{UUID_A}:2"),
    ("repair", "plan", "--pair", "{dsn}", "{other}", "--out", "{tmp}/plan"),
)
_STATUS: Final = (
    "Source_Host", "Source_Port", "Source_UUID", "Auto_Position", "Retrieved_Gtid_Set",
    "Replica_IO_Running", "Replica_SQL_Running", "Last_IO_Errno", "Last_IO_Error", "Last_SQL_Errno",
    "Last_SQL_Error", "Source_Log_File", "Read_Source_Log_Pos", "Relay_Source_Log_File",
    "Exec_Source_Log_Pos", "Seconds_Behind_Source", "Channel_Name",
)  # fmt: skip
_CHANNEL: Final = (
    "127.0.0.1", "3306", str(UUID_A), "1", SET, "Yes", "Yes", "0", "", "0", "", "binlog.000001",
    "157", "binlog.000001", "157", "0", "",
)  # fmt: skip
# By words of the statement: columns, and rows.
_ANSWERS: Final[dict[bytes, tuple[Sequence[str], Sequence[Sequence[str | None]]]]] = {
    b"GLOBAL VARIABLES": (["Variable_name", "Value"], [["gtid_mode", "ON"]]),
    b"gtid_owned": (
        ["gtid_owned", "gtid_purged", "gtid_executed", "server_uuid", "server_id", "gtid_mode",
         "server_clock"],
        [["", "", SET, str(UUID_A), "7", "ON", "2026-01-02 12:00:00"]],
    ),
    b"version_comment": (["version", "version_comment"], [["9.7.4", ""]]),
    b"REPLICA STATUS": (_STATUS, [_CHANNEL]),
    b"LOG STATUS": (["File", "Position"], [["binlog.000001", "157"]]),
    b"Uptime": (["Variable_name", "Value"], [["Uptime", "90"]]),
    b"BINARY LOGS": (["Log_name", "File_size", "Encrypted"], [["binlog.000001", "900", "No"]]),
    b"BINLOG EVENTS": (
        ["Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"],
        [["binlog.000001", "126", "Previous_gtids", "7", "157", ""]],
    ),
    b"binlog_checksum, @@GLOBAL.gtid_executed": (["c", "e"], [["CRC32", SET]]),
    b"SHOW CREATE TABLE": (["Table", "Create Table"], [["t", "CREATE TABLE `t` (`a` int)"]]),
    b"folding": (["server_uuid", "folding", "explicit"], [[str(UUID_A), "0", "1"]]),
    b"@@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged": (["e", "p"], [[SET, ""]]),
    b"@@GLOBAL.gtid_purged": (["p"], [[""]]),
    b"executed": (["server_uuid", "executed", "purged"], [[str(UUID_A), SET, ""]]),
    b"checksum": (["c"], [["CRC32"]]),
    b"worker": (["channel", "worker_id", "errno", "error", "state", "applying"], []),
    b"version": (["version"], [["9.7.4"]]),
}  # fmt: skip
# The end of an answer, and the end of one that another follows: MORE_RESULTS_EXISTS.
_WITH_MORE: Final = {END: b"\xfe\0\0\x0a\0", OK: b"\0\0\0\x0a\0\0\0"}


@dataclass(slots=True)
class Odd:
    """A server whose answers go wrong from some packet on, as a seed has it."""

    seed: int
    chance: random.Random = field(init=False)
    healthy_packets: int = field(init=False)
    log: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.healthy_packets = int(self.chance.expovariate(1 / 60))
        self.log = SHAPES[self.chance.choice(sorted(SHAPES))]()

    def serve(self, peer: Peer) -> None:
        """Serve one client."""
        low, high = CAPABILITIES & 0xFFFF, CAPABILITIES >> 16
        plugin = self.chance.choice((b"mysql_native_password", b"caching_sha2_password", b"odd"))
        greeting = (
            b"\x0a9.7.4\0" + struct.pack("<I", 7) + SALT[:8] + b"\0"
            + struct.pack("<HBHHB", low, 255, 2, high, 21) + bytes(10) + SALT[8:] + b"\0"
            + plugin + b"\0"
        )  # fmt: skip
        peer.sequence = 0
        self.send(peer, [greeting])
        peer.receive()
        self.send(peer, [OK])
        while question := peer.receive():
            self.send(peer, list(self.answers(question)))

    def answers(self, question: bytes) -> Iterator[bytes]:
        """Yield the packets of the answer to each statement of a text."""
        statements = question.split(b";") if question[:1] == b"\x03" else [question]
        for number, statement in enumerate(statements, start=1):
            *packets, end = self.answer(statement)
            yield from packets
            follows = number < len(statements)
            yield _WITH_MORE[end] if follows != (self.chance.random() < 0.02) else end

    def answer(self, question: bytes) -> Iterator[bytes]:
        """Yield the packets of a healthy answer."""
        if question[:1] in (b"\x12", b"\x1e"):  # COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID
            yield from (b"\0" + event for event in events_in(self.log))
            yield END
            return
        found = next((known for words, known in _ANSWERS.items() if words in question), None)
        if found is None or question[1:4] == b"SET":
            yield OK
            return
        columns, rows = found
        if self.chance.random() < 0.03:
            columns = [f"c{number}" for number in range(self.chance.choice((1, 3, 40)))]
        if self.chance.random() < 0.03:
            rows = [
                [self.chance.choice((None, "", "x", "-1", "9" * 30, "ü")) for _ in columns]
                for _ in range(self.chance.choice((0, 1, 3)))
            ]
        yield bytes([len(columns)])
        yield from map(column, columns)
        yield END
        for each in rows:
            yield row(list(each))
        yield END

    def send(self, peer: Peer, packets: list[bytes]) -> None:
        """Send packets, the odd ones changed."""
        for packet in packets:
            self.healthy_packets -= 1
            if self.healthy_packets >= 0 or self.chance.random() < 0.7:
                peer.send(packet)
            else:
                self.chance.choice(_WAYS)(self, peer, packet)

    # -- ways to be odd ---------------------------------------------------------------------------

    def mutated(self, peer: Peer, packet: bytes) -> None:
        """Change some bytes."""
        changed = bytearray(packet)
        for _ in range(self.chance.choice((1, 1, 3, 20))):
            if changed:
                at = self.chance.randrange(len(changed))
                changed[at] = self.chance.choice((0, 1, 0x7F, 0xFB, 0xFE, 0xFF, changed[at] ^ 1))
        peer.send(bytes(changed))

    def cut(self, peer: Peer, packet: bytes) -> None:
        """Leave out the end, or send nothing."""
        peer.send(packet[: self.chance.randrange(len(packet) + 1)])

    def random(self, peer: Peer, _packet: bytes) -> None:
        """Send a packet of anything."""
        peer.send(self.chance.randbytes(self.chance.choice((0, 1, 5, 100, 70_000))))

    def raw(self, peer: Peer, _packet: bytes) -> None:
        """Send what is no packet."""
        peer.socket.sendall(self.chance.randbytes(self.chance.choice((1, 4, 50))))

    def other_kind(self, peer: Peer, _packet: bytes) -> None:
        """Send OK, the end, LOAD LOCAL, an error, a request to switch plugins, more data."""
        more = self.chance.choice((b"\0\0\0\x0a\0\0\0", OK, END, b"\xfe\0\0\x08\0", b"\xfb/etc/x",
                                   b"\xff\x15\x04#28000no", b"\xff", b"\xfemysql_clear_password\0",
                                   b"\xfecaching_sha2_password\0" + SALT, b"\x01\x04", b"\x01"))  # fmt: skip
        peer.send(more)

    def repeated(self, peer: Peer, packet: bytes) -> None:
        """Send it very often."""
        for _ in range(self.chance.choice((2, 300, 20_000))):
            peer.send(packet)

    def long(self, peer: Peer, _packet: bytes) -> None:
        """Send many bytes as one packet."""
        for _ in range(self.chance.choice((1, 3, 20))):
            peer.send(bytes(0xFFFFFF))

    def silent(self, _peer: Peer, _packet: bytes) -> None:
        """Leave it out: the client waits."""

    def gone(self, _peer: Peer, _packet: bytes) -> None:
        """Close the connection."""
        raise ConnectionResetError

    def misnumbered(self, peer: Peer, packet: bytes) -> None:
        """Send it under another number."""
        peer.sequence += self.chance.choice((1, 7, 255))
        peer.send(packet)


_WAYS: Final[tuple[Callable[[Odd, Peer, bytes], None], ...]] = (
    *(Odd.mutated, Odd.mutated, Odd.mutated, Odd.mutated, Odd.mutated, Odd.cut, Odd.random),
    *(Odd.other_kind, Odd.other_kind, Odd.other_kind, Odd.repeated, Odd.raw, Odd.long, Odd.silent),
    *(Odd.gone, Odd.misnumbered),
)


def events_in(log: bytes) -> Iterator[bytes]:
    """Cut a log into events, as a dump sends them."""
    at = 4
    while at + 19 <= len(log):
        length = int.from_bytes(log[at + 9 : at + 13], "little")
        if length < 19:
            yield log[at:]
            return
        yield log[at : at + length]
        at += length


def try_seed(seed: int) -> None:
    """Run one command against the servers of a seed. Raises AssertionError."""
    command = COMMANDS[seed % len(COMMANDS)]
    one, two = Odd(seed), Odd(seed + 1_000_003)
    begun = time.monotonic()
    said = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        fake_server(one.serve) as server,
        fake_server(two.serve) as other,
        contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")),
        contextlib.redirect_stderr(said),
    ):
        names = {
            "dsn": f"mysql://u@127.0.0.1:{server.port}/",
            "other": f"mysql://u@127.0.0.1:{other.port}/",
            "tmp": folder,
        }
        status = run(["--debug", *(word.format(**names) for word in command), "--timeout", "0.5"])
    seconds = time.monotonic() - begun
    case = f"seed {seed}: {' '.join(command)}"
    assert status in STATUSES, f"{case}: exit status {status}\n{said.getvalue()}"
    assert seconds < SECONDS_MAX, f"{case}: {seconds:.0f} s"


def peak_mib() -> int:
    """Return this process's largest memory so far."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024


def main(seconds: float, first: int) -> int:
    """Try seeds for a time; show what broke, and go on. Return how many broke."""
    broken = 0
    end = time.monotonic() + seconds
    seed = first
    while time.monotonic() < end:
        try:
            try_seed(seed)
            assert peak_mib() < MIB_MAX, f"seed {seed}: {peak_mib()} MiB"
        except AssertionError as error:
            broken += 1
            sys.stdout.write(f"{error}\n")
            sys.stdout.flush()
        seed += 1
    sys.stdout.write(f"seeds {first} to {seed - 1}: {broken} broken, {peak_mib()} MiB at most\n")
    return broken


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(
        min(
            1,
            main(
                float(arguments[0]),
                int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 10**9,
            ),
        )
    )
