"""Which statement finds the candidates of a search.

The choice goes by how many passages the caller may search, and is one of speed alone: every statement holds
the same predicate of who may read (sql/allowed.sql), and each gives the same passages as far as its indexes
allow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from django.db import transaction

from ingestion.embedding.spaces import INDEXED_DIMENSIONS
from ingestion.fusion import Candidate
from ingestion.rarity import Sought, each_alone, rarest, with_added
from ingestion.spellings import MOST_REPLACED, WORTH, stand_ins
from ingestion.statements import rows

Plan = Literal["few", "some", "many"]

CANDIDATE = tuple(field.name for field in fields(Candidate))

DEPTH = 100  # passages that each leg may put forward

# Passages that the caller may search: up to FEW all are looked at, up to SOME all of their vectors.
FEW = 4_000
SOME = 20_000

# From this many passages on, of all together, not every passage with a word of the question is scored, but
# about as many as these numbers say: of all that are fetched, and of those the readable that are scored.
LARGE = 100_000
MOST_FETCHED = 6_000
MOST_SCORED = 2_000

# How much there is is estimated from so many documents, and how frequent words are from so many passages.
PROBES = 1_000
SAMPLED = 1_500

# The index of vectors: how many it looks at before it answers, of how many of the nearest pieces the readable
# are taken (but never fewer than PIECES), and after how many it gives up where hardly any are readable. For
# whoever may read little it looks far in any case; for whoever may read all it would stop too soon.
EF_SEARCH = 300
NEAREST = 500
PIECES = 100
EXACT_PIECES = 400  # more than DEPTH passages have pieces
MOST_SCANNED = 40_000


@dataclass(frozen=True, slots=True)
class Size:
    """How many passages the caller may search, how many there are, and the plan that follows."""

    visible: int
    every: int
    plan: Plan
    dimensions: int

    @property
    def pieces(self) -> int:
        """How many pieces the vector leg takes: of the index, so many that it looks equally far for all."""
        if self.plan != "many":
            return EXACT_PIECES
        return max(PIECES, round(NEAREST * self.visible / max(self.every, self.visible, 1)))


def find_candidates(search: Mapping[str, Any], dimensions: int) -> list[Candidate]:
    """The passages that either leg puts forward for `search`: `user_id`, `words`, those `added` to them (they
    count where they are found), what it is narrowed by, and the vector of `dimensions` with its space.

    Where no readable passage holds a word, a second run seeks what may stand in for it.
    """
    with transaction.atomic():
        visible, every = prepare(search)
        size = Size(visible, every, plan_for(visible, dimensions), dimensions)
        words = [*search["words"], *search["added"]]
        asked = {**search, "words": words, "asked": len(search["words"])}
        alike = [""] * len(words)
        worths = [1.0] * len(search["words"]) + [WORTH] * len(search["added"])
        found = _run({**asked, "otherwise": alike, "worths": worths}, size)
        unknown = found[0]["unknown"] if found else range(1, asked["asked"] + 1)
        for number in [number for number in unknown if number <= asked["asked"]][:MOST_REPLACED]:
            alike[number - 1] = " | ".join(stand_ins(words[number - 1]))
        if visible and any(alike):
            worths = [WORTH if query else worth for query, worth in zip(alike, worths, strict=True)]
            found = _run({**asked, "otherwise": alike, "worths": worths}, size)
        return [Candidate(**{name: row[name] for name in CANDIDATE}) for row in found]


def _run(search: Mapping[str, Any], size: Size) -> list[dict[str, Any]]:
    sought = each_alone(range(1, len(search["words"]) + 1))
    if size.plan != "few" and size.every > LARGE and search["words"]:
        sought = _by_sample(search, size)
    parameters = {
        **search,
        "dimensions": size.dimensions,
        "visible": float(size.visible),
        "depth": DEPTH,
        "pieces": size.pieces,
        "groups": [place for place, group in enumerate(sought.groups) for _ in group],
        "members": [number for group in sought.groups for number in group],
        "estimated": list(sought.shares),
        "shares": list(sought.shares.values()),
    }
    return rows(f"search_{size.plan}", parameters)


def prepare(search: Mapping[str, Any]) -> tuple[int, int]:
    """Set what the statements of this transaction need; how many passages the caller may search, exact up to
    SOME and about twice as many, and how many there are."""
    bounds = {"ef_search": EF_SEARCH, "most_scanned": MOST_SCANNED, "enough": SOME, "probes": PROBES}
    (row,) = rows("prepare", {**search, **bounds})
    return row["visible"], row["every"]


def plan_for(visible: int, dimensions: int) -> Plan:
    """The fastest plan for a caller who may search `visible` passages; longer vectors have no index."""
    if visible <= FEW:
        return "few"
    return "some" if visible <= SOME or dimensions > INDEXED_DIMENSIONS else "many"


def _by_sample(search: Mapping[str, Any], size: Size) -> Sought:
    sampled = rows("sample", {**search, "probes": PROBES, "sampled": SAMPLED})
    held = {frozenset(row["numbers"] or ()): row["passages"] for row in sampled}
    wanted = min(MOST_FETCHED / max(size.every, 1), MOST_SCORED / max(size.visible, 1))
    numbers = range(1, search["asked"] + 1)
    if not held:
        return each_alone(numbers)
    return with_added(rarest(numbers, held, wanted), range(numbers.stop, len(search["words"]) + 1), held)
