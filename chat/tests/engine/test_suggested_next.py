"""What is suggested to ask next, after answers of several grades."""

from chat.llm.chat_model import End, Text
from chat.quoting.quoted_answer import LIKELY, OTHERS
from chat.quoting.quoting_model import QuotingModel
from chat.tests.golden_exchange import GoldenTestCase
from history.tally import UNSURE
from ingestion.models import Document
from ingestion.tests.factories import make_document

LEAVE = (
    ("page=1", 1, "Leave › Annual leave", "Annual leave is 27 days. It is booked with the manager. " * 2),
    ("page=2", 2, "Leave › Loss of a baby", "After the loss of a baby ten days are paid. " * 3),
    ("page=3", 3, "Leave › Storms", "In a storm the ferries stay in the harbour for passengers. " * 3),
)


class SuggestedNextTests(GoldenTestCase):
    def setUp(self):
        super().setUp()
        make_document("leave.md", LEAVE, everyone=True)

    async def asked(self, question, model=None):
        body = {
            "messages": [{"role": "user", "content": question}],
            "context": {"overrides": {"suggest_followup_questions": True}},
        }
        response = await self.post("/chat", body, model=model or QuotingModel())
        said = response.json()
        return said["message"]["content"], said["context"].get("followup_questions", [])

    async def test_an_answer_suggests_other_subjects_of_its_document(self):
        answer, questions = await self.asked("How many days is annual leave?")
        self.assertIn("27 days", answer)
        self.assertNotIn(UNSURE, answer)
        self.assertTrue(any("Loss of a baby" in question for question in questions), questions)

    async def test_the_quoted_passage_answers_no_suggestion(self):
        class Repeating(QuotingModel):
            async def followups(self, prompt, answer):
                return ["With whom is leave booked?", "How many days are paid after the loss of a baby?"]

        _, questions = await self.asked("How many days is annual leave?", Repeating())
        self.assertEqual(questions, ["How many days are paid after the loss of a baby?"])

    async def test_a_general_question_of_the_document_is_suggested_if_nothing_is_closer(self):
        standing = [
            "Where do the ferries stay in a storm?",
            "How many days are paid after the loss of a baby?",
        ]
        await Document.objects.aupdate(questions=standing)
        _, questions = await self.asked("How many days is annual leave?")
        self.assertTrue(questions)
        self.assertTrue(set(standing).isdisjoint(questions), questions)

        class Silent(QuotingModel):
            async def followups(self, prompt, answer):
                return []

        _, questions = await self.asked("How many days is annual leave?", Silent())
        self.assertEqual(questions, standing[1:])

    async def test_closest_passages_suggest_nothing(self):
        answer, questions = await self.asked("Does the ferry leave with a baby on board in January?")
        self.assertTrue(answer.startswith(UNSURE), answer)
        self.assertEqual(questions, [])

    async def test_only_the_first_passage_of_a_possible_answer_suggests_questions(self):
        said = []

        class Hedging(QuotingModel):
            async def answer(self, prompt):
                label = prompt.sources[0].label
                yield Text(f"{LIKELY}\n\n> First. [{label}]\n\n{OTHERS}\n\n> Second. [{label}]")
                yield End("stop")

            async def followups(self, prompt, answer):
                said.append(answer)
                return []

        await self.asked("How many days is annual leave?", Hedging())
        self.assertIn("First.", said[0])
        self.assertNotIn("Second.", said[0])
