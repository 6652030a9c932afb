"""The member `grade` of answers without a language model, in every protocol that sends verification."""

import json

from django.test import AsyncClient

from chat.quoting.quoted_answer import QuotedAnswer
from chat.quoting.quoting_model import QuotingModel
from chat.tests.golden_exchange import WORDS, GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from history.models import Message
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import make_document

QUESTIONS = {
    "given": "How many plants may one desk have?",
    "closest": "What is the plan for the cafeteria?",
    "none": "Xylophone?",
}
ASKED = {
    "/chat": {"session_state": None},
    "/chat/stream": {"session_state": None},
    "/chat?completions": {"stream": False},
    "/chat?completions of a stream": {"stream": True},
    "/chat?component": {"stream": True, "context": {"approach": "rrr"}},
    "/ask": {},
    "/ask/stream": {},
    "/api/chat": {},
    "/api/chat/stream": {},
    "/api/minimal/chat": {},
    "/api/minimal/chat/stream": {},
    "/v1/chat/completions": {"model": "any"},
    "/v1/chat/completions?stream": {"model": "any", "stream": True},
    "/v1/responses": {"model": "any"},
    "/v1/responses?stream": {"model": "any", "stream": True},
}


def members_named(name, value):
    """Those members of a value of JSON, at any depth."""
    if isinstance(value, list):
        return [found for item in value for found in members_named(name, item)]
    if not isinstance(value, dict):
        return []
    return [
        found
        for key, item in value.items()
        for found in ([item] if key == name else members_named(name, item))
    ]


class GradeTests(GoldenTestCase):
    def setUp(self):
        super().setUp()
        text = "Each desk may have two plants. They are watered on Mondays."
        self.document = make_document("plants.md", [("plants", None, "Plants", text)], everyone=True)

    async def ask(self, path, question, model=None):
        """Everything that the answer consists of, and the answer itself."""
        body = ASKED[path] | {"messages": [{"role": "user", "content": question}]}
        if "responses" in path:
            body = ASKED[path] | {"input": question}
        response = await self.post(path.replace(" ", "+"), body, model=model or QuotingModel())
        self.assertEqual(response.status_code, 200, path)
        text = b"".join(response.body) if response.streaming else response.content
        pieces = [line.removeprefix("data: ") for line in text.decode().splitlines()]
        return [
            json.loads(piece) for piece in pieces if piece.startswith("{") or piece.startswith("[{")
        ], response

    async def get(self, path):
        headers = {"Authorization": f"Bearer {self.secret}"}
        response = await AsyncClient().get(path, headers=headers)
        if response.streaming:
            body = b"".join([chunk async for chunk in response.streaming_content])
            return [json.loads(line) for line in body.splitlines()]
        return response.json()

    async def test_every_protocol_sends_the_grade(self):
        for path in ASKED:
            for grade, question in QUESTIONS.items():
                with self.subTest(path, grade=grade):
                    said, _ = await self.ask(path, question)
                    self.assertEqual(set(members_named("grade", said)), {grade})

    async def test_an_answer_of_a_language_model_has_no_grade(self):
        for path in ASKED:
            with self.subTest(path):
                said, _ = await self.ask(path, QUESTIONS["given"], ScriptedModel(words=WORDS))
                self.assertEqual(members_named("grade", said), [])

    async def test_the_grade_is_stored_and_sent_with_the_conversation(self):
        for grade, question in QUESTIONS.items():
            with self.subTest(grade):
                _, response = await self.ask("/chat", question)
                stored = await Message.objects.aget(pk=response.headers["Chat-Message"])
                self.assertEqual(stored.grade, grade)
                conversation = f"/chat-history/{stored.conversation_id}"
                asked, answered = await self.get(f"{conversation}/messages")
                self.assertEqual((asked.get("grade"), answered.get("grade")), (None, grade))
                exported = await self.get(f"{conversation}/export?format=json")
                self.assertEqual(members_named("grade", exported), [grade])
                events = await self.get(f"/chat/runs/{response.headers['Chat-Run']}/events")
                self.assertEqual(set(members_named("grade", events)), {grade})

    async def test_without_the_right_to_its_source_a_reader_gets_no_grade(self):
        _, response = await self.ask("/chat", QUESTIONS["given"])
        await in_database(set_audience, self.document, Audience())
        stored = await Message.objects.aget(pk=response.headers["Chat-Message"])
        conversation = f"/chat-history/{stored.conversation_id}"
        run = response.headers["Chat-Run"]
        for path in (
            f"{conversation}/messages",
            f"{conversation}/export?format=json",
            f"/chat/runs/{run}/events",
        ):
            with self.subTest(path):
                self.assertEqual(members_named("grade", await self.get(path)), [])


class GradeOfQuotationsTests(GoldenTestCase):
    def test_each_first_line_has_its_grade(self):
        quoted = {
            "given": QuotedAnswer(("> A",), True, is_part=True),
            "several": QuotedAnswer(("> A", "> B"), True, is_several=True),
            "likely": QuotedAnswer(("> A",), False, is_likely=True),
            "closest": QuotedAnswer(("> A",), False),
            "none": QuotedAnswer((), True),
        }
        self.assertEqual(
            {grade: each.grade for grade, each in quoted.items()}, {name: name for name in quoted}
        )
