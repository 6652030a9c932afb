"""Without a language model, tasks such as summaries are answered by a notice and quotations."""

from chat.llm.chat_model import Prompt
from chat.quoting.questions.writing_tasks import is_writing_task, without_task
from chat.quoting.quoting_model import quote, search_query
from chat.requests import EarlierMessage
from chat.tests.quoting_case import QuotingCase
from chat.tests.sources import source
from history.tally import NEEDS_MODEL, Grade

TASKS = {
    "Summarise the employee handbook": "the employee handbook",
    "Can you summarize the safety manual in five bullet points?": "the safety manual",
    "Translate the leave policy into German.": "the leave policy",
    "Please compare maternity and paternity leave": "maternity and paternity leave",
    "Write an email to my manager asking for leave": "email to my manager asking for leave",
    "Give me a short summary of the travel rules": "the travel rules",
    "Fasse das Handbuch bitte zusammen": "das Handbuch bitte",
    "Kannst du die Regeln zum Urlaub zusammenfassen?": "die Regeln zum Urlaub",
    "Übersetzen Sie die Reisekostenregeln ins Englische": "die Reisekostenregeln",
    "Vergleiche Elternzeit und Mutterschutz": "Elternzeit und Mutterschutz",
    "Erstelle mir eine Zusammenfassung der Satzung": "der Satzung",
}
QUESTIONS = (
    "How do I write a report?",
    "Who translates documents?",
    "What is the difference between maternity and paternity leave?",
    "Can you write?",
    "Wie schreibe ich eine Rechnung?",
    "Fasst der Saal 200 Personen?",
    "What is the summary dismissal procedure?",
)
LEAVE = source(1, "handbook.md", "Annual leave is 27 days a year.", heading="Leave", score=0.9)


class WritingTaskTests(QuotingCase):
    def test_a_task_is_told_from_a_question(self):
        for task, subject in TASKS.items():
            with self.subTest(task):
                self.assertTrue(is_writing_task(task))
                self.assertEqual(without_task(task), subject)
        for question in QUESTIONS:
            with self.subTest(question):
                self.assertFalse(is_writing_task(question))
                self.assertEqual(without_task(question), question)

    def test_a_task_without_a_subject_stays_whole(self):
        self.assertEqual(without_task("Summarise it"), "Summarise it")

    def test_the_notice_precedes_passages_about_the_subject(self):
        task = "Summarise the rules on annual leave"
        answer = self.answer(task, sources=[LEAVE], fit=6.0)
        self.assertTrue(answer.startswith(f"{NEEDS_MODEL}\n\n"), answer)
        self.assertIn("27 days", answer)
        self.assertEqual(quote(Prompt(task, [], [LEAVE], 0.3, fit=6.0)).grade, Grade.CLOSEST)
        earlier = [EarlierMessage("user", "How are travel expenses paid?")]
        self.assertEqual(search_query(task, []).text, "the rules on annual leave")
        self.assertEqual(search_query("Summarise the handbook", earlier).text, "the handbook")

    def test_the_notice_precedes_the_sentence_that_nothing_was_found(self):
        answer = self.answer("Translate the lease into German", sources=[])
        self.assertEqual(answer, f"{NEEDS_MODEL}\n\n{Prompt('', [], [], 0.3).nothing_found}")
