"""Steps behind an answer in the reader's language: every text of the engine is translated."""

import itertools

import pytest
from django.utils import translation

from chat.engine import searching, steps
from chat.engine.verified import VERIFIED_STEP
from chat.events import Thought
from chat.portal.step_texts import FACTS, in_short, step
from chat.requests import Options
from chatsite.tests.pseudo_language import speaking_pseudo
from ingestion.search.retrieval import SearchResult


@pytest.fixture
def pseudo():
    with speaking_pseudo():
        yield


def as_json(thought):
    return {"title": thought.title, "description": thought.description, "props": thought.props}


def every_own_step():
    """The steps that the site describes itself, of each kind of request."""
    for fields, mode in itertools.product(("pages", "both", ""), ("hybrid", "vectors")):
        yield from steps.vector_fields(Options(vector_fields=fields, retrieval_mode=mode))
    for pages, count in itertools.product(("images", "both"), (0, 3)):
        yield steps.page_images(Options(pages=pages), count)
    for why in (searching.NO_RANKER, searching.RANKER_FAILED):
        yield Thought("Semantic ranker", why, {"ranker": "qx"})
        yield Thought("Semantic ranker", f"{why} {searching.NO_MINIMUM}", {"ranker": "qx"})
    props = {"ranker": "qx", "candidates": 3, "minimum_reranker_score": 1}
    yield Thought("Semantic ranker", "The ranker ordered 3 passages.", props)


def test_descriptions_of_the_site_are_in_the_catalogue(pseudo):
    shown = [step(as_json(thought)) for thought in every_own_step()]
    assert len(shown) > 10
    for each in shown:
        assert each.title.startswith("⟦"), each
        assert all(words.startswith("⟦") and words.endswith("⟧") for words in each.items), each
        assert all(fact.startswith("⟦") for fact in each.facts), each


def test_facts_of_a_search_are_in_the_catalogue(pseudo):
    scopes = ("own", "folder:qx, qy", "category:qx", "document:1,2")
    for scope, grants in itertools.product(scopes, itertools.product((False, True), repeat=2)):
        options = Options(
            scope=scope, to_person=grants[0], to_groups=grants[1], include_category="qx",
            exclude_category="qx", minimum_score=0.5,
        )  # fmt: skip
        thought = steps.query(options, "qx", SearchResult((), 0, "text"))
        shown = step(as_json(thought))
        words = next(fact for fact in shown.facts if fact.startswith("⟦öñly whéré⟧"))
        assert words.count("⟦") == words.count(",") - scope.count(", ") + 2, words
        assert all(name in FACTS for name in thought.props)


def test_a_verified_answer_is_signed_in_the_readers_language():
    props = {"by": "Ann", "until": "2027-03-31"}
    thought = {"title": VERIFIED_STEP, "description": "Verified by Ann until 31 March 2027", "props": props}
    with translation.override("de"):
        assert in_short(thought) == "Geprüfte Antwort: Geprüft von Ann, gültig bis 31. März 2027"


def test_a_short_step_has_its_title_in_the_readers_language():
    with translation.override("de"):
        assert in_short({"title": "Original user query", "description": "May I?"}) == "Die Frage: May I?"
    assert in_short({"title": "Prompt", "description": ["a", "b"]}) == ""
    assert in_short({"title": "Third", "description": "x" * 201}) == ""
