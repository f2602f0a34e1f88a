"""One server under two names is an error of the configuration, not two servers with one UUID."""

from pathlib import Path

from compose.native.shapes import Pair
from tests.gtid_audit.build import run_cli

USAGE = 64


def test_one_server_under_two_names_is_refused(pair97: Pair, tmp_path: Path) -> None:
    port = pair97.a.port
    done = run_cli("pair", f"mysql://root@127.0.0.1:{port}/", f"mysql://root@localhost:{port}/")
    assert done.returncode == USAGE
    assert f"127.0.0.1:{port} and localhost:{port} are the same server" in done.stderr
    assert "auto.cnf" not in done.stdout + done.stderr
    # In a fleet file, beside a server that is another one.
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "defaults: {user: root}\n"
        "clusters:\n"
        "  - name: one\n"
        "    servers:\n"
        f"      - {{name: db1, host: 127.0.0.1, port: {port}}}\n"
        f"      - {{name: db2, host: localhost, port: {port}}}\n"
        f"      - {{name: db3, host: 127.0.0.1, port: {pair97.b.port}}}\n"
    )
    done = run_cli("audit", "--fleet", str(fleet))
    assert done.returncode == USAGE
    assert "db1 and db2 are the same server" in done.stderr


def test_of_several_clusters_the_one_with_the_error_is_unknown(
    pair97: Pair, tmp_path: Path
) -> None:
    a, b = pair97.a.port, pair97.b.port
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "defaults: {user: root}\n"
        "clusters:\n"
        "  - name: fine\n"
        "    servers:\n"
        f"      - {{name: a, host: 127.0.0.1, port: {a}}}\n"
        f"      - {{name: b, host: 127.0.0.1, port: {b}}}\n"
        "  - name: twice\n"
        "    servers:\n"
        f"      - {{name: db1, host: localhost, port: {a}}}\n"
        f"      - {{name: db2, unix_socket: {pair97.a.socket_path}}}\n"
    )
    done = run_cli("audit", "--fleet", str(fleet))
    assert done.returncode == 3
    assert "db1 and db2 are the same server" in done.stdout
