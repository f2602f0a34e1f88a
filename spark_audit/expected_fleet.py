"""The contents of a fleet file that an audit of stored runs needs: clusters, addresses, policy.

1. There are no accounts. The text of a fleet goes to a Spark cluster, and to each of its executors:
   no user, password, or place of a password is in it.
2. The same fleet gives the same text. Reading is strict (topology/documents/record_codec.py).
"""

import json
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from topology.documents.label_records import LABELS, Labels
from topology.documents.record_codec import (
    FLAG,
    NUMBER,
    TEXT,
    UUID_TEXT,
    Codec,
    MalformedRecord,
    Plain,
    RecordShape,
    many,
    text_pair,
    through_text,
)
from topology.facts.accepted import AcceptedRepair, accepted_from_text
from topology.facts.accepted_findings import AcceptedFinding, accepted_finding_from_text
from topology.policy import LIMITS, Policy

LAYOUT: Final = 1


@dataclass(frozen=True, slots=True)
class ExpectedServer:
    """One server: its name in the file, and its address."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ExpectedCluster:
    """One cluster: its servers, the names of its consumers, and its labels."""

    name: str
    servers: tuple[ExpectedServer, ...]
    consumers: tuple[str, ...] = ()
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class ExpectedFleet:
    """All clusters of a fleet file, in order of name, and its policy."""

    clusters: tuple[ExpectedCluster, ...]
    policy: Policy

    def to_text(self) -> str:
        """Write the fleet as one JSON document."""
        document = {"layout": LAYOUT, **FLEET.write(self)}
        return json.dumps(document) + "\n"

    @classmethod
    def from_text(cls, text: str) -> "ExpectedFleet":
        """Read what `to_text` writes. Raises MalformedRecord."""
        try:
            found: Plain = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise MalformedRecord("", f"not JSON: {error}") from error
        if not isinstance(found, dict) or found.pop("layout", None) != LAYOUT:
            raise MalformedRecord("layout", f"expected a fleet of layout {LAYOUT}")
        return FLEET.read(found)


_UUIDS: Final = many(UUID_TEXT)
_TEXTS: Final = many(TEXT)
_ALLOWED: Final[Codec[frozenset[UUID]]] = Codec(
    lambda uuids: _UUIDS.write(tuple(sorted(uuids))),
    lambda plain: frozenset(_UUIDS.read(plain)),
    _UUIDS.plain_type,
)
_ADDRESSES: Final[Codec[frozenset[str]]] = Codec(
    lambda addresses: _TEXTS.write(tuple(sorted(addresses))),
    lambda plain: frozenset(_TEXTS.read(plain)),
    _TEXTS.plain_type,
)
_ACCEPTED: Final = through_text(
    write=AcceptedRepair.to_text, parse=accepted_from_text, expected="an accepted repair"
)
_ACCEPTED_FINDING: Final = through_text(
    write=AcceptedFinding.to_text, parse=accepted_finding_from_text, expected="an accepted finding"
)

POLICY: Final = RecordShape(
    Policy,
    {
        "allowed_uuids": _ALLOWED,
        **dict.fromkeys(LIMITS, NUMBER),
        "definitions": FLAG,
        "levels": many(text_pair("code", "severity")),
        "external_sources": _ADDRESSES,
        "accepted": many(_ACCEPTED),
        "reconcile": _TEXTS,
        "accepted_findings": many(_ACCEPTED_FINDING),
    },
)
SERVER: Final = RecordShape(ExpectedServer, {"name": TEXT, "host": TEXT, "port": NUMBER})
CLUSTER: Final = RecordShape(
    ExpectedCluster,
    {"name": TEXT, "servers": many(SERVER.codec), "consumers": _TEXTS, "labels": LABELS},
)
FLEET: Final = RecordShape(ExpectedFleet, {"clusters": many(CLUSTER.codec), "policy": POLICY.codec})
