"""Metrics as text, made once for all scrapes until an audit changes them.

To render a large fleet takes longer than to send it.

1. A rendering is kept with the facts that it shows. Metrics have no ages (they are times), so it
   holds until another audit has ended, a cluster has become stale, or the service has loaded its
   files or read its journal again.
2. Facts are compared at most every SHARED_SECONDS. Until then scrapes get the same bytes.
3. A rendering is made in a thread. Scrapes that arrive before it has ended wait for it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from gtid_audit import clock
from gtid_audit.service.cluster_results import ServiceResults
from gtid_audit.service.procedure_source import ProceduresRead

SHARED_SECONDS: Final = 0.5
_Encode: TypeAlias = Callable[[CollectorRegistry], bytes]
_encoder_of = lru_cache(maxsize=64)(choose_encoder)  # to parse a header Accept takes 50 µs


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """All that the metrics are made of, at one moment."""

    results: ServiceResults
    procedures: ProceduresRead

    def show_the_same_as(self, earlier: "MetricFacts") -> bool:
        """Return whether the metrics would be the same."""
        return self.procedures == earlier.procedures and self.results.show_the_same_as(
            earlier.results
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """The metrics in one format."""

    content_type: str
    body: bytes
    facts: MetricFacts  # not later than those that are shown
    compared_at: float  # when these were the facts; by the monotonic clock


class SharedRendering:
    """The last rendering of each format. Used by the thread of one event loop."""

    def __init__(self, registry: CollectorRegistry, facts: Callable[[], MetricFacts]) -> None:
        self._registry = registry
        self._facts = facts
        self._made: dict[str, Rendered] = {}
        self._making: dict[str, asyncio.Task[Rendered]] = {}

    async def metrics(self, accept: str) -> Rendered:
        """Return the metrics in the format that a header Accept prefers."""
        encode, content_type = _encoder_of(accept)
        making = self._making.get(content_type)
        if making is None:
            if (found := self._recent(content_type)) is not None:
                return found
            making = asyncio.create_task(self._make(encode, content_type))
            self._making[content_type] = making
            making.add_done_callback(lambda _: self._making.pop(content_type))
        return await asyncio.shield(making)  # a client that ends its wait ends only that

    async def _make(self, encode: _Encode, content_type: str) -> Rendered:
        facts = self._facts()  # before: what changes while the text is made is noticed afterwards
        body = await asyncio.to_thread(self._made_by, encode, self._registry)
        made = Rendered(content_type, body, facts, clock.monotonic_seconds())
        self._made[content_type] = made
        return made

    @staticmethod
    def _made_by(encode: _Encode, registry: CollectorRegistry) -> bytes:
        return encode(registry)

    def recent(self, accept: str) -> Rendered | None:
        """Return the metrics in the preferred format, if nothing has changed since."""
        content_type = _encoder_of(accept)[1]
        return None if content_type in self._making else self._recent(content_type)

    def _recent(self, content_type: str) -> Rendered | None:
        found = self._made.get(content_type)
        now = clock.monotonic_seconds()
        if found is None or now - found.compared_at <= SHARED_SECONDS:
            return found
        if not self._facts().show_the_same_as(found.facts):
            return None
        found = replace(found, compared_at=now)
        self._made[content_type] = found
        return found
