"""The own GTIDs of a server: those of its server_uuid."""

import itertools

from compose.native.server import Server


def last_number(server: Server) -> int:
    """Return the highest number of a server's own GTIDs without a tag, 0 if it has none."""
    own = str(server.value("@@GLOBAL.server_uuid"))
    executed = str(server.value("@@GLOBAL.gtid_executed")).replace("\n", "")
    for part in executed.split(","):
        uuid, *intervals = part.strip().split(":")
        if uuid == own:
            # A tag and its intervals come after those without a tag: UUID:1-5:tag:1-2.
            untagged = itertools.takewhile(lambda text: text[0].isdigit(), intervals)
            return max((int(text.rpartition("-")[2]) for text in untagged), default=0)
    return 0
