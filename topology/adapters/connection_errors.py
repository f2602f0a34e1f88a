"""What connection.py raises by itself: client errors, with numbers of the client library."""

import pymysql
from pymysql.constants import CR


class AnswerTooLong(pymysql.err.OperationalError):
    """The server sent more than the limit for one answer."""

    def __init__(self, *, limit_bytes: int, what: str) -> None:
        super().__init__(
            CR.CR_NET_PACKET_TOO_LARGE, f"{what} exceeds the limit of {limit_bytes:,} bytes"
        )


class NotMysql(pymysql.err.OperationalError):
    """The service on the port does not use the classic MySQL protocol."""

    def __init__(self, what: str) -> None:
        super().__init__(CR.CR_SERVER_HANDSHAKE_ERR, f"not a MySQL server: {what}")


class MalformedAnswer(pymysql.err.OperationalError):
    """A packet contradicts the protocol."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            CR.CR_MALFORMED_PACKET,
            f"the server's answer is not MySQL's protocol ({type(error).__name__}: {error})",
        )


class TlsTooOld(pymysql.err.OperationalError):
    """The server offers TLS, but no version of it that this machine accepts."""

    def __init__(self) -> None:
        super().__init__(
            CR.CR_SSL_CONNECTION_ERROR,
            "the server offers only old versions of TLS (1.0 or 1.1), which OpenSSL on this machine"
            " refuses; ssl=disabled connects without TLS",
        )


class PasswordNotSent(pymysql.err.OperationalError):
    """The server requested the password itself, and the connection is not protected."""

    def __init__(self, how: str, *, option: str) -> None:
        super().__init__(
            CR.CR_AUTH_PLUGIN_ERR,
            f"the password was not sent: the server requests it {how}, over TCP without TLS, so"
            " that any server that answers would learn it. Use ssl_ca=FILE or ssl=required, or a"
            f" unix socket; {option}=1 sends it nevertheless",
        )
