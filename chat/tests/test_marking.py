"""Marked words of a passage."""

from unittest import TestCase

from chat.portal.labels import step
from chat.portal.source_panel import (
    flowing,
    marked,
)


class MarkingTests(TestCase):
    def test_pieces_are_the_text_whatever_the_spans(self):
        text = "One two three."
        for spans in ([], [[0, 3]], [[4, 7], [5, 14]], [[-5, 99]], [[7, 4]], [[3, 3]]):
            self.assertEqual("".join(piece.text for piece in marked(text, spans)), text)
        self.assertEqual(
            [piece.text for piece in marked(text, [[4, 7], [8, 14]]) if piece.marked], ["two", "three."]
        )

    def test_broken_lines_run_on_and_lists_stay(self):
        self.assertEqual(
            flowing("over the\nside.\n• In a boat\n\nNext"), "over the side.\n• In a boat\n\nNext"
        )
        self.assertEqual(len(flowing("a\nb")), 3)

    def test_rows_of_a_table_stay_on_lines_of_their_own(self):
        rows = "Sailing: W1; From: Sennick\nSailing: W2; From: Ellery"
        self.assertEqual(flowing(rows), rows)

    def test_a_message_of_the_prompt_is_shown_as_role_and_words(self):
        items = ["{'role': 'system', 'content': 'Be brief.\\nCite.'}", "{'role': broken", "plain"]
        shown = step({"title": "Prompt", "description": items, "props": {"has_vector": True}})
        self.assertEqual(shown.items, ["system:\nBe brief.\nCite.", "{'role': broken", "plain"])
        self.assertEqual(shown.facts, ["has vector: yes"])
