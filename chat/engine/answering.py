"""The steps of a run: a verified answer or a search, context, text, second look, follow-ups, title."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast
from uuid import UUID

from django.conf import settings

from chat.events import (
    Event,
    FollowUps,
    MessageDone,
    MessageStarted,
    Rechecked,
    Searching,
    TextDelta,
    thought_from_json,
)
from chat.llm import ChatModel, Contribution, Prompt, SearchQuery, configured_model
from chat.llm.chat_model import NOTHING_FOUND
from chat.quoting.questions.question import Question
from chat.quoting.questions.repetition import repeats
from chat.quoting.quoted_answer import OTHERS
from chat.quoting.sentence_selection import shared_words
from chat.quoting.table_rows.table_notices import ROWS_SHOWN
from chat.requests import EarlierMessage
from chat.statements import marks_by_rank, to_rows
from chat.verification import verify_or_log
from chatsite.accounts.principal import failure_name
from chatsite.db.retry import retry_until_available
from history import recording
from history.models import Message, Source
from history.recording import AnswerOutcome
from history.tally import LIKELY, NEEDS_MODEL, UNSURE
from ingestion.search import retrieval
from ingestion.search.passage_completion import complete_passages, cut_tables
from ingestion.search.ranking.fusion import FoundBy
from ingestion.search.retrieval import SearchResult
from ingestion.search.scopes import ALL, count_attached, count_named, count_unread
from ingestion.search.translations import language_of
from ingestion.suggested_questions import document_questions

from . import searching
from .run import AcceptedRun, Speaker
from .searching import Search, as_source, search, store_context
from .second_look import second_look
from .small_talk import small_talk
from .trial import answerable
from .verified import VerifiedModel, verified_answer
from .writing import written

FOLLOWUPS = 3
TRIED = 8  # follow-up questions that are tried; each needs a search unless its outcome is cached
STANDING = 1  # questions suggested for cited documents; offered only if no other follow-up is left
LOOK_SECONDS = 1.0
WAIT_SECONDS = 300.0  # longest wait for documents to be read; after that, those read so far are searched
STORING_SECONDS = 1.0  # how long a stop waits for sources that are being stored

T = TypeVar("T")


async def answer(run: AcceptedRun, publish: Callable[[Event], object]) -> str:
    """Publish all events between Started and the end, except TitleChanged.

    Returns a title if one is needed. Raises ModelError; events that were published remain valid.
    """
    model: ChatModel = configured_model()
    request = run.request
    talk = small_talk(run)
    if not talk:
        if run.attached and request.options.scope in ("", ALL):
            more = await retry_until_available(count_attached, run.principal, run.attached)
            run = replace(run, readable=run.readable + more)
        searched = run.readable
        if request.options.scope not in ("", ALL):
            searched = await retry_until_available(count_named, run.principal, request.options.scope)
        publish(Searching(searched))
        await documents_read(run, publish, searched)
    prompt = Prompt(
        request.question,
        request.earlier,
        (),
        request.options.temperature,
        images=request.images,
        template=request.options.prompt_template,
        wish="\n\n".join(filter(None, (run.owner_instructions, request.wish))),
        generation=request.generation,
        narrowed=request.options.narrowed,
        caller=failure_name(run.principal),
    )
    state = _Answer(run, publish, prompt)
    if talk:
        await state.write_message(*talk, run.answer_id, searched=False)
        return await state.extras(talk[0])
    known = await retry_until_available(partial_answer, run) if request.continues else None
    if known:
        found, state.prompt = known.found, replace(prompt, prefill=known.text)
    else:
        model, found = await _model_and_search(run, model)
    if run.team:
        await state.team_messages(model, found)
    else:
        await state.write_message(model, found, run.answer_id)
    return await state.extras(model)


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """The text of an answer that was cut short, and its sources."""

    text: str
    found: Search


def partial_answer(run: AcceptedRun) -> PartialAnswer | None:
    """The answer to continue; None if a source was deleted, withdrawn or processed again.

    If it is None, the question is answered from the beginning, because the model must not get text that is
    based on a source that is gone or may have changed.
    """
    former = Message.objects.owned_by(run.principal).get(pk=run.request.continues)
    sources = list(Source.objects.visible_to(run.principal).filter(message=former).order_by("rank"))
    loaded = retrieval.load(run.principal, [source.passage_id for source in sources])
    passages = complete_passages(run.principal, loaded)
    if [passage.label for passage in passages] != former.labels:
        return None
    found = [
        replace(passage, score=source.score, found_by=cast(FoundBy, source.found_by))
        for passage, source in zip(passages, sources, strict=True)
    ]
    thoughts = [thought_from_json(each) for each in former.thoughts]
    searched = tuple(each for each in thoughts if each.title == "Generated search query")
    views = tuple(as_source(rank, passage) for rank, passage in enumerate(found, start=1))
    return PartialAnswer(former.content, Search(run.request.question, views, tuple(found), searched, ()))


async def documents_read(run: AcceptedRun, publish: Callable[[Event], object], searched: int) -> None:
    """Wait until the documents in the question's scope have been read, or have failed.

    Waits at most WAIT_SECONDS, only for the caller's own documents, only if the scope names documents, and
    not if an answer is continued. `searched` is the number of searched documents to publish meanwhile.
    """
    if not run.request.options.scope.startswith("document:") or run.request.continues:
        return
    deadline = time.monotonic() + WAIT_SECONDS
    reported = 0
    while time.monotonic() < deadline:
        awaited = await retry_until_available(count_unread, run.principal, run.request.options.scope)
        if awaited != reported:
            reported = awaited
            publish(Searching(searched, awaited))
        if not awaited:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _model_and_search(run: AcceptedRun, model: ChatModel) -> tuple[ChatModel, Search]:
    """The verified answer as a model, with its citations; or `model` itself, with the search results."""
    request = run.request
    if request.earlier:  # the search query may then need the model, so first look for a verified answer
        if verified := await retry_until_available(verified_answer, run):
            return verified
        query = await model.search_query(request.question, request.earlier)
        return model, await search(run, model, query)
    query = await model.search_query(request.question, ())
    verified, found = await _before_a_stop(retry_until_available(_verified_or_found, run, model, query))
    if verified:
        return verified
    return model, found if isinstance(found, Search) else await search(run, model, query, found)


async def _before_a_stop(storing: Coroutine[Any, Any, T]) -> T:
    """Await a call that stores sources.

    If the run is stopped meanwhile, the caller is cancelled only after the call has ended, or after
    STORING_SECONDS. A cancelled database call would continue in its thread and store the sources, so the
    readers of the run must also get these. Readers receive everything that the caller publishes before its
    next `await`.
    """
    task = asyncio.ensure_future(storing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stopped = asyncio.current_task()
        await asyncio.wait({task}, timeout=STORING_SECONDS)
        if stopped is None or not task.done() or task.cancelled():
            task.cancel()
            raise
        stopped.uncancel()  # otherwise, the next line would count the cancellation twice
        stopped.cancel()
        return task.result()


def _verified_or_found(
    run: AcceptedRun, model: ChatModel, query: SearchQuery
) -> tuple[tuple[VerifiedModel, Search] | None, Search | SearchResult | None]:
    """The verified answer, or else the search results, in one database call."""
    if verified := verified_answer(run):
        return verified, None
    if searching.is_simple(run):
        return None, searching.search_and_store(run, model, query)
    return None, searching.candidates(run, query)


async def next_speaker(
    run: AcceptedRun, model: ChatModel, contributions: Sequence[Contribution]
) -> Speaker | None:
    """The next agent, or None when the team has finished or used up its turns."""
    if len(contributions) >= settings.AGENT_TURNS:
        return None
    if not (settings.AGENT_COORDINATOR and contributions):
        return run.team[len(contributions)] if len(contributions) < len(run.team) else None
    team = {_plain(speaker.name): speaker for speaker in run.team}
    descriptions = [(speaker.name, speaker.description) for speaker in run.team]
    name = await model.next_speaker(run.request.question, descriptions, contributions)
    return team.get(_plain(name))  # an unknown name ends the answer


def _plain(name: str) -> str:
    """A name in a comparable form: models may write it as a sentence."""
    return name.rstrip(" .:!").casefold()


@dataclass(slots=True)
class _Answer:
    """An answer that is being written: its last prompt and last message."""

    run: AcceptedRun
    publish: Callable[[Event], object]
    prompt: Prompt
    text: str = ""
    message_id: UUID | None = None
    done: MessageDone | None = None
    is_verified: bool = True  # False if the last message could not be verified because of an error

    async def team_messages(self, model: ChatModel, found: Search) -> None:
        """Write the messages of the agents in turn; each agent gets all earlier messages of the run."""
        contributions: list[Contribution] = []
        run = self.run
        while speaker := await next_speaker(run, model, contributions):
            agent_model = configured_model(speaker.model)
            self.prompt = replace(
                self.prompt, contributions=tuple(contributions), instructions=speaker.instructions
            )
            if contributions and not await agent_model.has_more(self.prompt):
                return
            if speaker.may_search and contributions:
                more = await agent_model.further_query(run.request.question, contributions)
                found = await search(run, agent_model, SearchQuery(more)) if more else found
            message = await retry_until_available(self._open_message, speaker, first=not contributions)
            created = recording.timestamp(message.created_at)
            self.publish(MessageStarted(str(message.pk), speaker.name, created))
            found = await self.write_message(agent_model, found, message.pk)
            contributions.append(Contribution(speaker.name, self.text))

    def _open_message(self, speaker: Speaker, *, first: bool) -> Message:
        """Store the end of the previous message, and open the next agent's message."""
        run = self.run
        if first:
            return recording.name_speaker(run.answer_id, speaker.name)
        if self.message_id and self.done:
            closing = AnswerOutcome(
                Message.State.COMPLETE,
                self.text,
                self.done.finish_reason,
                citations=self.done.citations,
                verification=to_rows(self.done.verification),
                grade=self.done.grade,
            )
            recording.close_answer(run.principal.user_id, self.message_id, closing)
        return recording.append_answer(
            run.conversation_id, run.run_id, speaker.name, request_id=run.request_id
        )

    async def write_message(
        self, model: ChatModel, found: Search, message_id: UUID, *, searched: bool = True
    ) -> Search:
        """Write one message from the search results; returns the results that the caller may still read."""
        keeping = store_context(self.run, message_id, model, found, self.run.readable if searched else None)
        found, context = await _before_a_stop(keeping)
        self.publish(context)
        self.prompt = replace(
            self.prompt,
            sources=found.sources,
            pages=found.pages,
            fit=found.fit,
            synonyms=found.synonyms,
            table_rows=cut_tables(found.passages),
        )
        text: list[str] = []
        async with aclosing(written(model, self.prompt)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    text.append(event.text)
                    self.publish(event)
                elif isinstance(event, MessageDone):
                    self.message_id, self.text = message_id, "".join(text)
                    # In a thread, because the time grows with the length of the answer.
                    statements = await asyncio.to_thread(
                        verify_or_log, self.text, found.sources, self.run.run_id
                    )
                    self.is_verified = statements is not None
                    # Leave out the site's own sentences, which state nothing about the documents.
                    own = (*NOTHING_FOUND, *model.notices)
                    claims = tuple(
                        each
                        for each in statements or ()
                        if not any(self.text[each.start : each.end] in words for words in own)
                        and not ROWS_SHOWN.fullmatch(self.text[each.start : each.end])
                    )
                    self.done = replace(event, verification=claims)
                    self.publish(self.done)
                else:
                    self.publish(event)
        if self.done and (marks := marks_by_rank(self.done.verification)):
            await retry_until_available(recording.record_quotes, message_id, marks)
        return found

    async def extras(self, model: ChatModel) -> str:
        """Ask the model in parallel for a second look, follow-up questions and a title.

        Returns the title; empty if the conversation already has one.
        """
        questions, title, _ = await asyncio.gather(
            self._followups(model), self._title(model), self._recheck(model)
        )
        if questions:
            self.publish(FollowUps(tuple(questions)))
        return title

    async def _title(self, model: ChatModel) -> str:
        """A better title than the question itself, for the conversation that begins with it."""
        return await model.title(self.run.request.question) if self.run.is_untitled else ""

    async def _recheck(self, model: ChatModel) -> None:
        if self.done is None:
            return
        checked = await second_look(model, self.text, self.done.verification, self.prompt.sources)
        if checked:
            self.publish(Rechecked(checked))

    async def _followups(self, model: ChatModel) -> list[str]:
        """Follow-up questions from the model; if none is left, one from a cited document.

        Without a language model, only questions that a search for the caller can answer.
        """
        if not (self.run.request.options.followups and self.prompt.sources):
            return []
        if self.text.startswith((UNSURE, NEEDS_MODEL)):
            return []  # they would be about passages that may be unrelated to the question
        if not self.is_verified:
            return []  # choosing them may verify the text again, which would fail again
        suggested = await model.followups(self.prompt, self._answer)
        return await retry_until_available(self._answerable, model, suggested)

    @property
    def _answer(self) -> str:
        """The text of the message, without the passages after OTHERS in a likely answer."""
        return self.text.partition(OTHERS)[0] if self.text.startswith(LIKELY) else self.text

    def _quoted(self) -> set[int]:
        """The ids of the passages that the text in `_answer` quotes."""
        if self.done is None:
            return set()
        end = len(self._answer)
        ranks = marks_by_rank(each for each in self.done.verification if each.end <= end)
        return {source.passage_id for source in self.prompt.sources if source.rank in ranks}

    def _said_before(self) -> list[str]:
        """The questions that were asked or suggested in the conversation."""
        prompt = self.prompt
        said = [turn.content for turn in prompt.earlier if turn.role == "user"]
        if prompt.earlier:
            messages = Message.objects.owned_by(self.run.principal).filter(
                conversation=self.run.conversation_id
            )
            said += messages.filter(role=Message.Role.USER).values_list("content", flat=True)
            for suggested in messages.exclude(followups=[]).values_list("followups", flat=True):
                said += suggested
        return list(dict.fromkeys([prompt.question, *said]))

    def _answerable(self, model: ChatModel, suggested: Sequence[str]) -> list[str]:
        prompt, run = self.prompt, self.run
        earlier = [
            *prompt.earlier,
            EarlierMessage("user", prompt.question),
            EarlierMessage("assistant", self.text),
        ]
        before, quoted = self._said_before(), self._quoted()

        def tried(questions: Sequence[str], most: int) -> list[str]:
            new: list[str] = []
            for each in questions:
                if len(new) < TRIED and not repeats(each, [*before, *new]):
                    new.append(each)
            return answerable(
                run.principal,
                model,
                new,
                earlier,
                scope=run.request.options.scope,
                readable=run.readable,
                most=most,
                quoted=quoted,
            )

        if closer := tried(suggested, FOLLOWUPS):
            return closer
        cited = [source.document_id for source in prompt.sources if f"[{source.label}]" in self._answer]
        language, asked = language_of(prompt.question), Question(prompt.question)
        standing = [
            each
            for each in document_questions(run.principal, cited)
            if not language or language_of(each) in ("", language)
        ]
        standing.sort(key=lambda each: -shared_words(asked, each))
        return tried(standing, STANDING)
