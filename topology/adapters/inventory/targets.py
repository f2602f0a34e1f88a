"""Converts DSNs to servers to which gtid-audit can connect: addresses, accounts, TLS.

How it works
------------
Each value comes from the first place that has it:

1. for the password: the prompt (--ask-password);
2. the DSN, and the file that it names: option_file, login_path or password_file;
3. for the password: GTID_AUDIT_PASSWORD, then MYSQL_PWD;
4. the files of the user, as the mysql client reads them: ~/.mylogin.cnf, then ~/.my.cnf. Only
   commands that a user runs read them (`reads_defaults`), not the data sources of Spark.

The client ranks MYSQL_PWD below its files. Here it keeps the rank that it had before the files of
the user were read: a service whose unit sets it must not change its account because of a file in a
home directory.

accounts.py does the same for the servers of a fleet file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.dsn import SCHEME, Dsn, WrittenDsn, endpoint_of, read_dsn
from topology.adapters.inventory.option_meanings import NO_OPTIONS, ClientOptions
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import Warn, password_from_environment
from topology.adapters.inventory.tls_choice import TlsChoice
from topology.readings.target import NO_PASSWORD, Secret, ServerTarget, SslMode


@dataclass(frozen=True, slots=True)
class Accounts:
    """The sources of accounts in this run."""

    environment: Mapping[str, str]
    warn: Warn
    typed: Secret | None = None
    reads_defaults: bool = False
    files: AccountFiles = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", AccountFiles(self.environment, self.warn))

    def target(self, text: str) -> ServerTarget:
        """Return the server of a DSN, with its address as its name. Raises InventoryProblem."""
        return self.located(text).target()

    def located(self, text: str) -> "LocatedServer":
        """Return the address of a DSN, and what the files say about it. Raises InventoryProblem."""
        written = read_dsn(text)
        named = self._named(written)
        options = named.over(self._defaults())
        dsn = written.completed(
            host=options.host, port=options.port, unix_socket=options.unix_socket
        )
        _refuse_file_as_socket(dsn)
        return LocatedServer(self, dsn, named)

    def password_of(self, dsn: Dsn, named: ClientOptions) -> Secret:
        """Return the password of an address, the empty one if no source has one.

        Raises InventoryProblem.
        """
        if self.typed is not None:
            return self.typed
        if dsn.password_file is not None:
            return self.files.password(dsn.password_file)
        return (
            named.password_or_problem()
            or password_from_environment(self.environment)
            or self._defaults().password_or_problem()
            or NO_PASSWORD
        )

    def options_over(self, named: ClientOptions) -> ClientOptions:
        """Return the options of the file that a DSN names, completed by those of the user."""
        return named.over(self._defaults())

    def _named(self, written: WrittenDsn) -> ClientOptions:
        options = written.options
        if "option_file" in options:
            return self.files.option_file(options["option_file"], group=options.get("group"))
        if "login_path" in options:
            return self.files.login_path(options["login_path"])
        return NO_OPTIONS

    def _defaults(self) -> ClientOptions:
        return self.files.defaults() if self.reads_defaults else NO_OPTIONS


@dataclass(frozen=True, slots=True)
class LocatedServer:
    """The address of a DSN, before its account is looked up."""

    accounts: Accounts
    dsn: Dsn
    named: ClientOptions

    def target(self) -> ServerTarget:
        """Return the server with its account. Raises InventoryProblem."""
        endpoint = self.dsn.endpoint
        options = self.accounts.options_over(self.named)
        user = self.dsn.user or options.user
        if user is None:
            raise InventoryProblem(
                f"{endpoint}: no user: write user@host, or 'user' in an option file (~/.my.cnf)"
            )
        try:
            tls = self.dsn.tls.with_mode().over(options.tls).settled()
            self.accounts.files.check_tls(tls)
        except InventoryProblem as problem:
            raise InventoryProblem(f"{endpoint}: {problem}") from None
        password = self.accounts.password_of(self.dsn, self.named)
        return target_of(self.dsn, tls, name=endpoint, user=user, password=password)


def target_of(dsn: Dsn, tls: TlsChoice, *, name: str, user: str, password: Secret) -> ServerTarget:
    """Return the target of an address and an account; `tls` is settled."""
    assert tls.mode is not None, "it is settled"
    return ServerTarget(
        name=name,
        host=dsn.host,
        port=dsn.port,
        user=user,
        password=password,
        unix_socket=dsn.unix_socket,
        ssl_mode=tls.mode,
        ssl_ca=tls.ca,
        ssl_cert=tls.cert,
        ssl_key=tls.key,
        enable_cleartext_plugin=dsn.enable_cleartext_plugin,
        get_server_public_key=dsn.get_server_public_key,
    )


def dsn_of(target: ServerTarget) -> str:
    """Return the DSN that leads to a target, without its password."""
    is_default = target.ssl_mode is SslMode.PREFERRED and target.ssl_cert is None
    options = {
        "unix_socket": target.unix_socket,
        "ssl": None if is_default else target.ssl_mode.value,
        "ssl_ca": target.ssl_ca,
        "ssl_cert": target.ssl_cert,
        "ssl_key": target.ssl_key,
        "enable_cleartext_plugin": "1" if target.enable_cleartext_plugin else None,
        "get_server_public_key": "1" if target.get_server_public_key else None,
    }
    query = "&".join(f"{name}={quote(value)}" for name, value in options.items() if value)
    address = endpoint_of(host=target.host, port=target.port, unix_socket=None)
    return f"{SCHEME}{quote(target.user, safe='')}@{address}/{f'?{query}' if query else ''}"


def targets_of(dsns: Sequence[str], accounts: Accounts) -> tuple[ServerTarget, ...]:
    """Return servers with their addresses as names, in this order. Raises InventoryProblem."""
    located = [_located(str(number), text, accounts) for number, text in enumerate(dsns, start=1)]
    seen: set[object] = set()
    for each in located:
        if each.dsn.identity in seen:
            raise InventoryProblem(f"two DSNs refer to the same server: {each.dsn.endpoint}")
        seen.add(each.dsn.identity)
    return tuple(each.target() for each in located)


def pair_targets(dsn_a: str, dsn_b: str, accounts: Accounts) -> tuple[ServerTarget, ServerTarget]:
    """Return the two servers of a pair, with their addresses as names. Raises InventoryProblem."""
    first, second = _located("A", dsn_a, accounts), _located("B", dsn_b, accounts)
    if first.dsn.identity == second.dsn.identity:
        raise InventoryProblem("both DSNs refer to the same server")
    return first.target(), second.target()


def _located(which: str, text: str, accounts: Accounts) -> LocatedServer:
    try:
        return accounts.located(text)
    except InventoryProblem as problem:
        raise InventoryProblem(str(problem).replace("the DSN", f"DSN {which}", 1)) from None


def _refuse_file_as_socket(dsn: Dsn) -> None:
    """Refuse a path at which there is something else than a socket, such as a fleet file."""
    if dsn.unix_socket is None:
        return
    path = Path(dsn.unix_socket)
    try:
        is_other = path.exists() and not path.is_socket()
    except OSError:  # not accessible: connecting reports it
        return
    if is_other:
        raise InventoryProblem(f"{path}: not a unix socket; a fleet file is given with --fleet")
