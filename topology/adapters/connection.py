"""Opens connections to servers, and limits what a server may receive and how much it may send.

How it works
------------
PyMySQL accepts any server that answers. It sends the account's password to any server that requests
it and reads a packet of any size. It waits the full timeout for each piece of an answer. This
module keeps PyMySQL's protocol and adds three limits. Each limit is enforced in the one method
through which every byte passes, so it does not depend on a list of plugins or statements:

1. **The password itself** is sent only over TLS, over a Unix socket, or with an explicit option.
   Over plain TCP, three exchanges would disclose it to any process that listens on the port:

   * `mysql_clear_password` and `dialog` send it as plain text: `write_packet` detects that;
   * `caching_sha2_password` and `sha256_password` encrypt it with a public key that the same server
     has just sent: `server_public_key` detects that;
   * `mysql_old_password` sends a hash that can be reversed: `_process_auth` detects that.

   A scramble of a challenge (`mysql_native_password`, the fast path of `caching_sha2_password`)
   does not disclose the password. The options have the names of the mysql client's:
   `enable_cleartext_plugin` and `get_server_public_key`. A loopback address is no exception: any
   user of the machine can listen on a port, and a forwarded port may end on any host.

2. **Bytes.** An answer may have ANSWER_BYTES_MAX. All packets until the session is ready may have
   HANDSHAKE_BYTES_MAX together. A packet's length is known before its bytes, so nothing above the
   limit is allocated. Rows and values count as well: see counted_results.py.

3. **Time.** The time limit applies to a whole answer, not to each part of it, and to the whole
   handshake.

If an answer exceeds a limit, or is not MySQL's protocol, this module closes the connection. It
raises a `pymysql.MySQLError` with a client error number, like any other connection failure.
"""

import ssl
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import pymysql
from pymysql.constants import CLIENT, CR
from pymysql.cursors import DictCursor

from topology.adapters.connection_errors import (
    AnswerTooLong,
    MalformedAnswer,
    NotMysql,
    PasswordNotSent,
    TlsTooOld,
)
from topology.adapters.counted_results import CountedResult
from topology.adapters.received_packets import ReceivedPackets
from topology.adapters.tls_contexts import (
    is_too_old,
    optional_context,
    required_context,
    unverified_context,
)
from topology.adapters.tls_sessions import ResumedSessions
from topology.readings.target import ServerTarget, SslMode

Connection: TypeAlias = "pymysql.connections.Connection[DictCursor]"
if TYPE_CHECKING:  # generic in the stubs, not at run time
    _Base = pymysql.connections.Connection[DictCursor]
else:
    _Base = pymysql.connections.Connection

# A GTID set may have 64 MiB of text (gtid/gtid_text.py). All other answers are far smaller.
ANSWER_BYTES_MAX: Final = 64 * 1024**2
# A greeting has about 100 bytes, a public key 500, an error 600.
HANDSHAKE_BYTES_MAX: Final = 64 * 1024

PROGRAM_NAME: Final = "gtid-audit"  # a server shows it for each connection of ours

_PROTOCOL_VERSION: Final = 10  # Protocol::HandshakeV10, since MySQL 3.21
_X_PROTOCOL: Final = 11  # the first message of X Plugin: a notice
# One record of TLS has at most 16 KiB (RFC 8446, 5.1); so does the answer to most statements.
_PIECE_BYTES_MIN: Final = 16 * 1024
_PIECE_BYTES_MAX: Final = 1024**2
_SHOWN_BYTES_MAX: Final = 40
# A timeout is set on the socket again only if it is this much too long: it costs a system call.
_SLACK_SECONDS: Final = 0.1


# Sent first, in the place of PyMySQL's SET NAMES: a server may ignore the character set of the
# handshake. The others are variables that a server may set for all sessions, and that would change
# its answers:
# 1. sql_mode: PAD_CHAR_TO_FULL_LENGTH pads channel names; other modes change the meaning of a
#    quoted text.
# 2. sql_select_limit: a SELECT loses rows without an error, such as those of workers. DEFAULT would
#    be the server's value; this is MySQL's own (seen on 9.7.4 and 5.6.24).
# 3. sql_big_selects: max_join_size refuses even SHOW GLOBAL VARIABLES (1104) unless it is ON.
# 4. sql_quote_show_create: without it, SHOW CREATE TABLE does not quote names.
# 5. max_execution_time interrupts a SELECT (3024). gtid-audit has its own timeout. The variable
#    exists since 5.7.8; the version comment hides it from older servers and MariaDB.
SESSION: Final = (
    "SET NAMES utf8mb4, SESSION sql_mode = '', sql_select_limit = 18446744073709551615,"
    " sql_quote_show_create = 1, sql_big_selects = 1 /*!50708 , max_execution_time = 0 */"
)


# Opens a new connection to one server.
Way: TypeAlias = Callable[[], Connection]


def connect(
    target: ServerTarget,
    *,
    timeout_seconds_max: float,
    answer_seconds_max: float | None = None,
    sends_batches: bool = False,
) -> Connection:
    """Open a connection with a time limit for connecting, and for answers (`answer_seconds_max`).

    `sends_batches`: a text may have several statements, as those of the `mysql` client.

    Raises:
        pymysql.MySQLError: no MySQL server answers, it rejects the account, or it would have
            received the password unprotected.
        OSError: an address cannot be resolved, or a certificate cannot be read.
    """
    tls = required_context(target)
    connection = _Connection(
        host=target.host,
        port=target.port,
        unix_socket=target.unix_socket,
        user=target.user,
        password=target.password.reveal().encode(),  # PyMySQL encodes a str as Latin-1
        ssl=tls,
        ssl_disabled=target.ssl_mode is SslMode.DISABLED,
        connect_timeout=max(1, round(timeout_seconds_max)),
        read_timeout=timeout_seconds_max,
        write_timeout=timeout_seconds_max,
        charset="utf8mb4",
        autocommit=True,
        program_name=PROGRAM_NAME,
        client_flag=CLIENT.MULTI_STATEMENTS if sends_batches else 0,
        cursorclass=DictCursor,
        defer_connect=True,
    )
    if tls is None and target.ssl_mode is SslMode.PREFERRED:
        context = optional_context(target)
        if context is unverified_context():
            connection.sessions = ResumedSessions(context, (target.host, target.port))
        connection.ctx = connection.sessions or context
    connection.may_send_cleartext = target.enable_cleartext_plugin
    connection.may_trust_public_key = target.get_server_public_key
    connection.connect()
    if connection.sessions is not None:
        connection.sessions.keep(connection._sock)  # type: ignore[attr-defined]  # noqa: SLF001
    connection.allow_answers_of(answer_seconds_max or timeout_seconds_max)
    return connection


def way_to(target: ServerTarget, *, seconds_max: float) -> Way:
    """Return the function that opens a new connection to a server."""
    return lambda: connect(target, timeout_seconds_max=seconds_max)


class _Connection(ReceivedPackets, _Base):
    """PyMySQL's connection with the limits of this module.

    It uses PyMySQL's private names as of 1.1. If one is renamed, the tests fail.
    """

    _answer_deadline = 0.0  # of time.monotonic
    _bytes_left = 0
    _bytes_max = 0
    _is_ready = False  # the handshake has ended
    _is_greeted = False
    _public_key: bytes | None = None
    _stream: Any = None
    _current_timeout: float | None = None  # of the socket, as far as PyMySQL knows
    ctx: ssl.SSLContext | ResumedSessions
    sessions: ResumedSessions | None = None
    may_send_cleartext = False
    may_trust_public_key = False

    def connect(self, sock: Any = None) -> None:  # noqa: ANN401 - a socket, PyMySQL's
        """Connect and authenticate, within one time limit and HANDSHAKE_BYTES_MAX."""
        self._is_ready = self._is_greeted = False
        self._begin_answer(HANDSHAKE_BYTES_MAX)
        try:
            super().connect(sock)
        except (pymysql.MySQLError, OSError, MemoryError) as error:
            if is_too_old(error):
                raise TlsTooOld from error
            raise
        except Exception as error:
            raise MalformedAnswer(error) from error
        self._is_ready = True

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        """Set the session's variables with the character set: PyMySQL calls it when it connects."""
        assert (charset, collation) == (self.charset, None), "no caller changes it later"
        self.query(SESSION)

    # -- time and bytes ---------------------------------------------------------------------------

    def _begin_answer(self, bytes_max: int) -> None:
        self._answer_deadline = time.monotonic() + self._read_timeout
        self._bytes_left = self._bytes_max = bytes_max

    def allow_answers_of(self, seconds_max: float) -> None:
        """Set the time limit for the answers that follow."""
        self._read_timeout = self._write_timeout = seconds_max

    def spend(self, count: int) -> None:
        """Count bytes before they are received or allocated. Raises AnswerTooLong."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            self._force_close()  # type: ignore[attr-defined]
            what = (
                "the server's answer" if self._is_ready else "what the server sent while connecting"
            )
            raise AnswerTooLong(limit_bytes=self._bytes_max, what=what)

    def _write_bytes(self, data: bytes) -> None:
        if self._is_ready:  # a command: its answer begins
            self._begin_answer(ANSWER_BYTES_MAX)
        super()._write_bytes(data)  # type: ignore[misc]

    @property
    def _rfile(self) -> Any:  # noqa: ANN401 - a buffered reader, PyMySQL's
        return self._stream

    @_rfile.setter
    def _rfile(self, stream: object) -> None:
        # Bytes that were received before TLS began must not count as received through it.
        self._stream, self._received, self._taken = stream, b"", 0

    def _read_bytes(self, count: int) -> bytes:
        """Read exactly this many bytes, before the deadline of the answer."""
        self.spend(count)
        end = self._taken + count
        if end > len(self._received):
            self._receive(count)
            end = count
        data = self._received[self._taken : end]
        self._taken = end
        if not self._is_greeted:
            self._is_greeted = True
            self._look_at_greeting(data)
        return data

    def _receive(self, count: int) -> None:
        """Receive until this many bytes are there that were not taken, or more.

        An answer consists of many small packets. Receiving for each of them would cost more than
        all the rest: a timeout to set, and two calls into the socket.
        """
        pieces = [self._received[self._taken :]]
        left = count - len(pieces[0])
        while left > 0:
            piece = self._receive_piece(min(max(left, _PIECE_BYTES_MIN), _PIECE_BYTES_MAX))
            pieces.append(piece)
            left -= len(piece)
        self._received, self._taken = b"".join(pieces), 0

    def _receive_piece(self, count: int) -> bytes:
        seconds_left = self._answer_deadline - time.monotonic()
        if seconds_left <= 0:
            self._lost("(timed out)")
        timeout = self._current_timeout
        if timeout is None or timeout > seconds_left + _SLACK_SECONDS:
            self._sock.settimeout(seconds_left)  # type: ignore[attr-defined]
            self._current_timeout = None  # so PyMySQL sets its own before it reads a packet
        try:
            piece: bytes = self._stream.read1(count)  # its buffer is smaller, and stays empty
        except OSError as error:  # includes TimeoutError
            self._lost(f"({error})", error)
        if not piece:
            self._lost("(the server closed it)")
        return piece

    def _lost(self, why: str, error: Exception | None = None) -> NoReturn:
        self._force_close()  # type: ignore[attr-defined]
        text = f"Lost connection to MySQL server during query {why}"
        if not self._is_greeted:
            text = (
                f"no greeting of a MySQL server {why}: the server hangs, or another service uses"
                " the port"
            )
        raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, text) from error

    # -- what is not MySQL ------------------------------------------------------------------------

    def _look_at_greeting(self, header: bytes) -> None:
        """Reject a service whose first bytes are no packet: 3 bytes of length, then number 0."""
        length = int.from_bytes(header[:3], "little")
        if header[3] == 0 and length <= HANDSHAKE_BYTES_MAX:
            return
        rest = self._received[self._taken :][:_SHOWN_BYTES_MAX]
        self._force_close()  # type: ignore[attr-defined]
        first_line = (header + rest).splitlines()[0]
        shown = first_line[:_SHOWN_BYTES_MAX].decode("ascii", errors="backslashreplace")
        raise NotMysql(f"it sent {shown!r}")

    def _get_server_information(self) -> None:
        try:
            super()._get_server_information()  # type: ignore[misc]
        except (LookupError, ValueError, struct.error) as error:
            self._refuse_protocol()
            raise NotMysql("its greeting is malformed") from error
        self._refuse_protocol()

    def _refuse_protocol(self) -> None:
        version = getattr(self, "protocol_version", None)
        if version == _X_PROTOCOL:
            raise NotMysql("the port uses X Protocol; use the port of the classic protocol")
        if version != _PROTOCOL_VERSION:
            raise NotMysql(f"its greeting has protocol version {version}, not 10")

    # -- the password -----------------------------------------------------------------------------

    def write_packet(self, payload: bytes) -> None:
        """Send a packet, unless it contains the password and the connection is not protected."""
        is_password = not self._is_ready and payload == self.password + b"\0"
        if is_password and self._exposes_password and not self.may_send_cleartext:
            raise PasswordNotSent("as clear text", option="enable_cleartext_plugin")
        super().write_packet(payload)

    @property
    def server_public_key(self) -> bytes | None:
        """Return the key that the server sent, with which PyMySQL encrypts the password."""
        return self._public_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        if key is not None and self._exposes_password and not self.may_trust_public_key:
            raise PasswordNotSent("encrypted with a key of its own", option="get_server_public_key")
        self._public_key = key

    def _process_auth(self, plugin_name: bytes, *others: Any) -> Any:  # noqa: ANN401 - packets
        is_reversible = plugin_name == b"mysql_old_password"
        if is_reversible and self._exposes_password and not self.may_send_cleartext:
            raise PasswordNotSent("as a hash of MySQL 4.0", option="enable_cleartext_plugin")
        return super()._process_auth(plugin_name, *others)  # type: ignore[misc]

    @property
    def _exposes_password(self) -> bool:
        return bool(self.password) and not self._secure  # type: ignore[attr-defined]

    # -- results ----------------------------------------------------------------------------------

    @property
    def takes_batches(self) -> bool:
        """Return whether a text may have several statements, by what both sides said."""
        both = self.client_flag & self.server_capabilities  # type: ignore[attr-defined]
        return bool(both & CLIENT.MULTI_STATEMENTS)

    @property
    def has_more_results(self) -> bool:
        """Return whether the server said that the result of another statement follows."""
        return bool(self._result is not None and self._result.has_next)

    def next_result(self, unbuffered: bool = False) -> int:
        """Receive the result of the next statement of a text, as an answer of its own."""
        self._begin_answer(ANSWER_BYTES_MAX)
        count: int = super().next_result(unbuffered)
        return count

    def _read_query_result(self, unbuffered: bool = False) -> Any:  # noqa: ANN401 - PyMySQL's
        assert not unbuffered, "rows are counted as they are kept"
        self._result = None
        result = CountedResult(self)
        try:
            result.read()
        except (pymysql.MySQLError, OSError, MemoryError):
            raise
        except Exception as error:
            self._force_close()  # type: ignore[attr-defined]
            raise MalformedAnswer(error) from error
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows

    def _create_ssl_ctx(self, options: object) -> ssl.SSLContext:
        """Return the context that was given, or one that verifies nothing.

        If TLS is used only where the server offers it, PyMySQL builds a context with every CA of
        the system and then verifies nothing. That takes 24 ms per connection. If PyMySQL renames
        the method, connecting only becomes slower.
        """
        if isinstance(options, ssl.SSLContext):
            return options
        assert options == {}, "only contexts are given, or nothing"
        return unverified_context()
