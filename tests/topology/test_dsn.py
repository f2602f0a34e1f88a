import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.adapters.inventory.dsn import OPTIONS, Dsn, endpoint_of, parse_dsn
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.targets import dsn_of, target_of
from topology.readings.target import Secret

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
    "mysql://u@h/?ssl=required": Dsn("h", 3306, "u", ssl_required=True),
    "mysql://u@h/?get_server_public_key=1&enable-cleartext-plugin=1": Dsn(
        "h", 3306, "u", get_server_public_key=True, enable_cleartext_plugin=True
    ),
    "mysql://u@h/?ssl_ca=/ca&ssl-cert=/c&SSL_KEY=/k": Dsn(
        "h", 3306, "u", ssl_ca="/ca", ssl_cert="/c", ssl_key="/k"
    ),
    "mysql://u@h/?option_file=~/.my.cnf&group=audit": Dsn(
        "h", 3306, "u", option_file="~/.my.cnf", group="audit"
    ),
    "mysql://h:3306/?option_file=/home/x@y/my.cnf": Dsn(
        "h", 3306, None, option_file="/home/x@y/my.cnf"
    ),
    "mysql://u@h:1/?option_file=/a@b:c": Dsn("h", 1, "u", option_file="/a@b:c"),
}


@pytest.mark.parametrize("text", READ)
def test_reads(text: str) -> None:
    assert parse_dsn(text) == READ[text]


REFUSED = {
    "db1:3306": "begin with mysql://",
    "postgres://h/": "begin with mysql://",
    "mysql://": "has no host",
    "mysql://root@": "has no host",
    "mysql://root@h:0/": "port",
    "mysql://root@h:65536/": "port",
    "mysql://root@h:\u0661/": "port",
    "mysql://root@h:/": "port",
    "mysql://root@::1/": "brackets",
    "mysql://root@[::1/": "bracket",
    "mysql://root@[db1]/": "no IPv6 address",
    "mysql://root@[::1]x/": "bracket",
    "mysql://root@h h/": "host name",
    "mysql://root@h/db": "path",
    "mysql://root@h/?nope=1": "known options",
    "mysql://root@h/?ssl_cs=1": "did you mean ssl_ca",
    "mysql://root@h/?group=": "without a value",
    "mysql://root@h/?group": "without a value",
    "mysql://root@h/?group=a": "without an option_file",
    "mysql://root@h/?ssl=off": "only ssl=required",
    "mysql://root@h/?get_server_public_key=0": "only get_server_public_key=1",
    "mysql://root@h/?ssl_ca=1&ssl_ca=2": "twice",
    "mysql://root@h/?ssl_cert=1": "both are required",
    "mysql://root@h/?ssl_ca=%zz": "hexadecimal",
    "mysql://root@h/?ssl_ca=%ff": "not UTF-8",
    "mysql://root@h/?ssl_ca=%00": "control character",
    "mysql://root@h/#x": "'#'",
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
def test_a_password_is_refused_and_not_repeated(password: str, rest: str) -> None:
    with pytest.raises(InventoryProblem) as refusal:
        parse_dsn(f"mysql://root:{password}@{rest}")
    assert "hun" not in str(refusal.value)
    assert "12345" not in str(refusal.value)


@pytest.mark.parametrize("option", ["password", "passwd", "pwd", "PASSWORD"])
def test_a_password_option_is_refused_and_not_repeated(option: str) -> None:
    with pytest.raises(InventoryProblem, match="contains a password") as refusal:
        parse_dsn(f"mysql://root@h/?{option}=hunter2")
    assert "hunter2" not in str(refusal.value)


@given(st.text(alphabet="hunter2:@/?#&=%[]. ", max_size=30))
def test_no_text_makes_it_fail_otherwise_or_repeat_what_was_typed(text: str) -> None:
    said = ""
    try:
        parse_dsn("mysql://root:SeCrEt" + text)
    except InventoryProblem as problem:
        said = str(problem)
    assert "SeCrEt" not in said


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        dsn = parse_dsn("mysql://" + text)
    except InventoryProblem:
        return
    assert 0 < dsn.port < 65536
    assert dsn.host


def test_endpoints_are_told_apart() -> None:
    assert endpoint_of(host="::1", port=3306, unix_socket=None) == "[::1]:3306"
    assert endpoint_of(host="h", port=1, unix_socket=None) == "h:1"
    assert endpoint_of(host="localhost", port=3306, unix_socket="/s") == "/s"
    assert sorted(OPTIONS) == list(OPTIONS)


@pytest.mark.parametrize(
    "text",
    [
        "mysql://root@db1.example:3306/",
        "mysql://a%40b%3F@[fd00::9]:3307/?ssl=required&get_server_public_key=1",
        "mysql://u@h:3306/?unix_socket=/run/my%26sql.sock&enable_cleartext_plugin=1",
        "mysql://u@h:3306/?ssl=required&ssl_ca=/a%20b/ca.pem&ssl_cert=/c.pem&ssl_key=/k.pem",
    ],
)
def test_a_target_shows_the_dsn_that_leads_to_it(text: str) -> None:
    parsed = parse_dsn(text)
    target = target_of(parsed, name="x", user=parsed.user or "", password=Secret("hidden"))
    assert parse_dsn(dsn_of(target)) == parsed
    assert "hidden" not in dsn_of(target)
