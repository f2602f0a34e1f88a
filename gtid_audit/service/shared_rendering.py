"""Metrics as text, made once for all scrapes that arrive together.

To render a large fleet takes longer than to send it. Scrapes within SHARED_SECONDS of a rendering
get the same bytes, and those that arrive while one is made wait for it. It is made in a thread.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from gtid_audit import clock

SHARED_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Rendered:
    """The metrics in one format."""

    content_type: str
    body: bytes
    made_at: float  # by the monotonic clock


class SharedRendering:
    """The last rendering of each format. Used by the thread of one event loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._made: dict[str, Rendered] = {}
        self._lock = asyncio.Lock()

    async def metrics(self, accept: str) -> Rendered:
        """Return the metrics in the format that a header Accept prefers."""
        encode, content_type = choose_encoder(accept)
        if (found := self._recent(content_type)) is not None:
            return found
        async with self._lock:
            if (found := self._recent(content_type)) is not None:
                return found
            body = await asyncio.to_thread(encode, self._registry)
            made = Rendered(content_type, body, clock.monotonic_seconds())
            self._made[content_type] = made
            return made

    def _recent(self, content_type: str) -> Rendered | None:
        found = self._made.get(content_type)
        if found is None or clock.monotonic_seconds() - found.made_at > SHARED_SECONDS:
            return None
        return found
