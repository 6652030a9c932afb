"""Boxes around words, against the ink of these words on the page's image."""

import io
import tempfile
from pathlib import Path

from django.test import SimpleTestCase
from PIL import Image, ImageChops

from ingestion.parsing.boxes import boxes_of
from ingestion.parsing.readers.pdf import characters, render
from ingestion.tests.building import pdf

BEFORE = "An ordinary line that nobody has cited, with some gravity."
CITED = "Carried days lapse (fully) on 31 March, by agreement."
COLUMN = "(" + 30 * "x" + ") Tj 0 -20 Td"  # where the next column begins
PIXELS = 2


def two_columns(data):
    return data.replace(COLUMN.encode(), b"270 40 Td".ljust(len(COLUMN)))


def turned(angle):
    return lambda data: data.replace(b"/Resources<<", b"/Rotate %d/Resources<<" % angle)


def cropped(data):
    return data.replace(b"/Resources<<", b"/CropBox[40 500 500 830]/Resources<<")


class BoxTests(SimpleTestCase):
    def written(self, data):
        path = Path(self.enterContext(tempfile.TemporaryDirectory()), "a.pdf")
        path.write_bytes(data)
        return path

    def image(self, data):
        return Image.open(io.BytesIO(render(self.written(data), 1))).convert("L")

    def boxes(self, data, content, span):
        """In pixels of the image."""
        page = characters(self.written(data), 1)
        scale = self.image(data).width / page["width"]
        return [[side * scale for side in box] for box in boxes_of(page, content, [span])]

    def assert_on_ink(self, lines, content, words, change=bytes):
        """The boxes of `words`, one for each, lie where a page without these words has nothing."""
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

    def test_a_sentence_has_its_box_also_on_turned_and_cropped_pages(self):
        content = f"{BEFORE} {CITED}"
        for change in (bytes, turned(90), turned(180), turned(270), cropped):
            self.assert_on_ink([BEFORE, CITED, BEFORE], content, [CITED], change)

    def test_words_that_run_over_a_line_have_a_box_on_each(self):
        lines = ["By agreement carried days lapse in", "March (gladly), by agreement,", "and that is all."]
        content = "By agreement carried days lapse in March (gladly), by agreement, and that is all."
        words = ["days lapse in", "March (gladly), by agreement,"]
        self.assert_on_ink(lines, content, words)

    def test_the_second_column_has_its_own(self):
        lines = [
            "The left column begins",
            "and goes on, gently.",
            30 * "x",
            "By the right column",
            "ends it, gently.",
        ]
        content = "The left column begins and goes on, gently. By the right column ends it, gently."
        self.assert_on_ink(lines, content, ["By the right column"], two_columns)

    def test_of_equal_words_those_of_the_passage_are_meant(self):
        lines = ["Other text: (gladly) by day.", "This one: (gladly) by day."]
        first, _ = (
            self.boxes(pdf(lines), line, (12, 20))[0] for line in ("This one: (gladly) by day.", lines[0])
        )
        self.assertGreater(first[1], self.boxes(pdf(lines), lines[0], (12, 20))[0][1] + 10)

    def test_a_row_of_a_table_is_found_without_the_names_of_its_columns(self):
        lines = ["Case, by name   Days   Use by", "(Ordinary), by pay   5   31 March, gladly"]
        content = "Case, by name: (Ordinary), by pay; Days: 5; Use by: 31 March, gladly"
        found = self.boxes(pdf(lines), content, (0, len(content)))
        self.assertEqual(len(found), 1)
        self.assertGreater(found[0][1], self.boxes(pdf(lines), lines[0], (0, 10))[0][3])

    def test_what_does_not_stand_on_the_page_has_no_box(self):
        self.assertEqual(self.boxes(pdf([BEFORE]), "Something else, entirely", (0, 10)), [])
        self.assertEqual(self.boxes(pdf([BEFORE]), "", (0, 0)), [])
