from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.adapters.inventory.account_files import AccountFiles
from topology.adapters.inventory.dsn import OPTIONS, Dsn, endpoint_of, is_dsn, parse_dsn
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.targets import Accounts, dsn_of
from topology.adapters.inventory.tls_choice import TlsChoice
from topology.readings.target import Secret, ServerTarget, SslMode

READ = {
    "mysql://root@db1:3307/": Dsn("db1", 3307, "root"),
    "mysql://root@db1": Dsn("db1", 3306, "root"),
    "MySQL://db1/": Dsn("db1", 3306, None),
    "mysql://root@[::1]:3307/": Dsn("::1", 3307, "root"),
    "mysql://root@[FD00:0::21]/": Dsn("fd00::21", 3306, "root"),
    "mysql://r%40x%3A@db1/": Dsn("db1", 3306, "r@x:"),
    "mysql://root@/?unix_socket=/run/a%20b.sock": Dsn(
        "localhost", 3306, "root", unix_socket="/run/a b.sock"
    ),
    "mysql://?unix_socket=/s": Dsn("localhost", 3306, None, unix_socket="/s"),
    "mysql://u@h/?ssl=required": Dsn("h", 3306, "u", tls=TlsChoice(SslMode.REQUIRED)),
    "mysql://u@h/?get_server_public_key=1&enable-cleartext-plugin=1": Dsn(
        "h", 3306, "u", get_server_public_key=True, enable_cleartext_plugin=True
    ),
    "mysql://u@h/?ssl_ca=/ca&ssl-cert=/c&SSL_KEY=/k": Dsn(
        "h", 3306, "u", tls=TlsChoice(None, "/ca", "/c", "/k")
    ),
    "mysql://u@h/?option_file=~/.my.cnf&group=audit": Dsn(
        "h", 3306, "u", option_file="~/.my.cnf", group="audit"
    ),
    "mysql://h:3306/?option_file=/home/x@y/my.cnf": Dsn(
        "h", 3306, None, option_file="/home/x@y/my.cnf"
    ),
    "mysql://u@h:1/?option_file=/a@b:c": Dsn("h", 1, "u", option_file="/a@b:c"),
    "mysql://h/?password-file=/run/secrets/x": Dsn("h", 3306, None, password_file="/run/secrets/x"),
    "mysql://h/?login_path=a%20b": Dsn("h", 3306, None, login_path="a b"),
    "mysql://u@h/?ssl=DISABLED": Dsn("h", 3306, "u", tls=TlsChoice(SslMode.DISABLED)),
    "mysql://u@h/?ssl=Verify-CA&ssl_ca=/c": Dsn(
        "h", 3306, "u", tls=TlsChoice(SslMode.VERIFY_CA, "/c")
    ),
    # The short forms.
    "db1:3307": Dsn("db1", 3307, None),
    "db1:65535": Dsn("db1", 65535, None),
    "root@db1": Dsn("db1", 3306, "root"),
    "root@db1:3307": Dsn("db1", 3307, "root"),
    "[::1]": Dsn("::1", 3306, None),
    "[::1]:3307": Dsn("::1", 3307, None),
    "root@[FD00:0::21]:3307": Dsn("fd00::21", 3307, "root"),
    "r%40x@db1": Dsn("db1", 3306, "r@x"),
    "/run/mysqld/mysqld.sock": Dsn("localhost", 3306, None, unix_socket="/run/mysqld/mysqld.sock"),
    "root@/run/a%20b@c.sock": Dsn("localhost", 3306, "root", unix_socket="/run/a b@c.sock"),
    "root@/s?group=g&option_file=/f": Dsn(
        "localhost", 3306, "root", unix_socket="/s", option_file="/f", group="g"
    ),
    "db1/?ssl=required": Dsn("db1", 3306, None, tls=TlsChoice(SslMode.REQUIRED)),
    "root@db1:3307?ssl=required": Dsn("db1", 3307, "root", tls=TlsChoice(SslMode.REQUIRED)),
    "h:3306/?option_file=/home/x@y/my.cnf": Dsn("h", 3306, None, option_file="/home/x@y/my.cnf"),
}


@pytest.mark.parametrize("text", READ)
def test_reads(text: str) -> None:
    assert parse_dsn(text) == READ[text]


REFUSED = {
    "db1": "single word; for a host of this name write host:port, or user@host",
    "fleet.yaml": "single word",
    "": "single word",
    "3e11fa47-71ca-11e1-9e33-c80aa9429562:7": "is a GTID, not an address at character 1",
    "3E11FA47-71CA-11E1-9E33-C80AA9429562:tag:7": "is a GTID",
    "postgres://h/": "does not begin with mysql:// at character 1",
    "mysql:/h": "does not begin with mysql://",
    "mysql://": "has no host",
    "mysql://root@": "has no host",
    "root@": "has no host",
    "mysql://root@h:0/": "port",
    "h:0": "number from 1 to 65535 at character 3",
    "mysql://root@h:65536/": "number from 1 to 65535 at character 16",
    "mysql://root@h:\u0661/": "port",
    "mysql://root@h:/": "port",
    "mysql://root@::1/": "brackets",
    "::1": "more than one ':' in its address; put an IPv6 address in brackets at character 1",
    "mysql://root@[::1/": "bracket",
    "mysql://root@[db1]/": "no IPv6 address at character 15",
    "mysql://root@[::1]x/": "bracket",
    "mysql://root@h h/": "host name with an invalid character at character 14",
    "mysql://root@h/db": "path",
    "root@h/db": "path; only .* at character 8",
    "mysql://root@h/?nope=1": "known options.* at character 17",
    "mysql://root@h/?ssl_cs=1": "did you mean ssl_ca",
    "mysql://root@h/?group=": "without a value",
    "mysql://root@h/?group": "without a value",
    "mysql://root@h/?group=a": "without an option_file",
    "mysql://root@h/?ssl=off": "not one of disabled, preferred, required, verify_ca, verify_identity",
    "mysql://root@h/?ssl=disabled&ssl_ca=/c": "has ssl_ca, which ssl=disabled does not use",
    "mysql://root@h/?ssl=preferred&ssl_ca=/c": "has ssl_ca, which ssl=preferred does not use",
    "mysql://root@h/?get_server_public_key=0": "only get_server_public_key=1",
    "mysql://root@h/?ssl_ca=1&ssl_ca=2": "option ssl_ca twice at character 26",
    "mysql://root@h/?ssl_cert=1": "both are required",
    "mysql://root@h/?ssl_ca=%zz": "hexadecimal",
    "mysql://root@h/?ssl_ca=%ff": "not UTF-8",
    "mysql://root@h/?ssl_ca=%00": "control character",
    "mysql://root@h/?option_file=/a&password_file=/b": "has both option_file and password_file",
    "mysql://root@h/?login_path=a&option_file=/b": "has both login_path and option_file",
    "root@/s?unix_socket=/t": "two unix sockets at character 6",
    "mysql://root@h/#x": "'#'",
    "#u@h": "'#'; write it as %23 at character 1",
    "mysql:///run/my.sock": "has a path",
    "mysql://" + "x" * 5000: "longer than",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refuses_and_says_why(text: str) -> None:
    with pytest.raises(InventoryProblem, match=REFUSED[text]):
        parse_dsn(text)


@pytest.mark.parametrize(
    "password",
    ["hunter2", "hun@ter2", "hun/ter2", "hun?ter2", "hun#ter2", "hun:ter2", "12345", "hun%20ter2"],
)
@pytest.mark.parametrize("rest", ["h:3306/", "[::1]:3306/", "/?unix_socket=/s", "h"])
@pytest.mark.parametrize("scheme", ["mysql://", ""])
def test_a_password_is_refused_and_not_repeated(scheme: str, password: str, rest: str) -> None:
    with pytest.raises(InventoryProblem, match="contains a password") as refusal:
        parse_dsn(f"{scheme}root:{password}@{rest}")
    assert "hun" not in str(refusal.value)
    assert "12345" not in str(refusal.value)


@pytest.mark.parametrize("text", ["mysql://a@b:hunter2@h/", "a@b:hunter2@h", "a@b:hunter2@h:1"])
def test_a_password_behind_a_second_at_sign_is_refused(text: str) -> None:
    with pytest.raises(InventoryProblem, match="contains a password") as refusal:
        parse_dsn(text)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("option", ["password", "passwd", "pwd", "PASSWORD"])
def test_a_password_option_is_refused_and_not_repeated(option: str) -> None:
    with pytest.raises(InventoryProblem, match="contains a password") as refusal:
        parse_dsn(f"mysql://root@h/?{option}=hunter2")
    assert "hunter2" not in str(refusal.value)


@given(st.sampled_from(["mysql://", ""]), st.text(alphabet="hunter2:@/?#&=%[]. ", max_size=30))
def test_no_text_makes_it_fail_otherwise_or_repeat_what_was_typed(scheme: str, text: str) -> None:
    said = ""
    try:
        parse_dsn(scheme + "root:SeCrEt" + text)
    except InventoryProblem as problem:
        said = str(problem)
    assert "SeCrEt" not in said


@given(st.sampled_from(["mysql://", ""]), st.text(max_size=60))
def test_any_text_is_read_or_refused(scheme: str, text: str) -> None:
    try:
        dsn = parse_dsn(scheme + text)
    except InventoryProblem:
        return
    assert 0 < dsn.port < 65536
    assert dsn.host


def test_endpoints_are_told_apart() -> None:
    assert endpoint_of(host="::1", port=3306, unix_socket=None) == "[::1]:3306"
    assert endpoint_of(host="h", port=1, unix_socket=None) == "h:1"
    assert endpoint_of(host="localhost", port=3306, unix_socket="/s") == "/s"
    assert sorted(OPTIONS) == list(OPTIONS)


DSNS = {
    "db1:3306": True,
    "root@db1": True,
    "root@db1:3306": True,
    "root@db1/?ssl=required": True,
    "[::1]:3306": True,
    "root@[::1]": True,
    "root@/run/my.sock": True,
    "mysql://db1": True,
    "MySQL:/db1": True,  # mistyped: the message is about a DSN
    "db1": False,
    "/run/my.sock": False,  # perhaps a file: the caller looks
    "binlog.000001": False,
    "binlog.000001:4": False,
    "root:pw@db1": False,
    "3e11fa47-71ca-11e1-9e33-c80aa9429562:7": False,
    "binlog.[0-9]*": False,
    "logs/binlog.?": False,
    "a b:1": False,
}


@pytest.mark.parametrize("word", DSNS)
def test_a_word_among_files_is_a_dsn_or_not(word: str) -> None:
    assert is_dsn(word) is DSNS[word]


TARGETS = [
    ServerTarget("x", "db1.example", 3306, "root"),
    ServerTarget("x", "fd00::9", 3307, "a@b?", get_server_public_key=True),
    ServerTarget("x", "h", 1, "u", unix_socket="/run/my&sql.sock", enable_cleartext_plugin=True),
    ServerTarget("x", "h", 1, "u", ssl_mode=SslMode.DISABLED),
    ServerTarget("x", "h", 1, "u", ssl_mode=SslMode.REQUIRED),
    ServerTarget("x", "h", 1, "u", ssl_mode=SslMode.PREFERRED, ssl_cert="/c", ssl_key="/k"),
    ServerTarget("x", "h", 1, "u", ssl_mode=SslMode.VERIFY_CA, ssl_ca="/a b/ca"),
    ServerTarget("x", "h", 1, "u", ssl_mode=SslMode.VERIFY_IDENTITY, ssl_ca="/ca"),
]


@pytest.mark.parametrize("target", TARGETS, ids=[str(number) for number in range(len(TARGETS))])
def test_a_target_shows_the_dsn_that_leads_to_it(
    target: ServerTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AccountFiles, "check_tls", lambda _files, _choice: None)
    text = dsn_of(replace(target, password=Secret("hidden")))
    assert "hidden" not in text
    found = Accounts({}, pytest.fail).target(text)
    assert replace(found, name="x") == target
