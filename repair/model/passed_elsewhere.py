"""What a step must not deliver to a server below it, whose applier has passed it (H8).

A server that was reset has the rows of what its sets do not have: RESET BINARY LOGS AND GTIDS
emptied gtid_executed, and its channels count the transactions as received. The channel that
received them sends them no more. Another channel of the server does, as soon as its source gets
them:

    a ─▶ b (stopped) ─▶ d      d was reset: its channel from c has received and passed a:1-9
      └▶ c ───────────▶ d      the start of b brings a:6-9 to d, which applies them again

The benign case looks the same: d skipped them (RELAY_LOG_POS), and their rows are missing. So the
H8 of that server is answered first, by its own step, for which its rows are compared. Only empty
transactions that the step itself commits may arrive: they change no rows (forgotten_below.py).
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.model.actions import Action, InjectEmpty
from repair.model.replication_model import Model


def nothing_passed_arrives_elsewhere(before: Model, after: Model, action: Action) -> Iterator[str]:
    """Deliver nothing to another server that one of its appliers has passed."""
    empty = action.gtids if isinstance(action, InjectEmpty) else GtidSet()
    for name in after.changed_since(before):
        server = before[name]
        if name == action.server:
            continue
        passed = GtidSet.union_of(channel.passed for channel in server.channels)
        met = (after[name].executed - server.executed - empty) & passed
        if met:
            yield (
                f"{name} would get {met.shortened()}, which its applier has passed without"
                " executing it (H8): if its rows are there, they would be applied a second time."
                f" Answer the H8 of {name} first, then audit and plan again"
            )
