"""`gtid-audit spark package|command|submit`: the fleet audit on an existing Spark cluster.

1. The cluster runs spark_audit/adapters/submit.py, which is sent as a zip. docs/spark-cluster.md
   lists what the cluster itself must have.
2. `command` prints the line that `submit` runs, so that the operator can read it first.
3. The clusters and the policy of a fleet file go there in a second zip, because a command line
   has a maximum length (spark_audit/adapters/fleet_archive.py).
4. All users of the machine can read a command line. So settings that look like a secret are refused
   here; they belong in spark-defaults.conf or in a credential provider.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson, MaxAge, OptionalFleetFile, max_age_of
from gtid_audit.commands.plain_commands import PlainCommand
from gtid_audit.exits import UsageProblem
from gtid_audit.optional_packages import INSTALL_SPARK, SUBMIT_NEEDS
from gtid_audit.output import progress, warn, write, write_json, write_line
from topology.catalogue.findings import Verdict
from topology.documents.run_record import MAX_AGE_DEFAULT

if TYPE_CHECKING:
    from spark_audit.expected_fleet import ExpectedFleet

PACKAGE: Final = "gtid-audit.zip"
_NO_VERDICT: Final = (exits.USAGE, exits.DEFECT, exits.INTERRUPTED)
_SECRET: Final = re.compile(r"pass|secret|token|credential|access\.key|account\.key", re.IGNORECASE)
_NO_SECRET: Final = re.compile(r"provider|enabled", re.IGNORECASE)  # classes, paths, switches

Words: TypeAlias = list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One audit on a cluster. The fields are the options of both commands."""

    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="spark://HOST:7077, yarn, k8s://…")
    ]
    snapshots: Annotated[
        str,
        typer.Option(
            "--snapshots", metavar="PLACE", help="A path that every executor sees, or a URI."
        ),
    ]
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="PLACE", help="For the results: a path that all see, or a URI."
        ),
    ]
    package: Annotated[
        str | None,
        typer.Option(
            "--package",
            metavar="FILE",
            help=f"The zip of `spark package`, or a URI. Default: {PACKAGE}; submit builds it.",
        ),
    ] = None
    deploy_mode: Annotated[
        Literal["client", "cluster"],
        typer.Option("--deploy-mode", help="Where the driver runs: here, or on the cluster."),
    ] = "client"
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="Path of Python on the executors."),
    ] = None
    driver_python: Annotated[
        str | None,
        typer.Option(
            "--driver-python", metavar="PATH", help="The driver's Python. Client mode: this one."
        ),
    ] = None
    archive: Annotated[
        str | None,
        typer.Option(
            "--archive", metavar="FILE#NAME", help="A packed environment, unpacked as NAME."
        ),
    ] = None
    conf: Annotated[
        Words,
        typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting. Repeatable."),
    ] = None
    fleet: OptionalFleetFile = None
    allow_uuid: Annotated[
        Words,
        typer.Option(
            "--allow-uuid",
            metavar="UUID",
            help="Allow extra transactions of this UUID. Repeatable.",
        ),
    ] = None

    max_age: MaxAge = MAX_AGE_DEFAULT
    as_json: AsJson = False

    @property
    def is_cluster(self) -> bool:
        """Return whether the driver runs on the cluster: its exit status is then not visible."""
        return self.deploy_mode == "cluster"

    def line(self, spark_submit: str, *, fleet_archive: str | None = None) -> list[str]:
        """Return the command and its arguments. `fleet_archive`: the fleet file, as it is sent.

        Raises UsageProblem for an invalid setting or UUID.
        """
        package = self.package or PACKAGE
        settings = _settings_of(self.conf or ())
        if self.python is not None:
            settings["spark.pyspark.python"] = self.python
        if self.driver_python is not None:
            settings["spark.pyspark.driver.python"] = self.driver_python
        line = [spark_submit, "--master", self.master, "--deploy-mode", self.deploy_mode]
        line += ["--name", "gtid-audit", "--py-files"]
        line += [package if fleet_archive is None else f"{package},{fleet_archive}"]
        if self.archive is not None:
            line += ["--archives", self.archive]
        for name, value in settings.items():
            line += ["--conf", f"{name}={value}"]
        line += [package.removesuffix(".zip") + ".py"]
        line += ["--snapshots", self.snapshots, "--out", self.out]
        max_age_of(self.max_age)  # otherwise the cluster would refuse it, later
        line += ["--max-age", self.max_age]
        for uuid in _allowed(self.allow_uuid or ()):
            line += ["--allow-uuid", uuid]
        if fleet_archive is not None:
            line += ["--fleet"]
        if self.is_cluster:  # YARN would treat a verdict's status as a failure, and retry
            line += ["--exit", "done"]
        return line


def register(family: typer.Typer) -> None:
    """Add the commands to the family `spark`."""
    family.command("package", cls=PlainCommand)(package)
    family.command("command", cls=PlainCommand)(_about_one(command))
    family.command("submit", cls=PlainCommand, epilog=SUBMIT_NEEDS)(_about_one(submit))


def _about_one(act: Callable[[Submission], int]) -> Callable[..., int]:
    """Make a command from a function: the fields of a submission become its options."""

    @wraps(act)
    def run(**given: Any) -> int:  # noqa: ANN401 - Submission defines the types
        return act(Submission(**given))

    # Typer reads the signature, so the command gets that of the class.
    run.__signature__ = signature(Submission)  # type: ignore[attr-defined]
    return run


def package(
    *,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="The zip; the program is written next to it."),
    ] = Path(PACKAGE),
    fleet: OptionalFleetFile = None,
    as_json: AsJson = False,
) -> int:
    """Write gtid-audit as a zip for the executors, and the program that spark-submit runs.

    With --fleet, also the clusters and the policy of the fleet file, without accounts, as a second
    zip: the line that `spark command --fleet` prints sends it.
    """
    expected = None if fleet is None else _expected(fleet)
    with progress("packing"):
        written = [str(each) for each in _packed(out)]
        if expected is not None:
            written.append(_fleet_beside(str(out)))
            _fleet_written(Path(written[-1]), expected)
    if as_json:
        write_json({"files": written})
    else:
        for each in written:
            write_line(each)
    return exits.OK


def command(asked: Submission) -> int:
    """Print the spark-submit line of an audit, without running it.

    `spark package`, with the same --fleet, writes the files that it sends.
    """
    sent = None
    if asked.fleet is not None:
        _expected(asked.fleet)  # otherwise `spark package` would refuse it, later
        sent = _fleet_beside(asked.package or PACKAGE)
    words = asked.line("spark-submit", fleet_archive=sent)
    if asked.as_json:
        write_json({"command": words})
    else:
        write_line(shlex.join(words))
    return exits.OK


def submit(asked: Submission) -> int:
    """Audit stored snapshots on a Spark cluster; print the summary, exit with the verdict.

    With --deploy-mode cluster the exit status is spark-submit's: 0 if the audit finished, with any
    verdict.
    """
    program = _spark_submit(os.environ)
    if asked.driver_python is None and not asked.is_cluster:
        asked = replace(asked, driver_python=sys.executable)
    with TemporaryDirectory(prefix="gtid-audit-") as scratch:
        made = Path(scratch) / PACKAGE
        sent = None
        if asked.fleet is not None:  # written anew, also beside a package of the operator
            sent = _fleet_beside(str(made))
            _fleet_written(Path(sent), _expected(asked.fleet))
        complete = replace(asked, package=asked.package or str(made))
        line = complete.line(program, fleet_archive=sent)
        if asked.package is None:
            _packed(made)
        with progress("spark-submit runs the audit"):
            # Its messages go to standard error.
            said = subprocess.run(line, stdout=subprocess.PIPE, check=False)  # noqa: S603
    text = said.stdout.decode(errors="replace")
    if asked.is_cluster:
        if asked.as_json:
            write_json({"spark_submit_status": said.returncode, "output": text})
        else:
            write(text)
        return exits.OK if said.returncode == 0 else exits.DEFECT
    beside, document = _parted(text)
    sys.stderr.write(beside)
    status = _status_of(said.returncode, document)
    if asked.as_json and document and status in map(exits.status_of, Verdict):
        from spark_audit.summary import FleetSummary

        verdict = FleetSummary.from_text(document).verdict
        write_json({"verdict": verdict.value, **json.loads(document)})
    else:
        write(document)
    return status


def _packed(file: Path) -> Sequence[Path]:
    from spark_audit.adapters.package import UnfitName, write_package

    try:
        return write_package(file)
    except UnfitName as problem:
        raise UsageProblem(f"--out: {problem}") from problem
    except OSError as error:
        raise UsageProblem(f"{file}: {error.strerror or error}") from error


def _settings_of(given: Sequence[str]) -> dict[str, str]:
    settings = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.startswith("spark."):
            raise UsageProblem("--conf: expected spark.NAME=VALUE")  # the rest may be a secret
        if _SECRET.search(name) and not _NO_SECRET.search(name):
            raise UsageProblem(
                f"--conf: {name} looks like a secret, and all users of this machine can read a"
                " command line; put it into spark-defaults.conf, or use a credential provider"
            )
        settings[name] = value
    return settings


def _allowed(uuids: Sequence[str]) -> list[str]:
    """Return the UUIDs that the command line permits, in order."""
    from uuid import UUID

    allowed: set[UUID] = set()
    for each in uuids:
        try:
            allowed.add(UUID(each))
        except ValueError:
            raise UsageProblem(f"--allow-uuid: expected a UUID, found {each}") from None
    return sorted(map(str, allowed))


def _fleet_beside(package: str) -> str:
    """Return the archive of the fleet file beside an archive of the package."""
    from spark_audit.adapters.fleet_archive import ENDING

    return package.removesuffix(".zip") + ENDING


def _expected(fleet: Path) -> "ExpectedFleet":
    """Return what the cluster needs of a fleet file: no account is looked up."""
    from gtid_audit.operands.load_fleet import load_without_accounts
    from spark_audit.adapters.fleet_archive import expected_of

    return expected_of(load_without_accounts(fleet))


def _fleet_written(archive: Path, fleet: "ExpectedFleet") -> None:
    from spark_audit.adapters.fleet_archive import write_fleet_archive

    try:
        write_fleet_archive(archive, fleet)
    except OSError as error:
        raise UsageProblem(f"{archive}: {error.strerror or error}") from error


def _spark_submit(environment: Mapping[str, str]) -> str:
    """Return the spark-submit to run: that of SPARK_HOME, the first in PATH, or PySpark's own.

    Raises UsageProblem if there is none, or if there is no Java for it.
    """
    from spark_audit.adapters.java import JavaMissing, require_java

    try:
        require_java(environment)
    except JavaMissing as missing:
        raise UsageProblem(str(missing)) from missing
    home = environment.get("SPARK_HOME")
    if home:
        named = Path(home) / "bin" / "spark-submit"
        if not named.exists():
            raise UsageProblem(f"SPARK_HOME={home}: there is no bin/spark-submit")
        return str(named)
    found = shutil.which("spark-submit", path=environment.get("PATH", ""))
    if found is not None:
        return found
    own = find_spec("pyspark")
    if own is None or own.origin is None:
        raise UsageProblem(
            f"spark-submit was not found: set SPARK_HOME, add it to PATH, or {INSTALL_SPARK}"
        )
    return str(Path(own.origin).parent / "bin" / "spark-submit")


def _parted(text: str) -> tuple[str, str]:
    """Split the program's output into other text and the document at its end.

    spark-submit merges standard error of a Python driver into standard output (PythonRunner.scala,
    redirectErrorStream).
    """
    start = f"\n{text}".rfind("\n{\n")
    return (text, "") if start < 0 else (text[:start], text[start:])


def _status_of(returned: int, text: str) -> int:
    """Return the exit status of an audit. spark-submit's own errors end in 1, which is WARNING."""
    from spark_audit.summary import FleetSummary, MalformedSummary

    if returned in _NO_VERDICT:
        return returned
    if returned == exits.status_of(Verdict.UNKNOWN) and not text:
        return returned  # a run that was not audited; the reason is on standard error
    try:
        return exits.status_of(FleetSummary.from_text(text).verdict)
    except MalformedSummary:
        warn(f"spark-submit ended with exit status {returned} and without a summary")
        return exits.DEFECT
