"""Answers one evaluation question as the site does without a language model."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from django.contrib.auth.models import Group
from django.db import transaction

from chat.engine.searching import as_source, search_for
from chat.engine.verified import cited_passages, matching, with_labels
from chat.llm.chat_model import Prompt
from chat.models import VerifiedAnswer
from chat.quoting.quoting_model import quote, search_query
from chat.sources import SourceView
from chat.verification import verify_or_log
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db.threads import reading_as
from ingestion.evaluation.bm25 import Place
from ingestion.evaluation.judging import CitationTarget, ranking
from ingestion.search.labels import cleaned_label
from ingestion.search.passage_completion import cut_tables
from ingestion.search.retrieval import FoundPassage

from .models import ProofQuestion, ProofResult

TOP = 5  # a document counts as found up to this rank; an answer gets this many passages
SUPPORTED = ("quoted", "supported")  # verdicts that count as support

Outcome = ProofResult.Outcome


@dataclass(frozen=True, slots=True)
class Reply:
    """The site's answer to a question.

    Passages are best first; those of a verified answer are in the order of its citations.
    """

    outcome: Outcome
    text: str
    passages: tuple[FoundPassage, ...]

    @property
    def sources(self) -> list[SourceView]:
        return [as_source(rank, passage) for rank, passage in enumerate(self.passages, start=1)]


@contextmanager
def member_of(group: Group) -> Iterator[Principal]:
    """A temporary member of only this group, for the duration of the block.

    The account never becomes visible to others, because the block's transaction is rolled back. The block
    must therefore not write anything permanent.
    """
    with transaction.atomic():
        member = User.objects.create(username=f"evaluation-{uuid4()}", password="!")  # noqa: S106 (none fits)
        member.groups.add(group)
        with reading_as(member.pk):
            yield Principal(member.pk, "command")
        transaction.set_rollback(True)


def ask(principal: Principal, question: ProofQuestion) -> ProofResult:
    """Ask with the rights of `principal`; returns an unsaved row."""
    reply = reply_to(principal, question.text)
    statements = verify_or_log(reply.text, reply.sources) or () if reply.text else ()
    rank = 0  # no passage is right; always so if the expected document was deleted and not replaced
    if question.document_id is not None and not question.wants_nothing:
        wanted = CitationTarget(question.document_id, cleaned_label(question.place))
        places = [
            Place(passage.document_id, passage.label.partition("#")[2]) for passage in reply.passages[:TOP]
        ]
        keys = ranking(places, {wanted})
        rank = next((place for place, key in enumerate(keys, start=1) if key is not None), 0)
    return ProofResult(
        wants_nothing=question.wants_nothing,
        wanted=question.document_id,
        outcome=reply.outcome,
        rank=rank,
        found=list(dict.fromkeys(passage.document_id for passage in reply.passages)),
        statements=len(statements),
        supported=sum(statement.verdict in SUPPORTED for statement in statements),
    )


def reply_to(principal: Principal, question: str) -> Reply:
    """A verified answer if one matches, otherwise quotations from the search results."""
    answer_id = matching(principal, question)
    if answer_id is not None:
        answer = VerifiedAnswer.objects.get(pk=answer_id)
        passages = cited_passages(principal, answer_id)
        if passages and len(passages) == answer.citation_count:
            text = with_labels(answer.text, [passage.label for passage in passages])
            return Reply(Outcome.VERIFIED, text, tuple(dict.fromkeys(passages)))
    query = search_query(question, [])
    found = search_for(principal, query, top=TOP)
    sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, start=1)]
    cut = cut_tables(found.passages)
    prompt = Prompt(question, [], sources, 0.0, fit=found.fit, synonyms=found.synonyms, table_rows=cut)
    quoted = quote(prompt)
    if not quoted.texts:
        return Reply(Outcome.NOTHING, "", found.passages)
    outcome = Outcome.ANSWERED if quoted.is_sure else Outcome.UNSURE
    return Reply(outcome, "\n\n".join(quoted.texts), found.passages)
