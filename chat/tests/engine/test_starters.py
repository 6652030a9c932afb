"""Suggested questions and follow-ups get an answer: the sample documents, asked over HTTP."""

import json

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import AsyncClient, TransactionTestCase, override_settings
from django.utils.translation import override

from chat.llm.chat_model import NOTHING_FITS
from chat.portal.starters import STARTS, starts
from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import Principal
from chatsite.db.threads import in_database
from chatsite.demo import SAMPLES
from history.tally import UNSURE
from ingestion.models import Document
from ingestion.search.translations import language_of
from ingestion.tests.factories import make_user
from ingestion.tests.media import MediaMixin

FOLLOWED = 2  # follow-up questions in a row, each suggested by the answer before


@pytest.mark.slow
@override_settings(JOURNAL_FLUSH_SECONDS=0.02, QUOTING_WORDS_PER_SECOND=0)
class SuggestionTests(MediaMixin, TransactionTestCase):
    def setUp(self):
        super().setUp()
        cache.clear()
        self.user = make_user("asker")
        self.key, self.secret = ApiKey.objects.issue(self.user, "test")
        call_command("ingest", str(SAMPLES / "everyone"), everyone=True, verbosity=0)

    async def ask(self, question, state=None):
        body = {"messages": [{"role": "user", "content": question}], "session_state": state}
        body["context"] = {"overrides": {"suggest_followup_questions": True}}
        headers = {"Authorization": f"Bearer {self.secret}"}
        answer = await AsyncClient().post("/chat", json.dumps(body), "application/json", headers=headers)
        return answer.json()

    def assert_clear(self, answer, question):
        text = answer["message"]["content"]
        self.assertNotEqual(text, NOTHING_FITS, question)
        self.assertFalse(text.startswith(UNSURE), (question, text))

    async def follow(self, questions):
        """Ask these and the follow-ups suggested by their answers; return how many were suggested."""
        suggested = 0
        for question in questions:
            answer = await self.ask(question)
            self.assert_clear(answer, question)
            for _ in range(FOLLOWED):
                following = answer["context"].get("followup_questions", [])
                suggested += len(following)
                if following:
                    answer = await self.ask(following[-1], answer["session_state"])
                    self.assert_clear(answer, following[-1])
        return suggested

    async def test_every_question_suggested_over_the_samples_is_answered_clearly(self):
        principal = Principal(self.user.pk, "command")
        made = await in_database(starts, principal)
        self.assertEqual(len(made), STARTS)
        suggested = await self.follow([start.question for start in made])
        self.assertGreater(suggested, 0)
        # Questions written for the samples replace those made from their headings.
        written = json.loads((SAMPLES / "starters.json").read_text())
        for document in await in_database(list, Document.objects.all()):
            update = Document.objects.filter(pk=document.pk).update
            await in_database(update, questions=written[document.name], version=document.version + 1)
        chosen = [start.question for start in await in_database(starts, principal)]
        self.assertEqual(len(chosen), STARTS)
        self.assertLessEqual(set(chosen), {question for some in written.values() for question in some})
        await self.follow(chosen)
        with override("de"):
            german = [start.question for start in await in_database(starts, principal)]
        self.assertEqual({language_of(question) for question in german}, {"german"}, german)
        self.assertEqual(len(german), STARTS)
        await self.follow(german)
        for question in (each for some in written.values() for each in some):
            if language_of(question) == "german" and "Gehalt" not in question:  # only HR may read that answer
                self.assert_clear(await self.ask(question), question)

    async def test_a_heading_without_meaning_of_its_own_is_not_suggested(self):
        document = (await in_database(list, Document.objects.filter(name="working-abroad.md")))[0]
        questions = ["What should I know about “Short stays”?", "Who may work from abroad?"]
        await in_database(Document.objects.exclude(pk=document.pk).delete)
        await in_database(Document.objects.filter(pk=document.pk).update, questions=questions)
        found = await in_database(starts, Principal(self.user.pk, "command"))
        self.assertEqual([start.question for start in found], questions[1:])

    async def test_attached_files_suggest_no_questions(self):
        principal = Principal(self.user.pk, "command")
        self.assertTrue(await in_database(starts, principal))
        await in_database(Document.objects.update, folder="Attachments/2026-11-27")
        self.assertEqual(await in_database(starts, principal), [])
