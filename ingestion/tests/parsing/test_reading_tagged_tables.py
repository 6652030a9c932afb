"""Tables of PDFs whose tags name rows and cells, as browsers print them."""

import tempfile
from pathlib import Path
from unittest import mock

from django.test import SimpleTestCase

from ingestion.parsing.boxes import boxes_of
from ingestion.parsing.readers import pdf_tags
from ingestion.parsing.readers.pdf import characters
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading

NAMES = [("TH", 0, "Situation"), ("TH", 1, "What happens")]
ROWS = {
    0: NAMES,
    1: [("TD", 0, "Another count\nis in progress"), ("TD", 1, "Blocked with\nan error.")],
    2: [("TD", 0, "A negative\nquantity is\nentered"), ("TD", 1, "Rejected.")],
}
LINES = [
    "Situation: Another count is in progress; What happens: Blocked with an error.",
    "Situation: A negative quantity is entered; What happens: Rejected.",
]


class TaggedTablesTests(SimpleTestCase):
    def pages(self, *pages, **more):
        sections = reading("a.pdf", building.tagged(*pages, **more)).sections
        found = [[] for _ in pages]
        for section in sections:
            found[section.page - 1] += section.text.split("\n")
        return found

    def test_the_lines_of_a_cell_belong_together(self):
        self.assertEqual(self.pages(ROWS), [LINES])

    def test_text_beside_a_cell_on_its_line_is_kept(self):
        page = {0: [*NAMES, ("", 2, "Draft")], 1: ROWS[1]}
        self.assertEqual(self.pages(page), [["Draft", LINES[0]]])

    def test_a_row_that_continues_on_the_next_page_is_complete_on_the_first(self):
        second = {1: [("TD", 1, "See Section 3.")]}
        whole = f"{LINES[0]} See Section 3."
        for header in ({}, {0: NAMES}):  # browsers repeat the header, other programs do not
            for further, lines in (({2: ROWS[2]}, [LINES[1]]), ({}, [])):
                found = self.pages({0: NAMES, 1: ROWS[1]}, header | second | further)
                self.assertEqual(found, [[whole], lines])

    def test_rows_of_the_next_page_have_the_names_of_the_columns(self):
        self.assertEqual(self.pages({0: NAMES, 1: ROWS[1]}, {2: ROWS[2]}), [[LINES[0]], [LINES[1]]])

    def test_names_that_are_repeated_on_the_next_page_without_tags_are_not_text(self):
        repeated = {0: [("", column, name) for _, column, name in NAMES]}
        found = self.pages({0: NAMES, 1: ROWS[1]}, repeated | {2: ROWS[2]})
        self.assertEqual(found[1], [LINES[1]])
        alike = {0: [("", 0, "Situation"), ("", 1, "What follows")]}
        found = self.pages({0: NAMES, 1: ROWS[1]}, alike | {2: ROWS[2]})
        self.assertEqual(found[1], ["Situation What follows", LINES[1]])

    def test_a_table_of_its_own_on_the_next_page_may_be_the_rest(self):
        rest = {0: [("TD", 1, "See Section 3.")], 1: ROWS[2]}
        whole = f"{LINES[0]} See Section 3."
        for after, lines in (({}, [LINES[1]]), ({2: [("TD", 0, "Loss"), ("TD", 1, "None")]}, None)):
            pages = self.pages({0: NAMES, 1: ROWS[1]}, rest | after, split=True)
            self.assertEqual(pages[0], [whole])
            self.assertEqual(pages[1], lines or [LINES[1], "Situation: Loss; What happens: None"])
        between = {2: [("", 0, f"{place}. Further text") for place in range(1)], 3: [("", 0, "and more")]}
        between |= {4: [("", 0, "and this.")], 5: ROWS[2]}
        text = " ".join(self.pages({0: NAMES, 1: ROWS[1]}, between, split=True)[1])
        self.assertNotIn("Situation:", text)

    def test_column_names_at_the_end_of_a_page_apply_to_the_next_page(self):
        self.assertEqual(self.pages({0: NAMES}, {1: ROWS[1], 2: ROWS[2]})[1], LINES)

    def test_backgrounds_of_tables_and_rows_are_not_cells(self):
        plain = {0: [("TD", 0, "Port"), ("TD", 1, "Fare")], 1: [("TD", 0, "Ellery"), ("TD", 1, "45")]}
        self.assertEqual(self.pages(plain, background=True), [["Port: Ellery; Fare: 45"]])
        self.assertEqual(self.pages({0: NAMES, 1: ROWS[1]}, {2: ROWS[2]}, background=True)[1], [LINES[1]])

    def test_a_cell_is_below_its_name_although_empty_cells_have_no_tags(self):
        names = [("TH", 0, "Rule"), ("TH", 1, "Level 1"), ("TH", 2, "Level 2")]
        page = {0: names, 1: [("TD", 0, "Log in"), ("TD", 2, "yes")], 2: [("TD", 1, "yes"), ("TD", 2, "no")]}
        self.assertEqual(self.pages(page), [["Rule: Log in; Level 2: yes", "Level 1: yes; Level 2: no"]])

    def test_the_sign_for_numbers_names_a_column(self):
        page = {0: [("TH", 0, "#"), ("TH", 1, "Task")], 1: [("TD", 0, "7"), ("TD", 1, "Sweep")]}
        self.assertEqual(self.pages(page), [["#: 7; Task: Sweep"]])

    def test_names_of_rows_name_no_columns(self):
        page = {0: [("TH", 0, "Town"), ("TD", 1, "Ellery")], 1: [("TH", 0, "Name"), ("TD", 1, "Ann")]}
        self.assertEqual(self.pages(page), [["Town; Ellery", "Name; Ann"]])

    def test_a_layout_table_with_long_texts_is_not_a_table(self):
        text = "\n".join(["The ferry leaves at nine in the morning"] * 24)
        page = {0: [("TD", 0, text), ("TD", 2, "News")], 1: [("TD", 0, "Imprint"), ("TD", 2, "Contact")]}
        self.assertNotIn(";", str(self.pages(page)))

    def test_words_of_a_cell_are_found_on_the_page(self):
        with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
            file.write(building.tagged(ROWS))
            file.flush()
            page = characters(Path(file.name), 1)
        start = LINES[0].index("is in progress")
        (box,) = boxes_of(page, LINES[0], [(start, start + len("is in progress"))])
        (name,) = boxes_of(page, LINES[0], [(len("Situation: "), len("Situation: Another count"))])
        self.assertEqual(box[0], name[0])
        self.assertLess(name[1], box[1])

    def test_a_page_has_only_so_many_tags(self):
        with mock.patch.object(pdf_tags, "MAX_TAGS", 5):
            self.assertNotIn("Situation: A negative", str(self.pages(ROWS)))
