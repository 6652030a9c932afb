"""Search: the most relevant passages for a question among those that the caller may read.

All statements on documents and passages apply the rights with the same SQL function
(ingestion_readable_entries); nothing is filtered by rights afterwards. All plans for finding candidates
(ranking/plans.py) have the same access condition.
"""

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db.models import Sum
from django.utils import timezone

from chatsite.accounts.principal import Principal, failure_name
from chatsite.db.sql_files import Rows, prepared, rows, rows_of_each, statement
from ingestion.embedding import (
    EmbeddingError,
    active_space,
    embed_question,
    embedder_of,
    is_built_in,
    is_english_only,
    is_from_folder,
)
from ingestion.embedding.embedder import unit
from ingestion.embedding.spaces import ACTIVE
from ingestion.glossary.lookup import Expansion, Lookup
from ingestion.indexing.passages import vector_text
from ingestion.models import Document, EmbeddingSpace
from ingestion.parsing.language import common_words

from .definitions import defined_thing, defines
from .labels import (
    Uniqueness,
    cleaned_label,
    source_name,
    storable,
)
from .ranking.fusion import (
    CLOSE,
    CLOSE_SENTENCES,
    PAIRS,
    SENTENCE_WEIGHTS,
    FoundBy,
    Mode,
    Ranked,
    Ranking,
    VectorTrust,
    rank,
    rerank,
    settle,
)
from .ranking.plans import find_candidates, survey, surveyed_after, with_words
from .ranking.query_expansion import EXPANSION_WEIGHT, joined_words
from .ranking.rerank import rerank_scores
from .rough_stems import held_stems
from .scopes import documents_in
from .stems import LANGUAGES, german_stem
from .stopwords import without_question_words
from .tokens import (
    has_unspaced_script,
    plain_words,
    search_text,
    units,
)
from .translations import in_english, language_of, question_in_english, without_grammar
from .word_variants import variants_of

logger = logging.getLogger(__name__)

Loaded = dict[int, Mapping[str, Any]]  # rows of sql/load_passages.sql by passage id

MAX_WORDS = 64  # distinct words of a question; each one costs an index lookup
MAX_EMBEDDED_CHARACTERS = 4_000  # characters of a question that are embedded
MAX_PASSAGES = 50  # passages of one search result
UNITS_OF_A_WORD = 2  # characters that count as a word in scripts without spaces
CONTEXT_WEIGHT = 0.3  # weight of the words, and of the vector, of earlier questions
DEFINING = 2  # passages with a definition that are moved to the top
BEST_PLACE = 3  # passages of the best page or section that are not moved behind other places
# If the best passage for a German question is not English, the result of the translated question is preferred
# only if its best passage is English, and its fit is at least FIT_IN_ENGLISH, and FITTER_IN_ENGLISH times the
# fit for the German question.
FIT_IN_ENGLISH = 5.0
FITTER_IN_ENGLISH = 2.0
NEARLY = 0.75  # minimum score of passages to which BEST_PLACE applies, as a share of the best score
FEW_PASSAGES = 2_000  # up to this many readable passages, the words of German ones are searched for compounds
MIN_END, MIN_FIRST = 5, 4  # letters of a word that ends a compound, and of the part before it
MAX_COMPOUNDS = 6  # compounds that are added for a word
COMPARED = 30  # passages whose texts are compared with the question word by word

# Languages of documents for which the vectors of an English model, such as the built-in one, are used.
ENGLISH = frozenset({"english", "simple"})
BUILT_IN_TRUST = VectorTrust(weight=0.4, languages=ENGLISH, close=CLOSE)
SERVER_TRUST = VectorTrust(weight=0.5, languages=frozenset())
FOLDER_TRUST = replace(SERVER_TRUST, close=CLOSE_SENTENCES, weights=SENTENCE_WEIGHTS)
ENGLISH_FOLDER_TRUST = replace(FOLDER_TRUST, languages=ENGLISH)
NO_WORDS: dict[str, Any] = {"words": [], "times": [], "added": {}, "everyday": {}}
NO_TRUST = VectorTrust(weight=0, languages=frozenset(), words=PAIRS)


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage with everything that a citation needs. `label` is `sourcefile` with the #anchor, if any."""

    passage_id: int
    document_id: int
    public_id: UUID
    document_version: int
    label: str
    sourcefile: str
    title: str
    folder: str
    category: str
    heading: str
    page: int | None
    content: str
    language: str
    score: float
    text_score: float | None
    vector_score: float | None
    found_by: FoundBy
    source_url: str = ""
    table_rows: int = (
        0  # rows of the table, if the content has only a part (see ingestion.search.passage_completion)
    )


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The results of a search, best first.

    `candidates` is the number of passages from which the results were chosen. `mode` is the mode that was
    used: "text" if the question could not be embedded. `fit` says how relevant the best passage seems: 0 is
    just relevant enough, 1 clearly relevant; there is no upper limit. `found_at` is the time.monotonic()
    right after the search, which has checked the access.
    """

    passages: tuple[FoundPassage, ...]
    query: str
    candidates: int
    mode: Mode = "hybrid"
    fit: float = 0.0
    expanded: str = ""
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)  # synonyms by phrase of the question
    found_at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def sure(self) -> bool:
        """Whether the best passage is clearly relevant."""
        return self.fit >= 1


@dataclass(frozen=True, slots=True)
class _Criteria:
    """The text to search for, and the filters."""

    principal: Principal
    query: str
    counted: Mapping[str, int]  # the words of the text, and how often each occurs
    context: str
    mode: Mode
    top: int
    minimum_score: float
    narrowed: Mapping[str, Any]  # parameters of sql/search.sql

    def parameters(self, expansion: Expansion) -> dict[str, Any]:
        """All parameters except those of the vectors."""
        words = NO_WORDS
        if self.mode != "vectors":
            words = _word_parameters(self.query, self.counted, expansion, self.context)
        return with_words({**self.narrowed, **words})


def search(
    principal: Principal,
    query: str,
    *,
    context: str = "",
    mode: Mode = "hybrid",
    top: int = 5,
    include_category: str = "",
    exclude_category: str = "",
    scope: str = "",
    minimum_score: float = 0.0,
    to_person: bool = False,
    to_groups: bool = False,
    without: Collection[int] = (),
) -> SearchResult:
    """The passages relevant to `query`, best first, without duplicates.

    The result has no passages if nothing is relevant. `context` has earlier questions that may contain the
    subject; their words count less. `minimum_score` applies to the final score (0..1), in hybrid mode after
    reranking. `to_person` restricts the search to documents that the caller owns or that name them as a
    reader, `to_groups` to those shared with one of their groups; with both, one of these is enough. `scope`
    is a scope of ingestion.search.scopes; `without` has the ids of documents to leave out. These filters
    only narrow what the caller may read, and never extend it.
    """
    query, context = storable(query), storable(context)
    top = min(top, MAX_PASSAGES)
    counted = _counted_words(query)
    if top < 1 or not counted:
        return SearchResult((), query, 0, mode)
    documents = documents_in(principal, scope)
    narrowed: dict[str, Any] = {
        "user_id": principal.user_id,
        "include_category": storable(include_category),
        "exclude_category": storable(exclude_category),
        "scoped": documents is not None,
        "documents": documents or [],
        "excluding": bool(without),
        "excluded": list(without),
        "to_person": to_person,
        "to_groups": to_groups,
    }
    wanted = _Criteria(principal, query, counted, context, mode, top, minimum_score, narrowed)
    found, is_translated = _search_once(wanted)
    # Words translated one by one find passages that mention the subject; a whole question in English finds
    # answers more often.
    if is_translated:
        again = _search_in_english(wanted, found)
        found = replace(again, query=query) if _is_better_in_english(again, found) else found
    return found


def _is_better_in_english(english: SearchResult, found: SearchResult) -> bool:
    """Whether the result for a question in English is better than that for the German question.

    Among many English documents, a few German ones may be found only by words that any German text has: such
    words are rare in this corpus and therefore weigh much.
    """
    if not english.passages:
        return False
    if not found.passages or found.passages[0].language == "english":
        return True
    least = max(FIT_IN_ENGLISH, FITTER_IN_ENGLISH * found.fit)
    return english.passages[0].language == "english" and english.fit >= least


def _search_once(wanted: _Criteria) -> tuple[SearchResult, bool]:
    """The result, and whether the question should also be searched for in English.

    The latter is the case if its words were translated one by one, unless passages were found but none of
    them is English.
    """
    query, mode = wanted.query, wanted.mode
    by_words = mode != "vectors"
    lookup = Lookup(wanted.principal, query)
    expansion = lookup.expansion(()) if by_words else Expansion()
    asked = wanted.parameters(expansion)
    texts = [ACTIVE, statement("known_words")] if by_words else [ACTIVE]
    (spaces, *known), surveyed = surveyed_after(texts, {**lookup.parameters, **asked})
    if known and known[0]:
        expansion = lookup.expansion(known[0])
        asked = wanted.parameters(expansion)
        if surveyed.is_sampled:  # the sample counts passages by sets of words, now with added ones
            surveyed = survey(asked)
    if by_words and surveyed.visible <= FEW_PASSAGES and language_of(query) == "german":
        expansion = _with_compounds(expansion, wanted)
        asked = wanted.parameters(expansion)
    space = active_space(spaces)
    # If the model knows only English, translate the words of a German question before embedding them.
    is_translated = (
        mode == "hybrid" and language_of(query) == "german" and is_english_only(space.name, space.dimensions)
    )
    english = in_english(units(without_question_words(query))) if is_translated else []
    vectors = _vector_parameters(
        space, " ".join(english) or query, wanted.context, mode, failure_name(wanted.principal)
    )
    if mode != "text" and not vectors["with_vectors"]:
        mode = "text"
        asked = replace(wanted, mode=mode).parameters(expansion)
        surveyed = survey(asked)
    candidates, readable = find_candidates({**asked, **vectors}, space.dimensions, surveyed)
    trust = trust_of(space, query)
    ranking = rank(candidates, mode, trust, readable)
    loaded: Loaded = {}
    if mode == "hybrid" and ranking.passages:
        ranking, loaded = _reranked(wanted.principal, query, english, expansion, ranking, trust, readable)
    ranked = ranking.passages
    if wanted.minimum_score > 0:
        ranked = [item for item in ranked if item.score >= wanted.minimum_score]
    passages = _distinct(wanted.principal, ranked, loaded, wanted.top)
    reasons, variants = expansion.reasons or {}, variants_of(query)
    synonyms = {
        phrase: [*variants.get(phrase, ()), *reasons.get(phrase, ())] for phrase in {**variants, **reasons}
    }
    found = SearchResult(tuple(passages), query, len(candidates), mode, ranking.fit, str(expansion), synonyms)
    has_english = not candidates or any(each.language == "english" for each in candidates)
    return found, is_translated and has_english


def _with_compounds(expansion: Expansion, wanted: _Criteria) -> Expansion:
    """`expansion`, with compounds that end with a word of a German question.

    They are taken from the German documents to be searched: “mitgliedsbeitrag” for “beitrag”.
    """
    ends = {german_stem(word): word for word in wanted.counted if len(word) >= MIN_END}
    bounds = {"first": MIN_FIRST, "most": MAX_COMPOUNDS, "ends": list(ends)}
    found = rows("compounds", {**wanted.narrowed, "today": timezone.localdate(), **bounds}) if ends else []
    everyday, reasons = dict(expansion.everyday), dict(expansion.reasons or {})
    for row in found:
        word = ends[row["word"]]
        everyday[word] = (*everyday.get(word, ()), row["lexeme"])
        reasons[word] = [*reasons.get(word, ()), row["lexeme"]]
    return replace(expansion, everyday=everyday, reasons=reasons)


def _search_in_english(wanted: _Criteria, found: SearchResult) -> SearchResult:
    """Search with an English translation of the question.

    Translations that occur in the passages of `found` are preferred. The result is empty if the question
    cannot be translated.
    """
    passages = found.passages
    held = held_stems(" ".join(f"{each.title} {each.heading} {each.content}" for each in passages))
    wording = question_in_english(wanted.query, held)
    counted = _counted_words(wording)
    if not counted or language_of(wording) == "german":
        return SearchResult((), wording, 0, found.mode)
    around = question_in_english(wanted.context, held) or wanted.context
    again, _ = _search_once(replace(wanted, query=wording, counted=counted, context=around, mode=found.mode))
    return again


def count_readable(principal: Principal) -> int:
    """The number of unexpired documents with passages that the caller may read."""
    wanted = {"user_id": principal.user_id, "today": timezone.localdate()}
    return int(rows("count_readable", wanted)[0]["count"])


def readable_state(principal: Principal) -> str:
    """A text that changes whenever a document that the caller may read changes.

    It is the same for callers who may read the same documents.
    """
    wanted = {"user_id": principal.user_id, "today": timezone.localdate()}
    return str(rows("readable_state", wanted)[0]["state"])


def count_passages(principal: Principal) -> int:
    """The number of passages of unexpired documents that the caller may read."""
    found = Document.objects.visible_to(principal).searchable().aggregate(passages=Sum("passage_count"))
    return int(found["passages"] or 0)


def readable_among(principal: Principal, documents: Collection[int]) -> set[int]:
    """The ids among `documents` that the caller may read now."""
    wanted = {"user_id": principal.user_id, "documents": list(documents)}
    return {row["id"] for row in rows("readable_among", wanted)}


def load(principal: Principal, passage_ids: Sequence[int]) -> list[FoundPassage]:
    """The given passages that the caller may read, in the given order."""
    loaded = _load(principal, passage_ids)
    by_id = {row["passage_id"]: row for row in loaded}
    return [
        _passage(by_id[each], score=1.0, text_score=None, vector_score=None, found_by="person")
        for each in passage_ids
        if each in by_id
    ]


def _load(principal: Principal, passage_ids: Sequence[int]) -> Rows:
    """Load rows with sql/load_passages.sql."""
    wanted = {"user_id": principal.user_id, "passage_ids": list(passage_ids)}
    return rows_of_each([prepared("load_passages")], wanted)[0]


def trust_of(space: EmbeddingSpace, query: str) -> VectorTrust:
    """How much the vectors of a space count for a question."""
    if not is_english_only(space.name, space.dimensions):
        return FOLDER_TRUST if is_from_folder(space.name) else SERVER_TRUST
    if has_unspaced_script(query):
        return NO_TRUST
    return BUILT_IN_TRUST if is_built_in(space.name) else ENGLISH_FOLDER_TRUST


def _counted_words(query: str) -> dict[str, int]:
    """The words to search for, in the order of the question, and how often each occurs in it."""
    asked = search_text(without_question_words(query), stored=False).split()
    asked = without_grammar(asked, language_of(query))
    counted = Counter(asked)
    return {word: counted[word] for word in list(counted)[:MAX_WORDS]}


def _word_parameters(
    query: str, counted: Mapping[str, int], expansion: Expansion, context: str
) -> dict[str, Any]:
    """Parameters for the words to search for, and for additional ones with their weights."""
    names = (word for word in expansion.terms if word not in counted)
    variants = [word for words in variants_of(query).values() for word in words if word not in counted]
    added = dict.fromkeys([*joined_words(query, list(counted)), *variants, *names], EXPANSION_WEIGHT)
    for word in _counted_words(context):
        if word not in counted:
            added.setdefault(word, CONTEXT_WEIGHT)
    times = [float(count) for count in counted.values()]
    return {"words": list(counted), "times": times, "added": added, "everyday": expansion.everyday}


def _vector_parameters(
    space: EmbeddingSpace, query: str, context: str, mode: Mode, caller: str
) -> dict[str, Any]:
    """Parameters for the vectors; if the embedding model fails, those for a search without vectors."""
    without = {"with_vectors": False, "vector": None, "space_id": None}
    if mode == "text":
        return without
    try:
        texts = [text[:MAX_EMBEDDED_CHARACTERS] for text in (query, context) if text]
        vectors = embed_question(embedder_of(space), texts, caller)
    except EmbeddingError as error:
        logger.warning("A question is searched only by its words: %s", error)
        return without
    vector = vectors[0] if len(vectors) == 1 else unit(vectors[:1] + CONTEXT_WEIGHT * vectors[1:])[0]
    return {"with_vectors": True, "vector": vector_text(vector), "space_id": space.pk}


def _reranked(
    principal: Principal,
    query: str,
    english: Sequence[str],
    expansion: Expansion,
    ranking: Ranking,
    trust: VectorTrust,
    readable: float,
) -> tuple[Ranking, Loaded]:
    """The ranking after comparing the best passages with the question, and the rows of these passages.

    Titles and headings are compared, too. The ranking is empty if the passages are not relevant enough.
    """
    ranked = ranking.passages
    language = ranked[0].candidate.language
    translated = english if language == "english" else ()
    asked = list(dict.fromkeys(translated or units(without_question_words(query))))[:MAX_WORDS]
    compared = [item.candidate.passage_id for item in ranked[:COMPARED]]
    wanted = {"user_id": principal.user_id, "passage_ids": compared, "words": asked, "language": language}
    found, kept = rows_of_each([prepared("load_passages"), statement("content_words")], wanted)
    loaded: Loaded = {row["passage_id"]: row for row in found}
    gone: dict[str, str] = {"title": "", "heading": "", "content": ""}
    texts = [loaded.get(passage_id, gone) for passage_id in compared]
    joined = [f"{text['title']} {text['heading']} {text['content']}" for text in texts]
    # PostgreSQL has no stop words for LANGUAGES; for others, the statement has dropped them.
    small = common_words(language) if language in LANGUAGES else ()
    words = [row["word"] for row in kept if row["word"] not in small] or asked
    length = len(words) / (UNITS_OF_A_WORD if has_unspaced_script(query) else 1)
    scores = rerank_scores(words, joined, expansion.everyday)
    settled = settle(ranking, trust, scores, length, readable)
    reranked = rerank(settled.passages, scores, length)

    # If the question asks for a definition, the best passages with a definition move to the top.
    defining = [
        place
        for place, item in enumerate(reranked[:COMPARED] if defined_thing(query) else ())
        if (row := loaded.get(item.candidate.passage_id)) and defines(query, row["heading"], row["content"])
    ][:DEFINING]
    if defining and defining[0] != 0:
        first = [reranked[place].scored(reranked[0].score) for place in defining]
        others = [item for place, item in enumerate(reranked) if place not in defining]
        reranked = [*first, *others]
    return replace(settled, passages=reranked), loaded


def _distinct(principal: Principal, ranked: Sequence[Ranked], loaded: Loaded, top: int) -> list[FoundPassage]:
    """The first `top` passages with different texts.

    Those that are not `loaded` are loaded here. Further passages of the same page or section (place) come
    after passages of other places. Up to BEST_PLACE passages of the best passage's place are exceptions, if
    they have a heading and are nearly as good.
    """
    found: list[FoundPassage] = []
    others: list[FoundPassage] = []  # passages from places that are already among the results
    places: Counter[tuple[int, str]] = Counter()
    best: tuple[int, str] | None = None
    seen: set[str] = set()
    looked_at = max(COMPARED, 2 * top)
    for start in range(0, len(ranked), looked_at):
        batch = ranked[start : start + looked_at]
        ids = [item.candidate.passage_id for item in batch]
        missing = [passage_id for passage_id in ids if passage_id not in loaded]
        known = loaded
        if missing:
            more = _load(principal, missing)
            known = {**loaded, **{row["passage_id"]: row for row in more}}
        for item in batch:
            row = known.get(item.candidate.passage_id)  # None if it was replaced or withdrawn meanwhile
            words = plain_words(row["content"]) if row else ""
            if row is None or words in seen:
                continue
            seen.add(words)
            place = (row["document_id"], row["anchor"])
            passage = _passage(
                row,
                score=item.score,
                text_score=item.candidate.text_score,
                vector_score=item.candidate.vector_score,
                found_by=item.found_by,
            )
            # A text without pages and headings has no anchors; none of its passages is moved back.
            best = best or place
            is_of_best = place == best and bool(row["heading"])
            is_nearly_best = is_of_best and item.score >= NEARLY * ranked[0].score
            is_other = places[place] >= (BEST_PLACE if is_nearly_best else 1)
            (others if is_other and row["anchor"] else found).append(passage)
            places[place] += 1
            if len(found) == top:
                return found
        if len(found) + len(others) >= top:
            break
    return [*found, *others][:top]


def _passage(
    row: Mapping[str, Any],
    *,
    score: float,
    text_score: float | None,
    vector_score: float | None,
    found_by: FoundBy,
) -> FoundPassage:
    """A passage from a row of sql/load_passages.sql."""
    unique = Uniqueness(row["name_is_unique"], row["path_is_unique"], row["prefix_is_unique"])
    sourcefile = source_name(row["name"], row["folder"], row["public_id"], unique)
    anchor = cleaned_label(row["anchor"])
    return FoundPassage(
        passage_id=row["passage_id"],
        document_id=row["document_id"],
        public_id=row["public_id"],
        document_version=row["document_version"],
        label=f"{sourcefile}#{anchor}" if anchor else sourcefile,
        sourcefile=sourcefile,
        title=row["title"],
        folder=row["folder"],
        category=row["category"],
        heading=row["heading"],
        page=row["page"],
        content=row["content"],
        language=row["language"],
        score=score,
        text_score=text_score,
        vector_score=vector_score,
        found_by=found_by,
        source_url=row["source_url"],
    )
