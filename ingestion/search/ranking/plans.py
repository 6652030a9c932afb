"""Plans to find the candidates of a search (sql/search.sql).

Which plan is used depends on the number of passages that the caller may search, and on the dimensions of the
vectors. The plan only affects speed: all plans have the same access condition, and the same results as far as
their indexes allow.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jiter
from django.utils import timezone

from chatsite import metrics, traces
from chatsite.db.sql_files import PreparedStatement, Rows, prepared, rows, rows_of_each, statement
from ingestion.embedding.spaces import INDEXED_DIMENSIONS
from ingestion.search.stems import stems_by_language
from ingestion.search.translations import translations_of_form

from .fusion import Candidate
from .query_expansion import (
    EVERYDAY_WEIGHT,
    EXPANSION_WEIGHT,
    MAX_EXPANDED,
    SHORT_QUESTION,
    alternative_spellings,
    any_of,
)
from .term_selection import (
    Sample,
    TermGroups,
    merged_samples,
    select_groups,
    single_terms,
    with_rare_terms,
)

Plan = Literal["scan", "mixed", "indexed"]

DEPTH = 100  # maximum number of candidates found by words, and of candidates found by vectors

# With up to MAX_SCAN readable passages, all are scored; with up to MAX_MIXED, all of their vectors are
# compared.
MAX_SCAN = 4_000
MAX_MIXED = 20_000

# In a corpus of more than LARGE_CORPUS passages, not every passage with a word of the question is scored. The
# three limits are, in this order: passages fetched; readable passages scored; and, if rare words find hardly
# any passage, passages with common words that are scored in each language.
LARGE_CORPUS = 100_000
MAX_FETCHED = 2_000
MAX_SCORED = 700
MAX_COMMON = 300

# These limits apply to a corpus of up to STEADY_SIZE passages. For a larger corpus they grow, because fixed
# limits would leave out more and more of the best passages. For questions of SHORT words, they grow in
# proportion to the corpus, up to MAX_GROWTH times; for longer questions less, because these distinguish
# passages better; for shorter ones more, except MAX_FETCHED (see `Survey.growth` and `Survey.sought`).
STEADY_SIZE = 200_000
MAX_GROWTH = 5
SHORT = 4
# With up to this many readable passages (times the growth for SHORT words), words are looked up in these
# passages instead of in the index of words (see `Survey.by_documents`).
MAX_BY_DOCUMENTS = 4_000

# The number of readable passages is estimated from PROBES documents if at least MIN_PROBED of them are
# readable, and word frequencies from SAMPLED passages.
PROBES = 1_000
MIN_PROBED = 20
SAMPLED = 1_500
# In a corpus of more than COUNTED_FROM passages, for callers who may read more than MAX_MIXED of them, the
# least common words are also counted in every 17th passage: as many words as occur in about MAX_COUNTED of
# these passages. In a smaller corpus, counting would take as much time as it saves.
COUNTED_FROM = 300_000
COUNTED_EVERY = 17
MAX_COUNTED = 2_500
MEASURED = 300  # the mean length of this many passages serves as that of all passages
MAX_SELDOM = 50  # passages inspected for each word that the sample lacks, to find a readable one

# A scan of the vector index reads at least EF_SEARCH entries, and stops after MAX_SCANNED if hardly any of
# them are readable. It takes as many pieces (parts of passages, each with a vector) as are probably readable
# among the NEAREST ones, but at least PIECES. For callers who may read little, the scan is long anyway;
# EF_SEARCH makes it as long for callers who may read everything.
EF_SEARCH = 300
NEAREST = 500
PIECES = 100
EXACT_PIECES = 400  # nearest pieces that are considered if all vectors are compared
MAX_SCANNED = 40_000
PLANNER = {"ef_search": EF_SEARCH, "max_scanned": MAX_SCANNED}

# In a corpus of at most SMALL_CORPUS passages, scanning all takes less time than planning the statement. If
# no NARROWING parameter is set, a database session therefore reuses PostgreSQL's plan for all searches with
# the same values of the PLANNED parameters, whatever their words.
SMALL_CORPUS = MAX_SCAN
NARROWING = ("scoped", "excluding", "to_person", "to_groups", "include_category", "exclude_category")
PLANNED = (
    *NARROWING,
    "plan",
    "dimensions",
    "depth",
    "pieces",
    "by_documents",
    "with_vectors",
    "with_nearest",
)
_every: list[int] = []  # number of all passages in this process's last survey; only for `_for_corpus`


@dataclass(frozen=True, slots=True)
class Survey:
    """Estimates for one search of one caller.

    `visible` is the number of readable passages, `every` that of all passages. In a large corpus, `held` says
    for sets of the search's words how many of the sampled readable passages have exactly these words.
    `mean_length` is the mean number of different words in a passage, 0 if unknown. `absent` has the numbers
    of the question's words that no readable passage has; it is only known in a large or a small corpus.
    """

    visible: int
    every: int
    held: Sample
    mean_length: float = 0.0
    absent: Sequence[int] = ()

    def plan(self, dimensions: int) -> Plan:
        """The fastest plan for vectors of `dimensions`.

        Above INDEXED_DIMENSIONS there is no vector index.
        """
        if self.visible <= MAX_SCAN:
            return "scan"
        return "mixed" if self.visible <= MAX_MIXED or dimensions > INDEXED_DIMENSIONS else "indexed"

    @property
    def is_sampled(self) -> bool:
        """Whether word frequencies of a sample are known."""
        return self.every > LARGE_CORPUS and self.visible > MAX_SCAN

    def pieces(self, plan: Plan) -> int:
        """How many of the nearest pieces to take, so that all callers' index scans are equally long."""
        if plan != "indexed":
            return EXACT_PIECES
        return max(PIECES, round(NEAREST * self.visible / max(self.every, self.visible, 1)))

    def growth(self, asked: int = SHORT) -> float:
        """The factor by which the limits for STEADY_SIZE grow, for a question of `asked` words."""
        return float(min(max(self.every / STEADY_SIZE, 1), MAX_GROWTH) ** (SHORT / max(asked, 1)))

    def by_documents(self, plan: Plan) -> bool:
        """Whether to look for words in the readable documents instead of the index of words.

        This is better if hardly any passage that the index finds is readable.
        """
        return (
            plan == "mixed" and self.every > STEADY_SIZE and self.visible <= MAX_BY_DOCUMENTS * self.growth()
        )

    def readable_share(self, plan: Plan) -> float:
        """The share of readable passages among those that the index of words finds."""
        return 1.0 if self.by_documents(plan) else self.visible / max(self.every, self.visible, 1)

    def max_common(self, asked: int, plan: Plan) -> int:
        """How many readable passages with common words are scored at most, if rare words find hardly any."""
        fetched = MAX_FETCHED * self.growth() * self.readable_share(plan)
        return round(max(MAX_COMMON, min(MAX_COMMON * self.growth(asked), fetched)))

    def sought(self, asked: int, words: int, plan: Plan) -> TermGroups:
        """The groups of words that select the passages to score.

        Words have the numbers 1 to `words`; the first `asked` of them are from the question, the others were
        added.
        """
        if not self.held:
            return single_terms(range(1, words + 1))
        wanted = MAX_SCORED * self.growth(asked) / max(self.visible, 1)
        if not self.by_documents(plan):
            wanted = min(wanted, MAX_FETCHED * self.growth(max(asked, SHORT)) / max(self.every, 1))
        return with_rare_terms(
            select_groups(range(1, asked + 1), self.held, wanted), range(asked + 1, words + 1), self.held
        )


def with_words(search: Mapping[str, Any]) -> dict[str, Any]:
    """`search`, with the parameters that sql/search.sql needs for its words.

    `search` has the question's `words` and how often each occurs (`times`), `added` words with their weights,
    and `everyday` words, each with alternative phrases.
    """
    count = len(search["words"])
    everyday_weight = EVERYDAY_WEIGHT * min(1, SHORT_QUESTION / max(count, 1))
    everyday = [any_of(phrases) for phrases in search["everyday"].values()]
    words = [*search["words"], *search["added"], *map(" ".join, search["everyday"].values())]
    alike = [""] * (len(words) - len(everyday)) + everyday
    worths = [1.0] * count + list(search["added"].values()) + [everyday_weight] * len(everyday)
    times = [*search["times"], *[1.0] * (len(words) - count)]
    # For phrases that replace an everyday word: the word's number, to compare frequencies; otherwise 0.
    places = {word: number for number, word in enumerate(search["words"], 1)}
    stands = [0] * (len(words) - len(everyday)) + [places.get(word, 0) for word in search["everyday"]]
    return {
        **search,
        "words": words,
        "otherwise": alike,
        "worths": worths,
        "stems": json.dumps(stems_by_language(words)),
        "times": times,
        "stands": stands,
        "asked": count,
    }


def find_candidates(
    search: Mapping[str, Any], dimensions: int, surveyed: Survey
) -> tuple[list[Candidate], int]:
    """The candidates for a search, and the estimated number of passages that were searched.

    `search` has `user_id`, the parameters of `with_words`, filters, and the vector with its space. Words that
    no readable passage has get substitutes: at once if the survey has noticed them, otherwise in a second
    query. If the first query finds nothing, all words get substitutes.
    """
    started = time.monotonic()
    first = {**search, "with_nearest": search["with_vectors"], "kept": []}
    if substituted := _with_substitutes(first, surveyed.absent):
        first = substituted
        if surveyed.is_sampled:  # the new words change the combinations in the sample
            surveyed = survey(first)
    found, missing = _run(first, dimensions, surveyed)
    unknown = missing if found else range(1, search["asked"] + 1)
    if second := _with_substitutes(first, unknown):
        # Keep all candidates, so that those found by vectors need not be searched for again.
        second |= {"with_nearest": False, "kept": [each[0] for each in found]}
        if surveyed.is_sampled:
            surveyed = survey(second)
        found, _ = _run(second, dimensions, surveyed)
    plan, seconds = surveyed.plan(dimensions), time.monotonic() - started
    metrics.SEARCH_SECONDS.observe(seconds, plan)
    traces.record("search", seconds, chatsite__search__plan=plan, chatsite__search__found=len(found))
    return [*map(Candidate._make, found)], surveyed.visible


def _with_substitutes(search: Mapping[str, Any], unknown: Iterable[int]) -> dict[str, Any] | None:
    """`search` with other spellings and translations of the words with the numbers `unknown`.

    Only words of the question itself get substitutes, at most MAX_EXPANDED of them. None if this changes
    nothing.
    """
    alike, worths = [*search["otherwise"]], [*search["worths"]]
    for number in [number for number in unknown if number <= search["asked"]][:MAX_EXPANDED]:
        word = search["words"][number - 1]
        others = [*alternative_spellings(word), *(f"'{each}'" for each in translations_of_form(word))]
        alike[number - 1] = " | ".join(others)
        worths[number - 1] = EXPANSION_WEIGHT if others else 1.0
    return {**search, "otherwise": alike, "worths": worths} if alike != search["otherwise"] else None


def prepare() -> None:
    """Set PostgreSQL's parameters for searches in the current transaction (sql/prepare.sql)."""
    rows("prepare", PLANNER | {"plan_cache_mode": "force_custom_plan"})


def survey(search: Mapping[str, Any]) -> Survey:
    """Make estimates for `search` and its caller (sql/survey.sql)."""
    return surveyed_after([], search)[1]


def surveyed_after(before: Sequence[str], search: Mapping[str, Any]) -> tuple[list[Rows], Survey]:
    """Like :func:`survey`, in one message with the statements `before`.

    The rows of these statements are returned first.
    """
    bounds = {
        "probes": PROBES,
        "min_probed": MIN_PROBED,
        "sampled": SAMPLED,
        "measured": MEASURED,
        "large": LARGE_CORPUS,
        "max_scan": MAX_SCAN,
        "counted_from": COUNTED_FROM,
        "max_mixed": MAX_MIXED,
        "max_counted": MAX_COUNTED,
        "max_seldom": MAX_SELDOM,
    }
    every = _every[0] if _every else LARGE_CORPUS
    surveying = _for_corpus("survey", every, search, {name: search[name] for name in NARROWING} | bounds)
    *found, surveyed = planned_rows(before, surveying, {**search, **bounds})
    size = surveyed[0]
    _every[:] = [max(size["every"], size["visible"])]
    rough, exact = (
        {
            frozenset(row["numbers"] or ()): float(row["passages"])
            for row in surveyed
            if row["passages"] and row["counted"] == counted
        }
        for counted in (False, True)
    )
    held = merged_samples(rough, exact, size["uncommon"], size["visible"] / COUNTED_EVERY)
    return found, Survey(size["visible"], size["every"], held, float(size["mean_length"]), size["absent"])


def _run(
    search: Mapping[str, Any], dimensions: int, surveyed: Survey
) -> tuple[list[list[Any]], Sequence[int]]:
    """The fields of each candidate, and the numbers of the words that no readable passage has."""
    if not surveyed.visible:
        return [], ()
    plan = surveyed.plan(dimensions)
    sought = surveyed.sought(search["asked"], len(search["words"]), plan)
    groups = [*((group, False) for group in sought.groups), *((group, True) for group in sought.common)]
    parameters = {
        **search,
        "plan": plan,
        "dimensions": dimensions,
        "visible": float(surveyed.visible),
        "every": surveyed.every,
        "mean_length": surveyed.mean_length,
        "depth": DEPTH,
        "pieces": surveyed.pieces(plan),
        "groups": [place for place, (group, _) in enumerate(groups) for _ in group],
        "members": [number for group, _ in groups for number in group],
        "common": [is_common for group, is_common in groups for _ in group],
        "max_common": surveyed.max_common(search["asked"], plan),
        "by_documents": surveyed.by_documents(plan),
        "readable_share": surveyed.readable_share(plan),
        "estimated": list(sought.shares),
        "shares": list(sought.shares.values()),
    }
    every = max(surveyed.every, surveyed.visible)
    searching = _for_corpus("search", every, search, {name: parameters[name] for name in PLANNED})
    ((row,),) = planned_rows([], searching, parameters)
    return jiter.from_json(row["candidates"].encode()), row["unknown"]


def _for_corpus(name: str, every: int, search: Mapping[str, Any], constants: Mapping[str, Any]) -> str:
    """The statement with this name; unfiltered searches of a small corpus are planned once per session."""
    if every > SMALL_CORPUS or any(search[each] for each in NARROWING):
        return statement(name)
    return prepared(name, constants=tuple(constants.items()))


def planned_rows(before: Sequence[str], text: str, parameters: Mapping[str, Any]) -> list[Rows]:
    """Run `before`, then sql/prepare.sql, which configures the planner, and `text`.

    Return the rows of each statement in `before`, and of `text`.
    """
    kind = "generic" if isinstance(text, PreparedStatement) else "custom"
    planner = {**PLANNER, "plan_cache_mode": f"force_{kind}_plan", "today": timezone.localdate()}
    *found, _, last = rows_of_each([*before, statement("prepare"), text], {**parameters, **planner})
    return [*found, last]
