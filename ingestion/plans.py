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
from ingestion.statements import rows

Plan = Literal["few", "some", "many"]

DEPTH = 100  # passages that each leg may put forward
SHORTLIST = 400  # passages with the rarest words, of which all words decide which are put forward

# Passages that the caller may search: up to FEW all are looked at, up to SOME all of their vectors.
FEW = 2_500
SOME = 20_000

# From this many passages on, of all together, only the rarest words of a question are looked up, until they
# lead to this share of the passages; the others count where a passage was found.
LARGE = 100_000
BUDGET = 0.25
SAMPLED = 200  # documents that say how frequent the words are

# The index of vectors: how much it looks at before it answers, how many pieces it gives, and after how many
# it gives up where hardly any are readable.
EF_SEARCH = 100
PIECES = 200
EXACT_PIECES = 400  # more than DEPTH passages have pieces
MOST_SCANNED = 40_000


def find_candidates(search: Mapping[str, Any], dimensions: int) -> list[Candidate]:
    """The passages that either leg puts forward for `search`: `user_id`, `words`, what it is narrowed by, and
    the vector of `dimensions` with its space."""
    settings = {"ef_search": EF_SEARCH, "most_scanned": MOST_SCANNED, "most_counted": SOME + 1}
    with transaction.atomic():
        (found,) = rows("prepare", {**search, **settings})
        plan = plan_for(found["visible"], dimensions)
        parameters = {
            **search,
            "dimensions": dimensions,
            "depth": DEPTH,
            "shortlist": DEPTH if plan == "few" else SHORTLIST,
            "pieces": PIECES if plan == "many" else EXACT_PIECES,
            "sampled": SAMPLED,
            "budget": BUDGET if found["total"] > LARGE else 1,
        }
        return [Candidate(**row) for row in rows(f"search_{plan}", parameters)]


def plan_for(visible: int, dimensions: int) -> Plan:
    """The fastest plan for a caller who may search `visible` passages; longer vectors have no index."""
    if visible <= FEW:
        return "few"
    return "some" if visible <= SOME or dimensions > INDEXED_DIMENSIONS else "many"
