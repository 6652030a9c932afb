"""A withdrawn source's name appears nowhere: resumed, replayed, in context, in steps, or in the history."""

import json

import pytest
from django.test import AsyncClient

from chat.llm import use_model
from chat.tests.override_case import OverrideTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from history.models import Message
from ingestion import documents
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document
from ingestion.tests.factories import make_document

NAME = "falcon-budget.md"
WORDS = ("Five", " days", f" [{NAME}#page=3]", " and", " so", " on", ".")
FOLLOWUP = "What does the Falcon budget say?"


class TitledModel(ScriptedModel):
    """A model that records the texts from which titles are made."""

    def __init__(self, titled, **values):
        super().__init__(**values)
        self.titled = titled

    async def title(self, question, *more):
        self.titled.append(question)
        return await super().title(question, *more)


@pytest.mark.slow
class WithheldNames(OverrideTestCase):
    def setUp(self):
        super().setUp()
        passage = ("page=3", 3, "Falcon heading", "Five days of leave may be carried over until 31 March.")
        make_document(NAME, [passage], users=[self.user], title="Falcon title")
        self.model = ScriptedModel(words=WORDS, suggestions=[FOLLOWUP])

    async def asked(self):
        response = await self.post(key="same", suggest_followup_questions=True)
        self.assertIn("falcon", response.content.decode().lower(), "it was named while it was readable")
        self.run, self.conversation = response.headers["Chat-Run"], response.json()["session_state"]

    def close(self):
        set_audience(Document.objects.get(name=NAME), Audience())

    def delete(self):
        documents.delete_document(Document.objects.get(name=NAME))

    async def get(self, path, client=None):
        response = await AsyncClient().get(path, headers={"Authorization": f"Bearer {self.secret}"})
        if response.streaming:
            return b"".join([chunk async for chunk in response.streaming_content]).decode()
        return response.content.decode()

    async def seen(self):
        """{way of reading: everything that the asker gets about the answer by it}"""
        replay = await self.post(key="same", suggest_followup_questions=True)
        found = {"replay": replay.content.decode()}
        self.assertEqual(replay.status_code, 200)
        for after in (0, 1, 3, 5, 7):
            found[f"events after {after}"] = await self.get(f"/chat/runs/{self.run}/events?after={after}")
        for path in ("", "/search?q=days", f"/{self.conversation}/messages", f"/{self.conversation}/export"):
            found[path] = await self.get(f"/chat-history{path}")
        found["markdown"] = await self.get(f"/chat-history/{self.conversation}/export?format=markdown")
        body = {"messages": [{"role": "user", "content": "And then?"}], "session_state": self.conversation}
        with use_model(self.model):
            client, headers = AsyncClient(), {"Authorization": f"Bearer {self.secret}"}
            further = await client.post("/chat", json.dumps(body), "application/json", headers=headers)
        found["further question"] = json.dumps(further.json()["context"])
        found["prompt"] = repr(self.prompt)
        return found

    async def assert_unnamed(self):
        self.model.words = ("Nothing", " more.")
        self.model.suggestions = ()
        for way, text in (await self.seen()).items():
            self.assertNotIn("falcon", text.lower(), way)
        self.assertIn("Five days", (await self.seen())["replay"], "the text itself stays its owner's")

    async def test_a_closed_document_is_not_named(self):
        await self.asked()
        await in_database(self.close)
        await self.assert_unnamed()

    async def test_a_deleted_document_is_not_named(self):
        await self.asked()
        await in_database(self.delete)
        await self.assert_unnamed()

    async def test_the_text_stays_without_the_citation_and_the_title_is_made_of_the_question(self):
        titled = []
        self.model = TitledModel(titled, words=("The Falcon file says five", f" [{NAME}#page=3]", "."))
        await self.asked()
        self.assertEqual(titled, [self.question], "a title is made of nothing else")
        await in_database(self.close)
        seen = await self.get(f"/chat-history/{self.conversation}/messages")
        self.assertIn("The Falcon file says five.", seen)
        self.assertNotIn(NAME, seen)
        listed = json.loads(await self.get("/chat-history"))
        self.assertEqual([row["title"] for row in listed], [self.question[:40]])

    async def test_a_withdrawn_document_is_not_named_after_the_journal_is_deleted(self):
        await self.asked()
        await in_database(self.close)
        await in_database(lambda: Message.objects.get(role="assistant").run.journal.all().delete())
        await self.assert_unnamed()

    async def test_a_withdrawn_document_is_not_named_in_steps_of_later_answers(self):
        await self.asked()
        body = {"messages": [{"role": "user", "content": "And then?"}], "session_state": self.conversation}
        headers = {"Authorization": f"Bearer {self.secret}", "Idempotency-Key": "later"}

        async def ask():
            with use_model(self.model):
                return await AsyncClient().post(
                    "/chat", json.dumps(body), "application/json", headers=headers
                )

        self.assertIn("falcon", (await ask()).content.decode().lower())
        await in_database(self.close)
        self.assertNotIn("falcon", (await ask()).content.decode().lower())
