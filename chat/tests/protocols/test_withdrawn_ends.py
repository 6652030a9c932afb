"""The end of an answer that lost a source: no protocol then sends what its reader may no longer open."""

import asyncio

import pytest

from chat.events import MessageStarted, TextDelta
from chat.models import Agent
from chat.runs.manager import run_manager
from chat.tests.golden_exchange import FILE, PASSAGES, GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document

QUESTION = "What is included in the Northwind plan?"
MESSAGES = {"messages": [{"role": "user", "content": QUESTION}]}
RESPONSE = {"model": "any", "input": QUESTION}
WORDS = ("The", " plan", f" [{FILE}#page=91].", *(" so" for _ in range(20)))
TEAM = ("Researcher", "Reviewer")


@pytest.mark.slow
class WithdrawnEnds(GoldenTestCase):
    def setUp(self):
        super().setUp()
        self.document = Document.objects.get()

    def close(self):
        set_audience(self.document, Audience())

    async def last(self, path, body, change, *, messages=1):
        """The last event or the body of an answer that loses its source while it is written."""
        asking = asyncio.create_task(self.post(path, body, model=ScriptedModel(words=WORDS, pause=0.1)))
        while not any(_is_writing(active.events, messages) for active in run_manager().active.values()):
            self.assertFalse(asking.done())
            await asyncio.sleep(0.02)
        await in_database(change)
        response = await asking
        body = b"".join(response.body) if response.streaming else response.content
        return response.status_code, body.decode().strip().rpartition("\n\n")[2]

    def assert_silent(self, text):
        self.assertIn("interrupted", text)
        for words in (FILE, PASSAGES[0][3], PASSAGES[1][3], str(self.document.public_id)):
            self.assertNotIn(words, text)

    async def test_no_protocol_that_ends_with_the_whole_answer_names_a_lost_source(self):
        streamed = [(f"/api{form}/chat/stream", MESSAGES) for form in ("", "/minimal")]
        whole = [(f"/api{form}/chat", MESSAGES) for form in ("", "/minimal", "/messages")]
        for path, body in (("/v1/responses", RESPONSE | {"stream": True}), *streamed, *whole):
            with self.subTest(path):
                status, text = await self.last(path, body, self.close)
                self.assertEqual(status, 200)
                self.assert_silent(text)
                self.assertIn("The plan", text)
            await in_database(set_audience, self.document, Audience(everyone=True))

    async def test_the_end_of_a_disabled_accounts_answer_names_no_lost_source(self):
        asked = [("/chat", MESSAGES), ("/v1/responses", RESPONSE | {"stream": True})]
        asked.append(("/v1/chat/completions", MESSAGES | {"model": "any", "stream": True}))
        users = type(self.user).objects
        for path, body in asked:
            with self.subTest(path):
                _, text = await self.last(path, body, lambda: users.update(is_active=False))
                self.assertIn("There is no such answer.", text)
                self.assertNotIn(FILE, text)
            await users.aupdate(is_active=True)

    async def test_earlier_messages_of_a_team_name_no_lost_source(self):
        await Agent.objects.all().adelete()
        for order, name in enumerate(TEAM):
            await Agent.objects.acreate(name=name, instructions="Answer.", order=order)
        for path in ("/api/multi-agent-chat", "/api/messages/multi-agent-chat"):
            with self.subTest(path):
                status, text = await self.last(path, MESSAGES, self.close, messages=2)
                self.assertEqual(status, 200)
                self.assert_silent(text)
                self.assertEqual([name for name in TEAM if name in text], list(TEAM))
            await in_database(set_audience, self.document, Audience(everyone=True))

    async def test_a_deleted_document_is_not_named_at_the_end(self):
        streamed = RESPONSE | {"stream": True}
        status, text = await self.last("/v1/responses", streamed, self.document.delete)
        self.assertEqual(status, 200)
        self.assert_silent(text)


def _is_writing(events, messages):
    """Whether the run has written some of that message of its team, and the citation before it."""
    begun = [place for place, event in enumerate(events) if isinstance(event, MessageStarted)] or [0]
    texts = [event for event in events[begun[-1] :] if isinstance(event, TextDelta)]
    return len(begun) >= messages and len(texts) > 3
