"""Option files, and the same files as `my_print_defaults` of the MySQL package reads them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from compose.native.installation import Clients
from topology.adapters.inventory.option_file import (
    FILES_MAX,
    LINE_BYTES_MAX,
    OptionFile,
    OptionFileProblem,
    read_option_file,
    text_of,
)


def unchecked(_path: Path) -> None:
    pass


def read(tmp_path: Path, text: str) -> OptionFile:
    path = tmp_path / "my.cnf"
    path.write_text(text)
    return read_option_file(path, check=unchecked)


def options(tmp_path: Path, text: str, *groups: str) -> dict[str, str | None]:
    return {line.name: line.value for line in read(tmp_path, text).lines_of(groups or ("client",))}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("password=x", "x"),
        ("  password  =  x  ", "x"),
        ("\tpassword\t=\tx\r", "x"),
        ("password = 'x y'", "x y"),
        ('password = "x#y"', "x#y"),
        ("password = x#y", "x"),
        ("password = 'x'y'", "x'y"),
        (r"password = a\sb\tc\\d\qe", "a b\tc\\d\\qe"),
        (r"password = 'it\'s'", "it's"),
        (r'password = "a\"#b"', 'a"#b'),
        ("loose_password = x", "x"),
        ("password = x=y", "x=y"),
        ("password =", ""),
        ("password = '", "'"),
        ("password = 'ab", "'ab"),
        ("password = 'ab\"", "'ab\""),
        ("password = x\\", "x\\"),
        ("password = one\npassword = two", "two"),
        ("password = \u00e0\u00a0", "\u00e0\u00a0"),
        ("password = \u2028", "\u2028"),  # ends a line for str.splitlines
    ],
)
def test_values_are_read_as_the_servers_clients_read_them(
    tmp_path: Path, line: str, value: str
) -> None:
    assert options(tmp_path, f"[client]\n{line}\n")["password"] == value


def test_groups_comments_and_names(tmp_path: Path) -> None:
    text = "# c\n; c\n\n[mysqld]\nuser=no\n[client] no comment\nuser=yes\nssl_ca = /x\nquick\n"
    assert options(tmp_path, text) == {"user": "yes", "ssl-ca": "/x", "quick": None}
    assert read(tmp_path, "[ client ]\n[cli#ent]\n[client\t]").groups == (
        " client",
        "cli#ent",
        "client",
    )


def test_the_later_line_wins_in_whichever_group(tmp_path: Path) -> None:
    text = "[mysql]\nuser=b\n[client]\nuser=a\npassword=p\n[mysql]\npassword=q\n"
    assert options(tmp_path, text, "client", "mysql") == {"user": "a", "password": "q"}


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "2.cnf").write_text("[client]\nuser=two\n")
    (tmp_path / "d" / "1.cnf").write_text("[client]\nuser=one\npassword=p\n")
    (tmp_path / "d" / "3.txt").write_text("[client]\nuser=no\n")
    (tmp_path / "e.cnf").write_text("[client]\nsocket=/s\n")
    text = f"[client]\n!include {tmp_path}/e.cnf\n! includedir d\nhost=h\n"
    assert options(tmp_path, text) == {
        "socket": "/s",
        "user": "two",
        "password": "p",
        "host": "h",  # the group goes on behind what is included
    }


def test_every_file_is_checked_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "e.cnf").write_text("[client]\n")
    (tmp_path / "my.cnf").write_text("!include e.cnf\n")
    seen: list[str] = []
    read_option_file(tmp_path / "my.cnf", check=lambda path: seen.append(path.name))
    assert seen == ["my.cnf", "e.cnf"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("password=hunter2", "line 1: an option before"),
        ("\ufeff[client]\npassword=hunter2", "line 1: an option before"),
        ("[client\npassword=hunter2", r"line 1: expected \[group\]"),
        ("!includes x", "line 1: expected !include"),
        ("!includedir /nowhere", "/nowhere: No such file"),
        ("!include my.cnf", "10 levels deep"),
        ("!include nowhere.cnf", "nowhere.cnf: No such file"),
        (f"[client]\nhost={'h' * LINE_BYTES_MAX}", "line 2: longer than 4,094 bytes"),
        ("[client]\npassword=hun\0ter2", "line 2: contains a NUL byte"),
        ("#" * (1 << 20) + "#", "larger than 1048576 bytes"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(OptionFileProblem, match=said) as problem:
        read(tmp_path, text)
    assert "hunter2" not in str(problem.value)


def test_ten_levels_of_includes_are_read(tmp_path: Path) -> None:
    for level in range(11):
        text = f"!include {level + 1}.cnf\n" if level < 10 else "[client]\nuser=deep\n"
        (tmp_path / f"{level}.cnf").write_text(text)
    [line] = read_option_file(tmp_path / "0.cnf", check=unchecked).lines
    assert line.value == "deep"
    (tmp_path / "top.cnf").write_text("!include 0.cnf\n")
    with pytest.raises(OptionFileProblem, match=r"10\.cnf: includes are nested more than 10"):
        read_option_file(tmp_path / "top.cnf", check=unchecked)


def test_more_included_files_than_the_limit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.cnf").write_text("")
    lines = "!include empty.cnf\n" * (FILES_MAX - 1)
    assert read(tmp_path, lines).lines == ()
    with pytest.raises(OptionFileProblem, match="more than 1,000 files"):
        read(tmp_path, lines + "!include empty.cnf\n")


def test_bytes_that_are_no_text_are_a_problem_only_in_a_value_that_is_used(tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_bytes(b"# caf\xe9\n[client]\npassword=\xff\nuser=u\n")
    password, user = read_option_file(tmp_path / "my.cnf", check=unchecked).lines
    assert text_of(user) == "u"
    with pytest.raises(OptionFileProblem, match="line 3: not UTF-8"):
        text_of(password)


# -- the same files, read by MySQL's own program --------------------------------------------------


def print_defaults(clients: Clients, file: Path, groups: Sequence[str]) -> str | None:
    """Return what my_print_defaults prints for a file; None if it refuses the file."""
    program = [*clients.loader, str(clients.folder / "my_print_defaults")]
    done = subprocess.run(
        [*program, f"--defaults-file={file}", "--no-login-paths", "--show", *groups],
        capture_output=True,
        env={},
        check=False,
        timeout=60,
    )
    return done.stdout.decode(errors="surrogateescape") if done.returncode == 0 else None


def printed(file: Path, groups: Sequence[str]) -> str | None:
    """Return the same from our reader. Our names have dashes, and no loose-."""
    try:
        lines = read_option_file(file, check=unchecked).lines_of(groups)
    except OptionFileProblem:
        return None
    return "".join(
        f"--{line.name}\n" if line.value is None else f"--{line.name}={line.value}\n"
        for line in lines
    )


LINES = st.lists(st.text(alphabet="ab=#;'\"\\ []\tnrsbq", max_size=14), max_size=12)


@pytest.mark.long
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES, ends_line=st.booleans())
def test_any_text_is_read_as_my_print_defaults_reads_it(
    mysql_clients: Clients, tmp_path: Path, lines: list[str], ends_line: bool
) -> None:
    # Behind an empty name the client trims the blanks before it, and reads beyond the line.
    assume(not any(line.split("#")[0].strip().startswith("=") for line in lines))
    file = tmp_path / "any.cnf"
    file.write_text("\n".join(["[client]", *lines, "[mysql]", "user=u", *lines]) + "\n" * ends_line)
    groups = ("client", "mysql", "a", "b")
    assert printed(file, groups) == print_defaults(mysql_clients, file, groups)


def test_groups_and_includes_are_read_as_my_print_defaults_reads_them(
    mysql_clients: Clients, tmp_path: Path
) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name in ("z.cnf", "a.b.cnf", ".cnf", ".h.cnf", "a.cnf.bak", "B.cnf", "c.txt"):
        (folder / name).write_text(f"[client]\nuser={name}\n[mysql]\nhost={name}\n")
    (tmp_path / "one.cnf").write_text("[client]\nport=7\n")
    file = tmp_path / "my.cnf"
    file.write_text(
        f"! includedir  {folder} \n[mysql ] x\nuser = 'c#d' # comment\n!include {tmp_path}/one.cnf\n"
        'socket="it\\\'s"\n[ mysql]\nuser=no\n[client]\npassword=a\\sb\n[mysqld]\nuser=no\n'
    )
    for groups in (("client",), ("client", "mysql"), (" mysql",), ("none",)):
        found = print_defaults(mysql_clients, file, groups)
        assert found is not None
        assert printed(file, groups) == found
