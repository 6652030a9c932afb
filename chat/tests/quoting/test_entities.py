"""Whether a text says who does something, or where something is."""

from django.test import SimpleTestCase

from chat.quoting.questions.entities import asks_where, has_place, says_who


class WhoAndWhereTests(SimpleTestCase):
    def test_a_passive_without_an_agent_does_not_say_who(self):
        question = "Who approves overtime?"
        for text, says in (
            ("Overtime must be approved before it is worked.", False),
            ("Overtime is first approved by your manager.", True),
            ("The line manager approves it. It is approved in advance.", True),
            ("Purpose: Approval of overtime; Send to: Line manager", True),
        ):
            self.assertEqual(says_who(question, text), says, text)
        self.assertTrue(says_who("Is overtime approved?", "Overtime must be approved."))

    def test_a_question_for_a_place_is_distinguished_from_a_clause(self):
        for question in ("Where do I get a uniform?", "And where can I park?", "Wo bekomme ich Kleidung?"):
            self.assertTrue(asks_where(question), question)
        for question in ("Is there a place where people rest?", "What if I stay where I am?"):
            self.assertFalse(asks_where(question), question)

    def test_a_place_is_not_a_time_or_manner(self):
        for text in (
            "It is issued at the clothing store.",
            "4 The Boulevard Leeds",
            "Send it to your manager.",
            "Die Karte gibt es am Empfang.",
            "Item: Shoes; Store: Quay",
        ):
            self.assertTrue(has_place(text), text)
        for text in ("It is supplied on request.", "You claim £70 in advance.", "It is closed on Mondays."):
            self.assertFalse(has_place(text), text)
