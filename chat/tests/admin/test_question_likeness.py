"""Questions that describe a situation, and texts that are not questions."""

from django.test import SimpleTestCase

from chat.unanswered.question_likeness import MAX_READ, describes_situation, is_small_talk, numbered


class SituationTests(SimpleTestCase):
    def test_a_situation_mentions_its_asker_and_has_some_length(self):
        for text in (
            "I lost my badge on the tram, who do I ring?",
            "Wem sage ich Bescheid, wenn ich krank bin?",
            "How do I see what my colleagues wrote last week?",
        ):
            self.assertTrue(describes_situation(text), text)
        for text in (
            "How do I print a page?",
            "In which port, and when, is the dock of the Lady Marlowe?",
            "",
        ):
            self.assertFalse(describes_situation(text), text)


class LikenessTests(SimpleTestCase):
    def test_greetings_and_thanks_ask_nothing(self):
        for text in ("Hi", "Hello!", "Good morning", "Vielen Dank!", "test", "Hello, how are you?", "?"):
            self.assertTrue(is_small_talk(text), text)
        for text in ("Hi, how much leave do I get?", "Who can help me?", "Good shoes?", "Is it open today?"):
            self.assertFalse(is_small_talk(text), text)

    def test_text_pasted_after_a_question_is_not_compared(self):
        start = "How do I read this log? " + " ".join(f"line{number}" for number in range(MAX_READ))
        self.assertEqual(
            numbered([f"{start} one end", f"{start} quite another tail", "Who is it?"]), [0, 0, 1]
        )
