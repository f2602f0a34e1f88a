"""How a connection is encrypted, from what a DSN, a fleet file and option files say."""

from pathlib import Path

import pytest

from tests.certificates import Authority
from topology.adapters.inventory.fleet_file import parse_fleet
from topology.adapters.inventory.option_file import OptionFileProblem, read_option_file
from topology.adapters.inventory.option_meanings import ClientOptions, options_of
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.tls_choice import NO_CHOICE, TlsChoice
from topology.readings.target import Secret, ServerTarget, SslMode

DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY = SslMode


def meaning(tmp_path: Path, *lines: str, said: list[str] | None = None) -> ClientOptions:
    path = tmp_path / "my.cnf"
    path.write_text("\n".join(["[client]", *lines]))
    found = read_option_file(path, check=lambda _path: None)
    return options_of(found.lines, warn=pytest.fail if said is None else said.append)


MODES: list[tuple[str, SslMode | None]] = [
    # ssl-mode and ssl-ca: sslopt-case.h of 9.7
    ("", None),
    ("ssl-mode=disabled", DISABLED),
    ("ssl_mode=PREFERRED", PREFERRED),
    ("ssl-mode=Verify_Identity", VERIFY_IDENTITY),
    ("ssl-ca=/ca", VERIFY_CA),
    ("ssl-ca=/ca; ssl-mode=VERIFY_IDENTITY", VERIFY_IDENTITY),
    ("ssl-mode=VERIFY_IDENTITY; ssl-ca=/ca", VERIFY_IDENTITY),
    ("ssl-mode=DISABLED; ssl-mode=REQUIRED", REQUIRED),
    ("ssl-cert=/c; ssl-key=/k", None),
    # ssl and ssl-verify-server-cert: sslopt-case.h of 5.7
    ("ssl", REQUIRED),
    ("ssl=1", REQUIRED),
    ("ssl=TRUE", REQUIRED),
    ("enable-ssl", REQUIRED),
    ("loose-ssl=on", REQUIRED),
    ("ssl=0", DISABLED),
    ("skip-ssl", DISABLED),
    ("disable_ssl", DISABLED),
    ("ssl-ca=/ca; skip-ssl", DISABLED),
    ("skip-ssl; ssl-ca=/ca", VERIFY_CA),
    ("skip-ssl; ssl", REQUIRED),
    ("ssl-ca=/ca; ssl", VERIFY_CA),
    ("ssl; ssl-ca=/ca", VERIFY_CA),
    ("ssl-verify-server-cert", VERIFY_IDENTITY),
    ("ssl-ca=/ca; ssl-verify-server-cert=1", VERIFY_IDENTITY),
    ("ssl-verify-server-cert; ssl-ca=/ca", VERIFY_IDENTITY),  # 5.7 forgets it
    ("ssl-verify-server-cert=0", PREFERRED),
    ("ssl-verify-server-cert; skip-ssl-verify-server-cert", VERIFY_CA),
    ("ssl-ca=/ca; ssl-verify-server-cert=off", VERIFY_CA),
]


@pytest.mark.parametrize(("lines", "mode"), MODES)
def test_option_files_choose_the_mode_as_the_client_does(
    tmp_path: Path, lines: str, mode: SslMode | None
) -> None:
    found = meaning(tmp_path, *lines.split("; "))
    assert (found.tls.mode or PREFERRED) == (mode or PREFERRED)
    assert found.tls.ca == ("/ca" if "ssl-ca" in lines else None)


def test_what_else_option_files_say(tmp_path: Path) -> None:
    lines = ("host=h", "port=7", "socket=/s", "user=u", "password=p", "ssl-cert=/c", "ssl-key=/k")
    said: list[str] = []
    found = meaning(tmp_path, *lines, "quick", "database=d", "host=", "ssl-crl=/r", said=said)
    assert found == ClientOptions(
        "h", 7, "/s", "u", Secret("p"), tls=TlsChoice(None, None, "/c", "/k")
    )
    assert said == [f"{tmp_path}/my.cnf, line 12: ssl-crl is not supported, and has no effect here"]
    assert meaning(tmp_path, "socket=/s", "protocol=TCP").unix_socket is None
    assert meaning(tmp_path, "protocol=tcp", "socket=/s", "protocol=socket").unix_socket == "/s"
    dangerous = meaning(tmp_path, "enable-cleartext-plugin", "get-server-public-key")
    assert dangerous == ClientOptions()


@pytest.mark.parametrize(
    "name",
    ["ssl-cipher", "ssl-crl", "ssl-crlpath", "ssl-fips-mode", "tls-ciphersuites", "tls-version"],
)
def test_options_that_restrict_tls_further_are_a_warning(tmp_path: Path, name: str) -> None:
    said: list[str] = []
    assert meaning(tmp_path, f"{name}=x", said=said) == ClientOptions()
    assert said == [f"{tmp_path}/my.cnf, line 2: {name} is not supported, and has no effect here"]


@pytest.mark.parametrize("mode", ["DISABLED", "PREFERRED", "REQUIRED"])
def test_a_mode_that_does_not_use_its_authorities_is_a_warning(tmp_path: Path, mode: str) -> None:
    said: list[str] = []
    meaning(tmp_path, f"ssl-mode={mode}", "ssl-ca=/ca", said=said)
    [text] = said
    assert text.startswith(f"{tmp_path}/my.cnf, line 3: ssl-ca is not used")


def test_a_password_without_a_value_is_a_problem_where_it_is_needed(tmp_path: Path) -> None:
    asks = meaning(tmp_path, "password=p", "password")
    with pytest.raises(InventoryProblem, match="line 3: 'password' without a value would ask"):
        asks.password_or_problem()
    assert meaning(tmp_path, "password", "password=p").password_or_problem() == Secret("p")
    other = ClientOptions(password=Secret("other"))
    assert other.over(asks).password_or_problem() == Secret("other")
    with pytest.raises(InventoryProblem):
        asks.over(other).password_or_problem()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ssl-mode=on", "line 2: expected ssl-mode as one of DISABLED, PREFERRED, REQUIRED"),
        ("ssl-mode", "line 2: expected ssl-mode"),
        ("ssl=maybe", "line 2: expected ssl as 0 or 1"),
        ("ssl-capath=/d", "line 2: ssl-capath is not supported; use ssl-ca"),
        ("port=x", "line 2: expected a port from 1 to 65535"),
        ("port=65536", "line 2: expected a port"),
    ],
)
def test_values_without_a_meaning_are_refused_with_their_place(
    tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(OptionFileProblem, match=said):
        meaning(tmp_path, line)


# -- DSN and fleet file ---------------------------------------------------------------------------

IMPLIED = {
    NO_CHOICE: PREFERRED,
    TlsChoice(ca="/ca"): VERIFY_IDENTITY,
    TlsChoice(cert="/c", key="/k"): REQUIRED,
    TlsChoice(DISABLED): DISABLED,
    TlsChoice(PREFERRED, cert="/c", key="/k"): PREFERRED,
    TlsChoice(REQUIRED): REQUIRED,
    TlsChoice(REQUIRED, "/ca"): VERIFY_IDENTITY,
    TlsChoice(VERIFY_CA, "/ca"): VERIFY_CA,
    TlsChoice(VERIFY_IDENTITY, "/ca"): VERIFY_IDENTITY,
}


@pytest.mark.parametrize("choice", IMPLIED)
def test_a_dsn_with_authorities_verifies(choice: TlsChoice) -> None:
    settled = choice.with_mode().settled()
    assert settled.mode is IMPLIED[choice]
    assert settled.ca == choice.ca


def test_a_choice_is_completed_by_the_next_place() -> None:
    file = TlsChoice(VERIFY_CA, "/ca", "/c", "/k")
    assert NO_CHOICE.over(file) == file
    assert TlsChoice(DISABLED).over(file).settled() == TlsChoice(DISABLED)
    assert TlsChoice(REQUIRED).over(file).settled() == TlsChoice(REQUIRED, None, "/c", "/k")
    assert TlsChoice(VERIFY_IDENTITY).over(file).settled().ca == "/ca"
    assert TlsChoice(cert="/own").over(file) == TlsChoice(VERIFY_CA, "/ca", "/own", None)
    assert TlsChoice(key="/own").over(file) == TlsChoice(VERIFY_CA, "/ca", None, "/own")
    # The client takes the key from the file of the certificate, and the other way round.
    assert TlsChoice(cert="/pem").settled() == TlsChoice(PREFERRED, None, "/pem", "/pem")
    for mode in (VERIFY_CA, VERIFY_IDENTITY):
        with pytest.raises(InventoryProblem, match=f"ssl={mode.value} needs the file"):
            TlsChoice(mode).settled()


@pytest.fixture(scope="module")
def ca_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("ca")).file


SECTIONS = [
    ("", "", PREFERRED),
    ("ssl: required", "", REQUIRED),
    ("ssl: required", "ssl: disabled", DISABLED),
    ("ssl: required", "ssl: preferred", PREFERRED),
    ("ssl: disabled", "ssl: required", REQUIRED),
    ("ssl_ca: CA", "", VERIFY_IDENTITY),
    ("ssl_ca: CA", "ssl: verify_ca", VERIFY_CA),
    ("ssl_ca: CA", "ssl: required", VERIFY_IDENTITY),
    ("ssl_ca: CA", "ssl: disabled", DISABLED),
    ("ssl: required, ssl_ca: CA", "", VERIFY_IDENTITY),
    ("ssl: verify_ca", "ssl_ca: CA", VERIFY_CA),
    ("ssl: disabled", "ssl_ca: CA", VERIFY_IDENTITY),
    ("ssl: verify_ca, ssl_ca: CA", "ssl: verify_identity", VERIFY_IDENTITY),
]


def fleet(defaults: str, server: str, ca: Path) -> ServerTarget:
    text = f"""
defaults: {{user: u, {defaults}}}
clusters: [{{name: c, servers: [{{name: a, host: h, {server}}}, {{name: b, host: i}}]}}]
"""
    read = parse_fleet(text.replace("CA", str(ca)), name="f.yaml", environment={}, warn=pytest.fail)
    return read.clusters[0].targets[0]


@pytest.mark.parametrize(("defaults", "server", "mode"), SECTIONS)
def test_a_server_precedes_the_defaults(
    ca_file: Path, defaults: str, server: str, mode: SslMode
) -> None:
    if defaults == "ssl: verify_ca":
        defaults += f", ssl_ca: {ca_file}"
    target = fleet(defaults, server, ca_file)
    assert target.ssl_mode is mode
    assert target.ssl_ca == (str(ca_file) if mode.verifies else None)


@pytest.mark.parametrize(
    ("defaults", "server", "said"),
    [
        ("ssl: verify_ca", "", "line 2: defaults: ssl=verify_ca needs the file"),
        (
            "",
            "ssl: verify_identity",
            r"line 3: clusters\[0\].servers\[0\]: ssl=verify_identity needs",
        ),
        ("ssl: disabled, ssl_ca: CA", "", "line 2: defaults: has ssl_ca, which ssl=disabled"),
        ("", "ssl: preferred, ssl_ca: CA", r"servers\[0\]: has ssl_ca, which ssl=preferred"),
        ("ssl_ca: /no/ca.pem", "", "line 2: defaults: ssl_ca: /no/ca.pem: No such file"),
        ("", "ssl_ca: /no/ca.pem", r"line 3: clusters\[0\].servers\[0\]: ssl_ca: /no/ca.pem: No"),
        ("ssl: verify-ca", "", r"defaults.ssl: input should be 'disabled', 'preferred'"),
    ],
)
def test_a_fleet_file_that_cannot_be_used_is_refused_once(
    ca_file: Path, defaults: str, server: str, said: str
) -> None:
    with pytest.raises(InventoryProblem, match=said) as refusal:
        fleet(defaults, server, ca_file)
    assert len(refusal.value.problems) == 1


def test_a_target_has_authorities_exactly_if_it_verifies() -> None:
    for mode, ca in ((REQUIRED, "/ca"), (VERIFY_CA, None)):
        with pytest.raises(ValueError, match="a mode that verifies"):
            ServerTarget("a", "h", 1, "u", ssl_mode=mode, ssl_ca=ca)
