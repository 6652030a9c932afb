"""Lists and rows are quoted with what belongs to them, and nothing is quoted twice."""

from chat.tests.quoting_case import QuotingCase
from chat.tests.sources import source
from history.tally import LIKELY, UNSURE


class QuotedListTests(QuotingCase):
    def test_an_item_of_a_long_list_is_quoted_with_all_of_its_sentences(self):
        item = "- The cook opens the kitchen. If the cook is away, a waiter opens the kitchen for the guests."
        others = [
            f"- {name} is cleaned by everybody who works there, {'very ' * 30}well." for name in "ABCDEFG"
        ]
        page = source(1, "inn.md", "\n".join([*others[:3], item, *others[3:]]))
        answer = self.answer("Who opens the kitchen for the guests?", sources=[page], fit=6.0)
        self.assertIn(f"> {item} [inn.md]", answer)
        self.assertNotIn("is cleaned", answer)

    def test_words_of_different_list_items_do_not_answer_together(self):
        filler = (
            "and keeps the papers in the cupboard beside the entrance of the hall until the end of the year"
        )
        items = [
            f"The chair reports the attendance at each meeting, {filler}.",
            f"The clerk finds a substitute for the choir, {filler}.",
            f"The treasurer pays whoever is ill, {filler}.",
            f"The guard opens the door, {filler}.",
        ]
        question = "Who finds a substitute for a meeting if I am ill?"
        answer = self.answer(question, sources=[source(1, "a.md", "\n".join(f"- {each}" for each in items))])
        self.assertTrue(answer.startswith((UNSURE, LIKELY)), answer)
        items[1] = "The clerk finds a substitute for a meeting if somebody is ill."
        answer = self.answer(question, sources=[source(1, "a.md", "\n".join(f"- {each}" for each in items))])
        self.assertFalse(answer.startswith((UNSURE, LIKELY)), answer)

    def test_a_passage_that_answers_two_questions_is_quoted_once(self):
        text = (
            "Members get a box of 35 litres. The box costs 8 pounds. Write your name on the box and its lid."
        )
        sources = [
            source(1, "a.md", f"We have little room for storage. {text}"),
            source(2, "b.md", "A box is useful."),
        ]
        answer = self.answer("How big is the box of members, and do I need a rack?", sources=sources)
        self.assertEqual(answer.count("35 litres"), 1, answer)

    def test_a_row_is_shown_below_the_name_of_its_group(self):
        rows = [
            "Item: Driveway; Fee: $25",
            "Item: Farm buildings",
            "Item: In area A; Fee: $50",
            "Item: In area B; Fee: $70",
            "Item: Houses",
            "Item: Under two floors; Fee: $200",
            "Item: Of two floors and more; Fee: $300",
            "Item: Garage; Fee: $45",
        ]
        answer = self.answer(
            "What is the fee in area B?", sources=[source(1, "fees.xlsx", "\n".join(rows))], fit=8.0
        )
        self.assertIn("| Farm buildings [fees.xlsx] |  |\n| In area B | $70 [fees.xlsx] |", answer)
        self.assertNotIn("Houses", answer)

    def test_a_list_below_announced_steps_is_quoted(self):
        text = "If the tunnel does not connect, try the following. If one step does not help, go on."
        steps = "- Restart the program.\n- Enter the address again."
        answer = self.answer(
            "What do I try if the tunnel does not connect?", sources=[source(1, "a.md", f"{text}\n\n{steps}")]
        )
        self.assertIn("> - Restart the program.\n> - Enter the address again.", answer)

    def test_a_list_that_is_added_to_another_is_quoted_with_it(self):
        text = (
            "In the room you wear:\n\n- Sterile gloves\n\nTo open a cage you also need:\n\n- Covers\n- A mask"
        )
        answer = self.answer("What do I need to open a cage?", sources=[source(1, "a.md", text)])
        self.assertIn("Sterile gloves", answer)
        self.assertIn("Covers", answer)

    def test_an_item_that_two_passages_share_is_quoted_once(self):
        items = ["- Submit a new grant", "- Submit a new paper to a journal", "- Submit new software"]
        sources = [
            source(1, "a.md", "\n".join(items[:2]), score=1.0),
            source(2, "a.md", "\n".join(items), score=0.99),
        ]
        answer = self.answer("Where do I submit a new paper to a journal?", sources=sources)
        self.assertEqual(answer.count("a new paper to a journal"), 1, answer)

    def test_the_end_of_a_sentence_below_its_list_is_marked(self):
        items = [f"{number}. if the {name} requires it, or" for number, name in enumerate("ABCDEF", start=1)]
        text = "\n".join(
            ["Young persons may work at the press", "", *(f"{item} {'much ' * 30}" for item in items), ""]
        )
        text += "\nand an expert protects the young persons from the press during the work."
        page = source(1, "law.md", text)
        answer = self.answer("Who protects young persons from the press?", sources=[page], fit=6.0)
        self.assertIn("> … and an expert", answer)
