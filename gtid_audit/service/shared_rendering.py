"""Metrics as text, made once for all scrapes that arrive together.

To render a large fleet takes longer than to send it. Scrapes within SHARED_SECONDS of a rendering
get the same bytes, and those that arrive while one is made wait for it. It is made in a thread.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from gtid_audit import clock

SHARED_SECONDS: Final = 0.5
_Encode: TypeAlias = Callable[[CollectorRegistry], bytes]
_encoder_of = lru_cache(maxsize=64)(choose_encoder)  # to parse a header Accept takes 50 µs


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
        self._making: dict[str, asyncio.Task[Rendered]] = {}

    async def metrics(self, accept: str) -> Rendered:
        """Return the metrics in the format that a header Accept prefers."""
        encode, content_type = _encoder_of(accept)
        if (found := self._recent(content_type)) is not None:
            return found
        making = self._making.get(content_type)
        if making is None:
            making = asyncio.create_task(self._make(encode, content_type))
            self._making[content_type] = making
            making.add_done_callback(lambda _: self._making.pop(content_type))
        return await asyncio.shield(making)  # a client that ends its wait ends only that

    async def _make(self, encode: _Encode, content_type: str) -> Rendered:
        body = await asyncio.to_thread(self._made_by, encode, self._registry)
        made = Rendered(content_type, body, clock.monotonic_seconds())
        self._made[content_type] = made
        return made

    @staticmethod
    def _made_by(encode: _Encode, registry: CollectorRegistry) -> bytes:
        return encode(registry)

    def recent(self, accept: str) -> Rendered | None:
        """Return the metrics in the preferred format, if they were made just now."""
        return self._recent(_encoder_of(accept)[1])

    def _recent(self, content_type: str) -> Rendered | None:
        found = self._made.get(content_type)
        if found is None or clock.monotonic_seconds() - found.made_at > SHARED_SECONDS:
            return None
        return found
