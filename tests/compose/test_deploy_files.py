"""The files of `deploy/`: each is read by the tool it is for, and calls options that exist.

A tool that cannot be had skips its test by name. The rest needs none.
"""

import ast
import grp
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from compose.native.installation import ProviderMissing, require_tool
from compose.native.npm import PinnedPackage
from gtid_audit.cli import app
from tests.typescript import compile_or_skip
from tests.unpacked_programs import command_in, unpacked_or_skip

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = sorted(DEPLOY.glob("kubernetes/*.yaml"))
UNITS = sorted(DEPLOY.glob("systemd/*"))
KUBERNETES_VERSIONS = ("1.29", "1.33")
OPERATOR = (
    PinnedPackage(
        "@kubernetes-models/prometheus-operator",
        "6.0.0",
        "sha512-ySNW4T6U6Vn86bmcJ/emmAYJ/UrzpNvzxWexWJSALwgiO4FqCgL6WoqFsOReSiMhw/LlF+MljQvoiwD3RnaGmg==",
    ),
    PinnedPackage(
        "@kubernetes-models/apimachinery",
        "3.0.2",
        "sha512-6Vbzr/tinxPBGGdfYjXiV9WPj8PEhyiqGJiWhXrsihK7h6glPj4HKUxZ0YwYXH/5uucm/NVef/xY3vZ4Crj1Fg==",
    ),
    PinnedPackage(
        "@kubernetes-models/base",
        "6.0.1",
        "sha512-pXKCFeSoL6RsMxoPDwaJ5JtijVjeuNCacgtYS9dImF7qFdzdc9lcQbem6y6Ug7/K6/bFOWdTu3qIX88IK81o0A==",
    ),
)
_CALL = re.compile(r"gtid-audit(?:\", \")?\W+(audit|serve)\b(.*)")


def tool(name: str, package: str) -> str:
    try:
        return require_tool(name, brought_by=f"apt-get install {package}", needed_for="deploy/")
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


def documents() -> list[dict[str, Any]]:
    return [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [each for each in documents() if each["kind"] == kind]
    return found


def texts() -> dict[str, str]:
    """Return the files without their comments, by name."""
    return {
        path.name: "\n".join(
            line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")
        )
        for path in sorted(DEPLOY.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def commands() -> list[tuple[str, str, set[str]]]:
    """Every call of gtid-audit: the file, the command, its options."""
    found = []
    for name, text in texts().items():
        for command, rest in _CALL.findall(text):
            options = set(re.findall(r"--[a-z-]+", rest if not name.endswith(".conf") else text))
            found.append((name, command, options))
    serve = of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    options = {each.partition("=")[0] for each in serve if each.startswith("--")}
    return [*found, ("deployment.yaml", serve[0], options)]


def test_every_option_exists() -> None:
    seen = {name for name, _, _ in commands()}
    assert len(seen) == 7
    helps = {name: CliRunner().invoke(app, [name, "--help"]).output for name in ("audit", "serve")}
    for name, command, options in commands():
        assert options, name
        missing = {each for each in options if not re.search(rf"{each}\b", helps[command])}
        assert not missing, (name, command)


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze", "systemd")
    copies = []
    for unit in UNITS:
        copy = tmp_path / unit.name  # the program is not installed on this machine
        copy.write_text(
            unit.read_text().replace("/usr/local/bin/gtid-audit", shutil.which("true") or "")
        )
        copies.append(str(copy))
    done = subprocess.run(
        [analyze, "verify", *copies], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_timer_starts_a_unit_that_is_there() -> None:
    timer = (DEPLOY / "systemd/gtid-audit.timer").read_text()
    unit = re.search(r"^Unit=(.*)$", timer, re.MULTILINE)
    assert unit is not None
    assert (DEPLOY / "systemd" / unit[1]).exists()


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_kubernetes_takes_the_manifests(version: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    known = [each for each in documents() if each["kind"] != "ServiceMonitor"]
    assert {each["kind"] for each in known} == {
        *("CronJob", "Deployment", "Service", "PersistentVolumeClaim")
    }
    for each in known:
        kubernetes_validate.validate(each, version, strict=True)


def test_every_audit_keeps_what_the_next_one_must_compare() -> None:
    """The DAG once had a new folder for each run: a difference whose logs are purged was OK."""
    places = {"/var/lib/gtid-audit/history.sqlite", "$gtid_audit_history$", "$RUNS"}
    places.add("${STATE_DIRECTORY}/history.sqlite")
    for name, _, options in commands():
        assert options & {"--history", "--out"}, name
        kept = re.findall(r"--(?:history|out)\W*[ =\"]([\w./${}-]+)(.?)", texts()[name])
        assert kept, name
        assert all(place in places and after in ('"', "", " ") for place, after in kept), kept


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_each_manifest_brings_the_claims_of_its_pods(path: Path) -> None:
    here = list(yaml.safe_load_all(path.read_text()))
    wanted = set(re.findall(r"claimName: ([\w-]+)", path.read_text()))
    claims = {each["metadata"]["name"] for each in here if each["kind"] == "PersistentVolumeClaim"}
    assert claims == wanted
    assert bool(wanted) == any(each["kind"] in ("CronJob", "Deployment") for each in here)


@pytest.mark.slow
def test_the_operators_types_take_the_service_monitor(tmp_path: Path) -> None:
    monitor = of_kind("ServiceMonitor")
    head = "import type {IServiceMonitor} from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';"
    code = f"{head}\nexport const monitor: IServiceMonitor = "
    (tmp_path / "right.ts").write_text(code + json.dumps(monitor))
    endpoint, *_ = monitor["spec"]["endpoints"]
    for number, part in enumerate((endpoint, monitor["spec"]["selector"])):
        part["unknown"] = "10s"
        (tmp_path / f"wrong{number}.ts").write_text(code + json.dumps(monitor))
        del part["unknown"]
    errors = compile_or_skip(tmp_path, *OPERATOR)
    refused = re.findall(r"^(\w+)\.ts.*'\"?unknown\"?' does not exist", errors, re.MULTILINE)
    assert (refused, errors.count("error TS")) == (["wrong0", "wrong1"], 2), errors


def test_the_service_monitor_finds_the_service() -> None:
    monitor, service = of_kind("ServiceMonitor"), of_kind("Service")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    (endpoint,), (port,) = monitor["spec"]["endpoints"], service["spec"]["ports"]
    seconds = [re.fullmatch(r"(\d+)s", endpoint[name]) for name in ("scrapeTimeout", "interval")]
    timeout, interval = [int(each[1]) for each in seconds if each is not None]
    assert timeout <= interval  # Prometheus refuses it otherwise
    assert endpoint["port"] == port["name"]
    pod = of_kind("Deployment")["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert port["targetPort"] in {each["name"] for each in pod["spec"]["containers"][0]["ports"]}


def test_probes_ask_what_the_page_says_of_the_paths() -> None:
    """Readiness must not ask /healthz: it is 200 before the first audit has ended."""
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    named = {
        name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("readiness", "liveness")
    }
    assert named == {"readiness": "/readyz", "liveness": "/healthz"}
    page = (ROOT / "docs/service.md").read_text()
    assert re.search(
        r"^\| `/readyz` \| 200 once an audit of each cluster has ended", page, re.MULTILINE
    )
    assert re.search(r"^\| `/healthz` .* for what restarts the service \|$", page, re.MULTILINE)
    liveness = container["livenessProbe"]
    assert liveness["timeoutSeconds"] < liveness["periodSeconds"]


@pytest.mark.parametrize("kind", ["CronJob", "Deployment"])
def test_pods_have_no_rights_and_write_to_volumes_only(kind: str) -> None:
    spec = of_kind(kind)["spec"]
    pod = (spec["jobTemplate"]["spec"] if kind == "CronJob" else spec)["template"]["spec"]
    user = pod["securityContext"]["runAsUser"]
    assert f"USER {user}:{user}" in (ROOT / "compose/Dockerfile").read_text()
    container = pod["containers"][0]["securityContext"]
    assert container["readOnlyRootFilesystem"]
    assert container["capabilities"] == {"drop": ["ALL"]}


def scripts() -> dict[str, str]:
    """The shell scripts around an audit, as the shell gets them."""
    pod = of_kind("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    dag = ast.parse((DEPLOY / "airflow/gtid_audit_dag.py").read_text())
    (command,) = [
        ast.literal_eval(each.value)
        for each in dag.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "COMMAND"
    ]
    return {"CronJob": pod["containers"][0]["args"][0], "DAG": command}


@pytest.mark.parametrize("name", ["CronJob", "DAG"])
@pytest.mark.parametrize(("status", "expected"), [(0, 0), (1, 0), (2, 2), (3, 3), (64, 64)])
def test_a_warning_is_no_failure_and_everything_worse_is(
    name: str, status: int, expected: int, tmp_path: Path
) -> None:
    program = tmp_path / "gtid-audit"
    program.write_text(f"#!/bin/sh\nexit {status}\n")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "FLEET": "f", "RUNS": "r"}
    done = subprocess.run(["sh", "-c", scripts()[name]], env=environment, check=False, timeout=60)
    assert done.returncode == expected


def test_airflow_loads_the_dag(tmp_path: Path) -> None:
    """Airflow's own environment may be named: its versions do not fit beside ours."""
    python = os.environ.get("GTID_AUDIT_AIRFLOW_PYTHON", sys.executable)
    program = (
        "import sys; from importlib.util import find_spec\n"
        "if find_spec('airflow') is None: sys.exit(77)\n"
        "from airflow.dag_processing.dagbag import DagBag\n"
        "bag = DagBag(sys.argv[1])\n"
        "print(bag.import_errors, {name: dag.task_ids for name, dag in bag.dags.items()})\n"
    )
    environment = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run(
        [python, "-c", program, str(DEPLOY / "airflow")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode == 77:
        pytest.skip(
            "provider missing: airflow; set GTID_AUDIT_AIRFLOW_PYTHON to a Python that has it"
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "{} {'gtid_audit': ['audit']}"


def user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def group() -> str:
    return grp.getgrgid(os.getegid()).gr_name


def monitors() -> Path:
    return unpacked_or_skip("monitors", "nagios4-core", "icinga2-bin")


@pytest.mark.slow
def test_nagios_takes_the_definition(tmp_path: Path) -> None:
    nagios = command_in(monitors(), "usr/sbin/nagios4")
    (tmp_path / "rest.cfg").write_text(
        "define host {\n host_name mysql-fleet\n address 127.0.0.1\n max_check_attempts 1\n}\n"
        "define service {\n name generic-service\n register 0\n check_period all\n"
        " notifications_enabled 0\n}\n"
        "define contact {\n contact_name c\n host_notifications_enabled 0\n"
        " service_notifications_enabled 0\n host_notification_period all\n"
        " service_notification_period all\n host_notification_commands check_gtid_audit\n"
        " service_notification_commands check_gtid_audit\n}\n"
        "define timeperiod {\n timeperiod_name all\n alias all\n sunday 00:00-24:00\n}\n"
    )
    main = tmp_path / "nagios.cfg"
    main.write_text(
        f"cfg_file={DEPLOY}/nagios/gtid-audit.cfg\ncfg_file={tmp_path}/rest.cfg\n"
        f"nagios_user={user()}\nnagios_group={group()}\n"
        f"log_file={tmp_path}/log\ncheck_result_path={tmp_path}\ntemp_path={tmp_path}\n"
    )
    done = subprocess.run(
        [*nagios, "-v", main], capture_output=True, text=True, check=False, timeout=60
    )
    assert re.search(r"Total Errors: +0$", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.slow
def test_icinga_takes_the_definition(tmp_path: Path) -> None:
    icinga = command_in(monitors(), "usr/lib/*-linux-gnu/icinga2/sbin/icinga2")
    main = tmp_path / "icinga2.conf"
    main.write_text(
        'include <itl>\nobject Host "fleet" { check_command = "dummy"\n vars.gtid_clusters = [ "a" ] }\n'
        f'include "{DEPLOY}/icinga/gtid-audit.conf"\n'
    )
    done = subprocess.run(
        [
            # Without the option it starts itself again, and then without its own C library.
            *(*icinga, "daemon", "--no-stack-rlimit", "-C", "-c", str(main)),
            *(f"-DDataDir={tmp_path}", f"-DCacheDir={tmp_path}"),
            *("--include", str(monitors() / "usr/share/icinga2/include")),
        ],
        env={**os.environ, "ICINGA2_USER": user(), "ICINGA2_GROUP": group()},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Instantiated 1 Service", done.stdout), done.stdout
