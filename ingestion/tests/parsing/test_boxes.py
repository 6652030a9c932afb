"""Boxes around words, compared with the pixels of these words on the page's image."""

import io
import tempfile
from pathlib import Path

import pytest
from django.test import SimpleTestCase
from PIL import Image, ImageChops

from ingestion.parsing.boxes import boxes_of
from ingestion.parsing.readers.pdf import characters, render
from ingestion.tests.building import drawn, pdf

BEFORE = "An ordinary line that nobody has cited, with some gravity."
CITED = "Carried days lapse (fully) on 31 March, by agreement."
COLUMN = "(" + 30 * "x" + ") Tj 0 -20 Td"  # the next column begins after it
PIXELS = 2


def two_columns(data):
    return data.replace(COLUMN.encode(), b"270 40 Td".ljust(len(COLUMN)))


def turned(angle):
    return lambda data: data.replace(b"/Resources<<", b"/Rotate %d/Resources<<" % angle)


def cropped(data):
    return data.replace(b"/Resources<<", b"/CropBox[40 500 500 830]/Resources<<")


def wide(data):
    return data.replace(b"/MediaBox[0 0 595 842]", b"/MediaBox[0 0 842 595]")


UPWARDS, DOWNWARDS = "0 1 -1 0 842 0 cm", "0 -1 1 0 0 595 cm"
# A table with words that also occur elsewhere on the page; one cell has two lines.
TEXT = "Ordinary leave is 5 days by pay, until 31 March."
HEAD = ["Case, by name", "Days", "Use by"]
ROWS = [
    [["(Ordinary), by pay"], ["(5, by pay)"], ["31 March, gladly"]],
    [["(Long illness,", "by agreement)"], ["(10, by pay)"], ["31 March, gladly"]],
    [["(Ordinary), by pay"], ["(10, by pay)"], ["5 April, gladly"]],
]
ROW_TEXTS = [
    "; ".join(f"{name}: {' '.join(cell)}" for name, cell in zip(HEAD, row, strict=True)) for row in ROWS
]
CELLS = [(row, column) for row in range(len(ROWS)) for column in range(len(HEAD))]
COLUMNS = (50, 250, 350)
ROW_HEIGHT = 40


def ruled_table(without=None, matrix=""):
    """A page with this text and table; the cell in the row and column of `without` is empty."""
    parts = [matrix, f"BT /F1 11 Tf 1 0 0 1 50 780 Tm ({_escaped(TEXT)}) Tj ET"]
    for number, row in enumerate([[[name] for name in HEAD], *ROWS]):
        top = 740 - ROW_HEIGHT * number
        parts.append(f"50 {top + 14} m 500 {top + 14} l S")
        for column, (left, cell) in enumerate(zip(COLUMNS, row, strict=True)):
            if (number - 1, column) != without:
                parts += [
                    f"BT /F1 11 Tf 1 0 0 1 {left} {top - 13 * line} Tm ({_escaped(words)}) Tj ET"
                    for line, words in enumerate(cell)
                ]
    parts.append(f"50 {740 - ROW_HEIGHT * 4 + 14} m 500 {740 - ROW_HEIGHT * 4 + 14} l S")
    return drawn("\n".join(parts))


def _escaped(text):
    return text.replace("(", r"\(").replace(")", r"\)")


@pytest.mark.slow
class BoxTests(SimpleTestCase):
    def written(self, data):
        path = Path(self.enterContext(tempfile.TemporaryDirectory()), "a.pdf")
        path.write_bytes(data)
        return path

    def image(self, data):
        return Image.open(io.BytesIO(render(self.written(data), 1))).convert("L")

    def boxes(self, data, content, span):
        """The boxes, in pixels of the image."""
        page = characters(self.written(data), 1)
        scale = self.image(data).width / page["width"]
        return [[side * scale for side in box] for box in boxes_of(page, content, [span])]

    def assert_on_ink(self, lines, content, words, change=bytes):
        """Assert that each word has a box, where a page without these words is blank."""
        span = content.index(words[0]), content.index(words[-1]) + len(words[-1])
        found = self.boxes(change(pdf(lines)), content, span)
        self.assertEqual(len(found), len(words), found)
        for box, each in zip(found, words, strict=True):
            without = [line.replace(each, " " * len(each)) for line in lines]
            ink = ImageChops.difference(
                self.image(change(pdf(lines))), self.image(change(pdf(without)))
            ).point(lambda grey: 255 * (grey > 60))
            for side, expected in zip(box, ink.getbbox(), strict=True):
                self.assertLess(abs(side - expected), PIXELS, (each, box, ink.getbbox()))

    def test_a_sentence_has_its_box_on_rotated_and_cropped_pages_too(self):
        content = f"{BEFORE} {CITED}"
        for change in (bytes, turned(90), turned(180), turned(270), cropped):
            self.assert_on_ink([BEFORE, CITED, BEFORE], content, [CITED], change)

    def test_words_that_continue_on_the_next_line_have_a_box_on_each(self):
        lines = ["By agreement carried days lapse in", "March (gladly), by agreement,", "and that is all."]
        content = "By agreement carried days lapse in March (gladly), by agreement, and that is all."
        words = ["days lapse in", "March (gladly), by agreement,"]
        self.assert_on_ink(lines, content, words)

    def test_a_sentence_in_the_second_column_has_its_box_there(self):
        lines = [
            "The left column begins",
            "and goes on, gently.",
            30 * "x",
            "By the right column",
            "ends it, gently.",
        ]
        content = "The left column begins and goes on, gently. By the right column ends it, gently."
        self.assert_on_ink(lines, content, ["By the right column"], two_columns)

    def test_among_equal_words_those_of_the_passage_get_the_box(self):
        lines = ["Other text: (gladly) by day.", "This one: (gladly) by day."]
        first, _ = (
            self.boxes(pdf(lines), line, (12, 20))[0] for line in ("This one: (gladly) by day.", lines[0])
        )
        self.assertGreater(first[1], self.boxes(pdf(lines), lines[0], (12, 20))[0][1] + 10)

    def test_equal_words_below_another_heading_or_inside_longer_ones_get_no_box(self):
        lines = ["Adults", "115 euros", "1.15 euros", "Children", "15 euros", "Monday", "Open all day."]
        lines += ["Wednesday", "Open all day."]
        page = characters(self.written(pdf(lines)), 1)

        def tops(content, heading=""):
            return [top for _, top, _, _ in boxes_of(page, content, [(0, len(content))], heading=heading)]

        self.assertEqual(tops("15 euros"), tops("Children 15 euros")[-1:])
        self.assertEqual(tops("Open all day.", "Hours › Wednesday"), tops("Wednesday Open all day.")[-1:])
        self.assertEqual(tops("Open all day.", "Hours › Monday"), tops("Monday Open all day.")[-1:])
        self.assertEqual(tops("Open all day.", "Hours"), tops("Open all day."))
        self.assertEqual(len(tops("uros")), 1)

    def test_a_row_of_a_table_is_found_without_the_names_of_its_columns(self):
        lines = ["Case, by name   Days   Use by", "(Ordinary), by pay   5   31 March, gladly"]
        content = "Case, by name: (Ordinary), by pay; Days: 5; Use by: 31 March, gladly"
        found = self.boxes(pdf(lines), content, (0, len(content)))
        self.assertEqual(len(found), 1)
        self.assertGreater(found[0][1], self.boxes(pdf(lines), lines[0], (0, 10))[0][3])

    def test_words_missing_from_the_page_have_no_box(self):
        self.assertEqual(self.boxes(pdf([BEFORE]), "Something else, entirely", (0, 10)), [])
        self.assertEqual(self.boxes(pdf([BEFORE]), "", (0, 0)), [])

    def test_each_cell_of_a_table_has_its_boxes_on_rotated_pages_too(self):
        """The boxes are where a page without that cell is blank, also if text runs upwards or downwards."""
        content = "\n".join(ROW_TEXTS)
        ways = [(change, "") for change in (bytes, turned(90), turned(180), turned(270))]
        ways += [(lambda data: turned(90)(wide(data)), UPWARDS), (wide, DOWNWARDS)]
        for change, matrix in ways:
            page = characters(self.written(change(ruled_table(matrix=matrix))), 1)
            image = self.image(change(ruled_table(matrix=matrix)))
            scale = image.width / page["width"]
            for row, column in ((0, 0), (1, 0), (2, 1), (2, 2)) if change is not bytes else CELLS:
                cell = ROWS[row][column]
                start = sum(len(text) + 1 for text in ROW_TEXTS[:row])
                start = content.index(f"{HEAD[column]}: ", start) + len(HEAD[column]) + 2
                found = boxes_of(page, content, [(start, start + len(" ".join(cell)))])
                self.assertEqual(len(found), len(cell), found)
                sides = zip((min, min, max, max), zip(*found, strict=True), strict=True)
                without = self.image(change(ruled_table((row, column), matrix)))
                ink = ImageChops.difference(image, without).point(lambda grey: 255 * (grey > 60)).getbbox()
                for (outermost, side), expected in zip(sides, ink, strict=True):
                    self.assertLess(
                        abs(outermost(side) * scale - expected), PIXELS, (row, column, found, ink)
                    )

    def test_a_passage_that_begins_in_the_middle_of_a_table_has_the_boxes_of_its_own_rows(self):
        first = self.boxes(ruled_table(), ROW_TEXTS[0], (0, len(ROW_TEXTS[0])))
        last = self.boxes(ruled_table(), ROW_TEXTS[2], (0, len(ROW_TEXTS[2])))
        self.assertEqual([len(first), len(last)], [3, 3])
        self.assertGreater(min(box[1] for box in last), max(box[3] for box in first) + 20)

    def test_text_beside_a_table_keeps_its_own_boxes(self):
        content = "\n".join([TEXT, *ROW_TEXTS])
        start = content.index("5 days")
        found = self.boxes(ruled_table(), content, (start, start + len("5 days")))
        self.assertEqual(len(found), 1)
        self.assertLess(found[0][3], self.boxes(ruled_table(), content, (len(TEXT) + 1, len(content)))[0][1])

    def test_among_equal_rows_the_next_row_decides(self):
        rows = [["a: 1; b: 2", []], ["a: 3; b: 4", []], ["a: 1; b: 2", []], ["a: 5; b: 6", []]]
        for number, (text, _) in enumerate(rows):
            rows[number] = text, [[(text[3], number, number + 1)]]
        page = {
            "text": "1" * 4,
            "boxes": [[0, 20 * number, 10, 20 * number + 10] for number in range(4)],
            "rows": rows,
        }
        self.assertEqual(boxes_of(page, "a: 1; b: 2\na: 5; b: 6", [(0, 10)]), [(0, 40, 10, 50)])
        self.assertEqual(boxes_of(page, "a: 1; b: 2\na: 3; b: 4", [(0, 10)]), [(0, 0, 10, 10)])
