"""Marked words of a passage."""

from types import SimpleNamespace
from unittest import TestCase

from django.utils.translation import override

from chat.portal.citing.passage_parts import Piece, flowing, marked, parts_of
from chat.portal.source_panel import _proof_of
from chat.portal.step_texts import step
from chat.statements import Proof


class MarkingTests(TestCase):
    def test_the_pieces_join_to_the_text_for_any_spans(self):
        text = "One two three."
        for spans in ([], [[0, 3]], [[4, 7], [5, 14]], [[-5, 99]], [[7, 4]], [[3, 3]]):
            self.assertEqual("".join(piece.text for piece in marked(text, spans)), text)
        self.assertEqual(
            [piece.text for piece in marked(text, [[4, 7], [8, 14]]) if piece.marked], ["two", "three."]
        )

    def test_wrapped_lines_are_joined_and_lists_stay(self):
        self.assertEqual(
            flowing("over the\nside.\n• In a boat\n\nNext"), "over the side.\n• In a boat\n\nNext"
        )
        self.assertEqual(len(flowing("a\nb")), 3)

    def test_rows_of_a_table_stay_on_separate_lines(self):
        rows = "Sailing: W1; From: Sennick\nSailing: W2; From: Ellery"
        self.assertEqual(flowing(rows), rows)

    def test_a_paragraph_after_a_table_does_not_run_into_its_last_cell(self):
        text = "Days: 3; Hours: 36\nDays: 2; Hours: 24\nPart-time staff carry over\none week."
        self.assertEqual(flowing(text), text.replace("over\none", "over one"))
        table, after = parts_of(flowing(text), [])
        self.assertEqual(table.rows[1][1], [Piece("24", False)])
        self.assertEqual(after.pieces, [Piece("Part-time staff carry over one week.", False)])

    def test_a_table_is_stacked_if_it_is_broader_than_a_phone(self):
        sentence = "20 minutes before departure"
        for row, stacked in (
            ("Sailing: W1; Depart: 09:05; Arrive: 09:55", False),
            (f"Sailing: {sentence}; Depart: {sentence}", False),
            (f"Sailing: W1; Depart: {sentence}; Arrive: {sentence}", True),
        ):
            for rows in (1, 30):
                (table,) = parts_of("\n".join([row] * rows), [])
                self.assertEqual(table.stacked, stacked, (row, rows))

    def test_a_message_of_the_prompt_is_shown_as_role_and_words(self):
        items = ["{'role': 'system', 'content': 'Be brief.\\nCite.'}", "{'role': broken", "plain"]
        shown = step({"title": "Prompt", "description": items, "props": {"has_vector": True}})
        self.assertEqual(shown.items, ["system:\nBe brief.\nCite.", "{'role': broken", "plain"])
        self.assertEqual(shown.title, "What the answer was made from")
        self.assertEqual(shown.facts, ["searched by meaning, too: yes"])

    def test_steps_are_translated_and_unknown_ones_stay(self):
        props = {"retrieval_mode": "hybrid", "my_own": 3}
        with override("de"):
            shown = step({"title": "Generated search query", "description": "Urlaub", "props": props})
        self.assertEqual(shown.title, "Wonach gesucht wurde")
        self.assertEqual(shown.facts, ["Art der Suche: Wörter und Bedeutung", "my own: 3"])
        self.assertEqual(step({"title": "Third"}).title, "Third")

    def test_rows_of_a_table_are_shown_as_a_table_with_marked_words(self):
        rows = "Case: Ordinary; Days: 5\nCase: Agreed; Use by: 30 June; see 4.2\n"
        content = f"Carry-over by case\n{rows}\nMore text."
        quote = content.index("30 June")
        before, table, after = parts_of(content, [(quote, quote + 7)])
        self.assertEqual(before.pieces, [Piece("Carry-over by case\n", False)])
        self.assertEqual(table.head, ["Case", "Days", "Use by"])
        self.assertEqual(
            table.rows,
            [
                [[Piece("Ordinary", False)], [Piece("5", False)], []],
                [[Piece("Agreed", False)], [], [Piece("30 June", True), Piece("; see 4.2", False)]],
            ],
        )
        self.assertEqual(after.pieces, [Piece("\nMore text.", False)])

    def test_prose_with_a_colon_is_not_a_table(self):
        for text in ("Note: this is prose.", "One; two; three", "a: b\nc: d", ""):
            self.assertFalse(any(part.head for part in parts_of(text, [])), text)

    def test_a_chip_opens_the_passage_and_the_words_of_its_own_statement(self):
        proofs = [Proof(2, 5, "a.md", "quoted", 1, ((0, 4),)), Proof(8, 9, "a.md", "not_found", 2, ())]
        answer = SimpleNamespace(proofs=proofs, citations=SimpleNamespace(order=["a.md", "b.md"]))
        self.assertEqual([_proof_of(answer, 1, nth) for nth in (0, 1, 2, 3)], [None, *proofs, None])
        self.assertIsNone(_proof_of(answer, 2, 1))
