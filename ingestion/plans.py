"""Which statement finds the candidates of a search.

The choice goes by how many passages the caller may search, and is one of speed alone: every statement holds
the same predicate of who may read (sql/allowed.sql), and each gives the same passages as far as its indexes
allow.
"""

from collections.abc import Mapping
from typing import Any, Literal

from django.db import transaction

from ingestion.embedding.spaces import INDEXED_DIMENSIONS
from ingestion.fusion import Candidate
from ingestion.rarity import Sought, each_alone, rarest
from ingestion.statements import rows

Plan = Literal["few", "some", "many"]

DEPTH = 100  # passages that each leg may put forward

# Passages that the caller may search: up to FEW all are looked at, up to SOME all of their vectors.
FEW = 4_000
SOME = 20_000

# From this many passages on, of all together, not every passage with a word of the question is scored, but
# about as many as these numbers say: of all that are fetched, and of those the readable that are scored.
LARGE = 100_000
MOST_FETCHED = 10_000
MOST_SCORED = 3_000

# How much there is is estimated from so many documents, and how frequent words are from so many passages.
PROBES = 1_000
SAMPLED = 1_500

# The index of vectors: how many it looks at before it answers, how many pieces it gives, and after how many
# it gives up where hardly any are readable.
EF_SEARCH = 300
PIECES = 150
EXACT_PIECES = 400  # more than DEPTH passages have pieces
MOST_SCANNED = 40_000


def find_candidates(search: Mapping[str, Any], dimensions: int) -> list[Candidate]:
    """The passages that either leg puts forward for `search`: `user_id`, `words`, what it is narrowed by, and
    the vector of `dimensions` with its space."""
    with transaction.atomic():
        visible, every = prepare(search)
        plan = plan_for(visible, dimensions)
        sought = each_alone(range(1, len(search["words"]) + 1))
        if plan != "few" and every > LARGE and search["words"]:
            sought = _by_sample(search, visible, every)
        parameters = {
            **search,
            "dimensions": dimensions,
            "visible": float(visible),
            "depth": DEPTH,
            "pieces": PIECES if plan == "many" else EXACT_PIECES,
            "groups": [place for place, group in enumerate(sought.groups) for _ in group],
            "members": [number for group in sought.groups for number in group],
            "estimated": list(sought.shares),
            "shares": list(sought.shares.values()),
        }
        return [Candidate(**row) for row in rows(f"search_{plan}", parameters)]


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


def _by_sample(search: Mapping[str, Any], visible: int, every: int) -> Sought:
    numbers = range(1, len(search["words"]) + 1)
    sampled = rows("sample", {**search, "probes": PROBES, "sampled": SAMPLED})
    held = {frozenset(row["numbers"] or ()): row["passages"] for row in sampled}
    wanted = min(MOST_FETCHED / max(every, 1), MOST_SCORED / max(visible, 1))
    return rarest(numbers, held, wanted) if held else each_alone(numbers)
