"""Cells of CSV files that a spreadsheet must not treat as formulas."""

import csv
import io
import random

from django.test import SimpleTestCase

from chatsite.http.csv_cells import csv_of, plain, rows_of, unplain

STARTS = "=+-@\uff1d\uff0b\uff0d\uff20"


class CsvCellTests(SimpleTestCase):
    def test_no_cell_begins_with_a_formula(self):
        for start in (*STARTS, "\t", "\r", "\n"):
            self.assertEqual(plain(f"{start}1"), f"'{start}1")
        for harmless in ("", "a", "a=1", "1-2", "a; b", "a, =1", "'a"):
            self.assertEqual(plain(harmless), harmless)

    def test_no_cell_begins_with_a_formula_in_a_spreadsheet_that_separates_by_semicolons(self):
        for start in STARTS:
            for text in (
                f"a;{start}1;b",
                f"a\n{start}1\nb",
                f"a\r{start}1",
                f'a;"{start}1;b',
                f'a";{start}1',
            ):
                written = csv_of([("x", text, "y")])
                for line in written.replace("\r", "\n").splitlines():
                    for cell in line.split(";"):
                        self.assertFalse(cell.lstrip('"').startswith(start), written)

    def test_any_text_comes_back_as_it_was(self):
        chance = random.Random(7)
        for _ in range(3_000):
            text = "".join(chance.choices("=+-@'\";,\t\r\n a\uff1d", k=chance.randint(0, 9)))
            self.assertEqual(unplain(plain(text)), text)
        rows = [("a;=1", "b;'=2"), ("=3", "''-4")]
        read = [tuple(cells) for _, cells in rows_of(csv_of(rows).lstrip("\ufeff"), ",")]
        self.assertEqual(read, rows)
        self.assertEqual(len(list(csv.reader(io.StringIO(csv_of(rows))))), 2)
