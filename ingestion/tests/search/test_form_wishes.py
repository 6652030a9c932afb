"""Sentences that only say what form the answer should have are left out of the search."""

from django.test import SimpleTestCase

from ingestion.search.form_wishes import without_form_wishes

LEAVE = "Until when can I use up last year's leave?"
URLAUB = "Bis wann kann ich meinen Resturlaub nehmen?"


class FormWishTests(SimpleTestCase):
    def test_wishes_before_and_after_a_question_are_removed(self):
        for wish in (
            "Answer in one sentence.",
            "Please answer briefly and in German.",
            "Keep your answer under 50 words.",
            "Use bullet points. At most five, please, in English words.",
            "Return the correct JSON response within a ```json codeblock. not the JSON_SCHEMA",
            "Short answer please",
            "Cite your sources. Thanks!",
        ):
            with self.subTest(wish):
                self.assertEqual(without_form_wishes(f"{LEAVE} {wish}"), LEAVE)
        self.assertEqual(without_form_wishes(f"Answer in one sentence: {LEAVE}"), LEAVE)
        self.assertEqual(without_form_wishes(f"Be concise.\n\n{LEAVE}"), LEAVE)
        for wish in (
            "Antworte in einem Satz.",
            "Bitte kurz und knapp.",
            "Bitte in Stichpunkten, höchstens fünf.",
        ):
            with self.subTest(wish):
                self.assertEqual(without_form_wishes(f"{URLAUB} {wish}"), URLAUB)

    def test_other_sentences_stay(self):
        for question in (
            LEAVE,
            "I am ill. Whom must I tell? My manager does not answer.",
            "I need a form. Give me the form for parental leave.",
            "What must a short report contain? The report is for the board.",
            "Languages: English. Which words are used for sources of light?",
            "How long is the answer period? The reply to a complaint takes weeks.",
        ):
            with self.subTest(question):
                self.assertEqual(without_form_wishes(question), question)

    def test_a_message_that_is_only_a_wish_stays(self):
        for wish in ("Answer in one sentence.", "Und bitte kurz.", "", " "):
            self.assertEqual(without_form_wishes(wish), wish)
