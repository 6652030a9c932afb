"""Which statement finds the candidates of a search.

The choice goes by how many passages the caller may search, and is one of speed alone: every statement holds
the same predicate of who may read (sql/allowed.sql), and each gives the same passages as far as its indexes
allow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
MOST_FETCHED = 20_000
MOST_SCORED = 5_000

# The sample that says how frequent words are: documents, passages of each, passages.
SAMPLED_DOCUMENTS = 300
SAMPLED_OF_EACH = 10
MOST_SAMPLED = 3_000

# The index of vectors: how many it looks at before it answers, how many pieces it gives, and after how many
# it gives up where hardly any are readable.
EF_SEARCH = 100
PIECES = 200
EXACT_PIECES = 400  # more than DEPTH passages have pieces
MOST_SCANNED = 40_000


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is. What is visible is counted up to a bound: documents, and their passages."""

    documents: int
    passages: int
    all_documents: int
    all_passages: int


def find_candidates(search: Mapping[str, Any], dimensions: int) -> list[Candidate]:
    """The passages that either leg puts forward for `search`: `user_id`, `words`, what it is narrowed by, and
    the vector of `dimensions` with its space."""
    with transaction.atomic():
        size = prepare(search)
        plan = plan_for(size.passages, dimensions)
        sought = each_alone(range(1, len(search["words"]) + 1))
        if plan != "few" and size.all_passages > LARGE and search["words"]:
            sought = _by_sample(search, size)
        parameters = {
            **search,
            "dimensions": dimensions,
            "depth": DEPTH,
            "pieces": PIECES if plan == "many" else EXACT_PIECES,
            "groups": [place for place, group in enumerate(sought.groups) for _ in group],
            "members": [number for group in sought.groups for number in group],
            "estimated": list(sought.shares),
            "shares": list(sought.shares.values()),
        }
        return [Candidate(**row) for row in rows(f"search_{plan}", parameters)]


def prepare(search: Mapping[str, Any]) -> Size:
    """Set what the statements of this transaction need, and count what the caller may search."""
    bounds = {"ef_search": EF_SEARCH, "most_scanned": MOST_SCANNED, "enough": SOME}
    (row,) = rows("prepare", {**search, **bounds})
    return Size(row["documents"], row["passages"], row["all_documents"], row["all_passages"])


def plan_for(visible: int, dimensions: int) -> Plan:
    """The fastest plan for a caller who may search `visible` passages; longer vectors have no index."""
    if visible <= FEW:
        return "few"
    return "some" if visible <= SOME or dimensions > INDEXED_DIMENSIONS else "many"


def _by_sample(search: Mapping[str, Any], size: Size) -> Sought:
    step = max(size.documents // SAMPLED_DOCUMENTS, size.all_documents // (5 * SAMPLED_DOCUMENTS), 1)
    sampled = rows("sample", {**search, "step": step, "of_each": SAMPLED_OF_EACH, "most": MOST_SAMPLED})
    if not sampled:
        return each_alone(range(1, len(search["words"]) + 1))
    visible = sampled[0]["documents"] * step / max(size.all_documents, 1) * size.all_passages
    wanted = min(MOST_FETCHED / size.all_passages, MOST_SCORED / max(visible, 1))
    held = {frozenset(row["numbers"] or ()): row["passages"] for row in sampled}
    return rarest(range(1, len(search["words"]) + 1), held, wanted)
