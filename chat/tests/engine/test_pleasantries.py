"""Greetings and thanks get a polite answer without a search, and do not count as unanswered questions."""

from django.test import SimpleTestCase

from chat.llm.chat_model import NOTHING_FITS
from chat.pleasantries import ANSWERS, answer_to
from chat.tests.golden_exchange import GoldenTestCase
from history.models import Message


class PleasantriesTests(SimpleTestCase):
    def test_a_pleasantry_is_answered_in_its_language(self):
        for message, beginning in (
            ("Thanks!", "You’re welcome"),
            ("That's great, thanks a lot!", "You’re welcome"),
            ("hello", "Hello!"),
            ("Good morning", "Hello!"),
            ("Hello, how are you?", "Hello!"),
            ("hello, who are you?", "Hello! This site answers questions"),
            ("Who are you, and what can you do for me?", "Hello! This site answers questions"),
            ("What is this site?", "Hello! This site answers questions"),
            ("Hallo, wer sind Sie?", "Guten Tag! Diese Website beantwortet"),
            ("Was kannst du?", "Guten Tag! Diese Website beantwortet"),
            ("What documents do you have?", "The page “Documents” lists"),
            ("How many documents can I read?", "The page “Documents” lists"),
            ("What can I ask you?", "The page “Documents” lists"),
            ("Welche Dokumente gibt es?", "Die Seite „Dokumente“ führt"),
            ("Was kann ich alles fragen?", "Die Seite „Dokumente“ führt"),
            ("Danke", "Gern geschehen"),
            ("Vielen Dank für die Hilfe!", "Gern geschehen"),
            ("Guten Morgen", "Guten Tag"),
            ("Tschüss", "Auf Wiedersehen"),
        ):
            with self.subTest(message=message):
                self.assertTrue(answer_to(message).startswith(beginning), answer_to(message))

    def test_a_possible_question_is_searched_for(self):
        for message in (
            "Thanks, and how long is leave?",
            "Danke, und wie lange ist der Urlaub?",
            "Hi, how much leave do I get?",
            "Thank you letter",
            "Who are you insured with?",
            "What documents are there for a visa?",
            "Which documents do I need for parental leave?",
            "Welche Unterlagen gibt es zur Elternzeit?",
            "What can you do about noise?",
            "Wer sind Sie als Arbeitgeber?",
            "morning",
            "ok",
            "yes",
            "",
            "?",
        ):
            with self.subTest(message=message):
                self.assertEqual(answer_to(message), "")


class AnsweredWithoutASearchTests(GoldenTestCase):
    async def test_every_protocol_gives_the_line_without_sources(self):
        said = [{"role": "user", "content": "Danke!"}]
        for path in ("/chat", "/ask", "/v1/chat/completions"):
            with self.subTest(path=path):
                response = await self.post(path, {"messages": said, "model": "chatsite"})
                self.assertContains(response, "Gern geschehen.")
        async for message in Message.objects.filter(role="assistant"):
            self.assertIn(message.content, ANSWERS)
            self.assertEqual((message.labels, message.verification), ([], []))
            self.assertIsNone(message.searched_count)

    async def test_a_question_after_thanks_is_searched_for(self):
        body = {"messages": [{"role": "user", "content": "Thanks, and which quark is heaviest?"}]}
        response = await self.post("/chat", body)
        self.assertContains(response, NOTHING_FITS.split(".")[0])

    async def test_the_page_says_that_nothing_was_searched(self):
        await self.post("/chat", {"messages": [{"role": "user", "content": "Thanks!"}]})
        message = await Message.objects.select_related("conversation").aget(role="assistant")
        await self.async_client.aforce_login(self.user)
        page = await self.async_client.get(f"/c/{message.conversation_id}/")
        self.assertContains(page, "You’re welcome.")
        self.assertContains(page, "Answered without a search")
        self.assertNotContains(page, "ound nothing")
