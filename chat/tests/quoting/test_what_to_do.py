"""Questions that ask what to do in some case, and texts that tell somebody to do something."""

from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.questions.instructions import asks_what_to_do, tells_to
from chat.quoting.quoting_model import quote
from chat.tests.sources import source

PAY = source(
    1,
    "pay.md",
    "After an accident with a forklift full pay lasts for nine weeks. The works council confirms the cause.",
    heading="Pay",
    score=0.95,
)
REPORT = source(
    2,
    "safety.md",
    "Stop the forklift after an accident and tell the shift leader at once.",
    heading="Warehouse",
    score=0.9,
)


class WhatToDoTests(SimpleTestCase):
    def test_a_question_for_what_to_do_is_recognised(self):
        for question in (
            "What do I do if the gate is locked?",
            "The gate is locked, what should I do?",
            "What do we have to do after a leak?",
            "What is to be done in case of a leak?",
            "Was muss ich tun, wenn das Tor verschlossen ist?",
            "Das Tor ist verschlossen, was mache ich?",
            "Was ist bei einem Leck zu tun?",
        ):
            self.assertTrue(asks_what_to_do(question), question)
        for question in (
            "What do I get for a day's work?",
            "What do I do with my bonus points?",
            "Was kostet ein Platz?",
            "What does the works council do?",
        ):
            self.assertFalse(asks_what_to_do(question), question)

    def test_an_instruction_is_recognised(self):
        for text in (
            "Tell the porter.",
            "The porter must be told.",
            "A leak is reported to the porter.",
            "Close the valve. Then leave the room.",
            "Ein Leck ist unverzüglich zu melden.",
            "Bitte den Pförtner rufen.",
        ):
            self.assertTrue(tells_to(text), text)
        for text in ("The porter knows the way.", "Full pay lasts for nine weeks.", "Das Tor ist aus Holz."):
            self.assertFalse(tells_to(text), text)

    def test_a_text_without_an_instruction_does_not_answer(self):
        quoted = quote(Prompt("What do I do after an accident with a forklift?", [], [PAY], 0.3, fit=1.5))
        self.assertFalse(quoted.is_sure or quoted.is_likely)

    def test_the_instruction_comes_first(self):
        for question in (
            "What do I do after an accident with a forklift?",
            "What must we do after an accident with a forklift?",
        ):
            quoted = quote(Prompt(question, [], [PAY, REPORT], 0.3, fit=1.5))
            self.assertIn("Stop the forklift", quoted.texts[0], question)
