"""Makes inputs of what real servers write: `python -m tests.fuzz.seeds`, then `distil`.

Each file's head is one input, and each of its groups of events another. They go to .cache/fuzz,
from where `python -m tests.fuzz.run binlog distil` takes what reaches something new.
"""

from collections.abc import Iterable, Iterator

from binlog.decode import FIRST_POSITION
from binlog.events import Event, GtidLog
from binlog.scan import scan_events
from compose.native.provision import MODERN, OLD, provision
from tests.binlog.material import SCRIPT_56, SCRIPT_97, written_by
from tests.fuzz.binlogs import FILE, REPAIRED, WITH_HEAD
from tests.fuzz.binlogs import OLD as OLD_HEAD
from tests.fuzz.run import INPUT_BYTES_MAX, WORK, name_of


def main() -> None:
    """Start a server of each kind, have it write what the tests of the reader read, and cut it."""
    folder = WORK / "binlog"
    folder.mkdir(parents=True, exist_ok=True)
    for release, script in ((MODERN, SCRIPT_97), (OLD, SCRIPT_56)):
        with written_by(provision(release), script) as written:
            for seed in seeds(path.read_bytes() for path in written.files):
                (folder / name_of(seed)).write_bytes(seed)


def seeds(logs: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the inputs of some files that are not too long."""
    for content in logs:
        group: list[Event] = []
        for event in scan_events([content], file=FILE):
            if isinstance(event.body, GtidLog) and group:
                yield from _seed(content, group)
                group = []
            group.append(event)
        yield from _seed(content, group)


def _seed(content: bytes, group: list[Event]) -> Iterator[bytes]:
    if group[0].start == FIRST_POSITION:
        data = bytes((REPAIRED,)) + content[: group[-1].end]
    else:  # the options bring a head
        is_old = b"5.6.24" in content[:80]
        options = WITH_HEAD | REPAIRED | (OLD_HEAD if is_old else 0)
        data = bytes((options,)) + content[group[0].start : group[-1].end]
    if len(data) <= INPUT_BYTES_MAX["binlog"]:
        yield data


if __name__ == "__main__":
    main()
