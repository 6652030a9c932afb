"""Verified answers, which a person wrote and which take precedence over search and generation.

An SQL statement selects the verified answers that a reader may get, with the reader's rights. For this
reader, the site behaves as if all other verified answers did not exist.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.utils import timezone

from chat.events import Thought, Verified
from chat.llm.followup_detection import leaned_on
from chat.models import VerifiedAnswer
from chat.quoting.quoting_model import QuotingModel
from chat.requests import RunRequest
from chat.verification import verify_or_log
from chat.verification.same_question import asks_the_same
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from history.citation_text import without
from history.signatures import signed
from ingestion.search import retrieval
from ingestion.search.passage_completion import complete_passages
from ingestion.search.retrieval import FoundPassage
from ingestion.search.tokens import plain_words

from .run import AcceptedRun
from .searching import Search, as_source

VERIFIED_STEP = "Verified answer"  # title of the step, in the thoughts
SQL = Path(__file__).parent / "sql"
_NUMBERED = re.compile(r"\[(\d{1,3})\](?!\()")


class VerifiedModel(QuotingModel):
    """A model that returns one fixed text.

    Follow-up questions and titles are made as on a site without a language model.
    """

    name = "verified"

    def __init__(self, text: str, sources: int) -> None:
        super().__init__()
        self._text = text
        self._sources = sources

    def text_for(self, sources: int) -> str | None:
        """The text; None if a source was withdrawn from the reader after the answer was selected."""
        return self._text if sources == self._sources else None


def verified_answer(run: AcceptedRun) -> tuple[VerifiedModel, Search] | None:
    """The verified answer to this question as a model, with its citations; None if there is none."""
    request, principal = run.request, run.principal
    if run.by_team or not run.may_be_verified or not _is_plain(request):
        return None
    match = _matching_question(principal, request.question)
    if match is None or leaned_on(request.question, request.earlier):
        return None
    answer_id, written_for = match
    answer = VerifiedAnswer.objects.select_related("owner").get(pk=answer_id)
    passages = cited_passages(principal, answer_id)
    if not passages or len(passages) != answer.citation_count:
        return None  # the answer was changed, or a source was withdrawn, just now
    labels = [passage.label for passage in passages]
    by_name = answer.owner_id if answer.owner and not answer.team else None
    groups = tuple(answer.groups.order_by("pk").values_list("pk", flat=True))
    same_words = plain_words(written_for) == plain_words(request.question)
    verified = Verified(
        answer.signature,
        answer.valid_until.isoformat(),
        "" if same_words else written_for,
        by_name,
        groups,
    )
    mark = {"by": verified.by, "until": verified.until}
    if verified.question:
        mark["question"] = verified.question
    distinct = tuple(dict.fromkeys(passages))
    found = Search(
        request.question,
        tuple(as_source(rank, passage) for rank, passage in enumerate(distinct, start=1)),
        distinct,
        (Thought(VERIFIED_STEP, signed(mark), mark),),
        (),
        verified=verified,
    )
    return VerifiedModel(with_labels(answer.text, labels), len(distinct)), found


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A statement that its passages do not support, with the sentence that contradicts it, if any."""

    words: str
    said: str


def unsupported_statements(answer: str, passages: Sequence[FoundPassage]) -> list[Unsupported]:
    """The statements of a written answer that were not found in the passages that they cite.

    A citation is a number: [1] cites the first of `passages`.
    """
    distinct = tuple(dict.fromkeys(passages))
    labels = [passage.label for passage in distinct]
    text = with_labels(answer, [passage.label for passage in passages])
    sources = {rank: as_source(rank, passage) for rank, passage in enumerate(distinct, start=1)}
    statements = verify_or_log(text, sources.values())
    if statements is None:
        return [Unsupported(without(text, labels).strip(), "")]
    found: list[Unsupported] = []
    for each in statements:
        if each.verdict == "not_found":
            said_instead = [
                sources[proof.rank].content[slice(*proof.disagreeing)]
                for proof in each.proofs
                if proof.disagreeing
            ]
            words = without(text[each.start : each.end], labels).strip()
            found.append(Unsupported(words, said_instead[0] if said_instead else ""))
    return found


def cited_passages(principal: Principal, answer_id: int) -> list[FoundPassage]:
    """The cited passages that the reader may read, in the order of the citations."""
    wanted = [row["passage_id"] for row in rows("verified_sources", {"answer_id": answer_id}, SQL)]
    return list(complete_passages(principal, retrieval.load(principal, wanted)))


def matching(principal: Principal, question: str) -> int | None:
    """The id of the newest verified answer to the question that this reader can get."""
    match = _matching_question(principal, question)
    return match[0] if match else None


def _matching_question(principal: Principal, question: str) -> tuple[int, str] | None:
    """The id of the answer that `matching` returns, and the question for which it was written."""
    parameters = {"user_id": principal.user_id, "today": timezone.localdate()}
    found = [
        (int(row["answer_id"]), str(row["text"]))
        for row in rows("verified_answers", parameters, SQL)
        if asks_the_same(question, row["text"])
    ]
    # The newest answer may have several matching questions: prefer one with the same words.
    own = [match for match in found if match[0] == found[0][0]]
    same = (match for match in own if plain_words(match[1]) == plain_words(question))
    return next(same, own[0] if own else None)


def with_labels(text: str, labels: Sequence[str]) -> str:
    """Replace the numbers of citations with labels; remove numbers without a label."""

    def label(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"[{labels[number - 1]}]" if 0 < number <= len(labels) else ""

    return _NUMBERED.sub(label, text)


def cites_source(text: str, sources: int) -> bool:
    """Whether a written answer cites one of its sources by number."""
    return any(0 < int(match[1]) <= sources for match in _NUMBERED.finditer(text))


def _is_plain(request: RunRequest) -> bool:
    """Whether the request has no images, and prescribes neither sources nor form of the answer."""
    options = request.options
    return not (
        request.images
        or request.wish
        or request.generation.json
        or options.prompt_template
        or options.include_category
        or options.exclude_category
        or options.to_person
        or options.to_groups
        or options.scope not in ("", "all")
    )
