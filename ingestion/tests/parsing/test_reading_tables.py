"""Tables of PDF, Excel and PowerPoint files: every row names its columns."""

import zipfile
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import openpyxl
from django.conf import settings
from django.test import SimpleTestCase

from ingestion.parsing.readers.office.sheets import shown
from ingestion.parsing.readers.tables import table_lines
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading
from ingestion.tests.parsing.test_reading_other_formats import odf, odf_cell, odf_row

SAMPLES = Path(settings.BASE_DIR) / "ingestion" / "samples"
ROWS = [
    ("Port", "Crew", "Fare"),
    ("Ellery", "12", "45.00"),
    ("Sennick Harbour", "9", "38.50"),
    ("Carrow", "22", "51.00"),
]
FORMATS = {
    (46560, "General"): "46560",
    (46560, "#,##0"): "46,560",
    (28.5, "0.00"): "28.50",
    (46560.5, '"£"#,##0.00'): "£46,560.50",
    (1234.5, "#,##0.00\\ [$€-407]"): "1,234.50 €",
    (-5, "#,##0;(#,##0)"): "-5",
    (42, "00000"): "00042",
    (12, '0 "days"'): "12 days",
    (timedelta(hours=37, minutes=5), "[h]:mm"): "37:05",
    ("#N/A", "General"): "",
}


def placed(words, ruled=(), matrix=""):
    """A PDF with texts at given positions, and horizontal lines from x to x at given heights."""
    text = "".join(f"BT /F1 11 Tf 1 0 0 1 {x} {y} Tm ({word}) Tj ET\n" for x, y, word in words)
    lines = "".join(f"{left} {height} m {right} {height} l S\n" for left, right, height in ruled)
    stream = (matrix + lines + text).encode("latin-1")
    whole = building.pdf(["PLACE"])
    start, end = whole.index(b"<</Length"), whole.index(b"\nendstream")
    return whole[:start] + b"<</Length %d>>stream\n%s" % (len(stream), stream) + whole[end:]


class TablesTests(SimpleTestCase):
    def lines(self, words, ruled=()):
        return reading("a.pdf", placed(words, ruled)).sections[0].text.split("\n")

    def cells(self, rows, places, top=700):
        return [
            (x, top - 15 * n, cell) for n, row in enumerate(rows) for x, cell in zip(places, row, strict=True)
        ]

    def test_a_pdf_table_without_rules_is_recognised_by_its_columns(self):
        words = [
            (50, 730, "The fares of this year."),
            *self.cells(ROWS, (50, 200, 300)),
            (50, 600, "After that."),
        ]
        self.assertEqual(
            self.lines(words),
            [
                "The fares of this year.",
                "Port: Ellery; Crew: 12; Fare: 45.00",
                "Port: Sennick Harbour; Crew: 9; Fare: 38.50",
                "Port: Carrow; Crew: 22; Fare: 51.00",
                "After that.",
            ],
        )

    def test_a_pdf_table_whose_text_runs_upwards_or_downwards_has_rows_and_columns(self):
        words = self.cells(ROWS, (50, 200, 300))
        level = reading("a.pdf", placed(words))
        for matrix in ("0 1 -1 0 842 0 cm\n", "0 -1 1 0 0 595 cm\n"):
            turned = reading("a.pdf", placed(words, matrix=matrix))
            self.assertEqual(turned.sections, level.sections)

    def test_a_pdf_table_with_lines_keeps_cells_of_several_lines_together(self):
        words = [(50, 700, "Signal"), (200, 700, "Meaning"), (50, 670, "Seven short"), (50, 658, "blasts")]
        words += [(200, 664, "Emergency"), (50, 630, "Bell"), (200, 630, "Fire")]
        ruled = [(48, 320, height) for height in (712, 690, 650, 620)]
        self.assertEqual(
            self.lines(words, ruled),
            ["Signal: Seven short blasts; Meaning: Emergency", "Signal: Bell; Meaning: Fire"],
        )

    def test_a_bold_heading_below_the_last_row_belongs_to_the_text_below_the_table(self):
        handbook = (SAMPLES / "everyone" / "employee-handbook.pdf").read_bytes()
        sections = {each.heading: each for each in reading("handbook.pdf", handbook).sections}
        selling = sections["4 Carry-over of annual leave › Selling leave"]
        self.assertEqual(selling.page, 4)
        self.assertTrue(selling.text.startswith("Leave cannot be exchanged for money"), selling.text)
        changes = sections["1 About this handbook › Changes"]
        self.assertTrue(changes.text.startswith("We review the handbook every January."), changes.text)
        table = sections["4 Carry-over of annual leave › Maternity, adoption and shared parental leave"]
        self.assertTrue(table.text.endswith("Must be used by: end of following year"), table.text)

    def test_columns_of_prose_and_lists_are_not_tables(self):
        line = "The ferry leaves at nine and arrives at ten"
        for words in (
            self.cells([(line, line)] * 6, (50, 330)),
            self.cells([("*", f"Point {n} of the list") for n in range(6)], (50, 80)),
        ):
            self.assertNotIn(";", "\n".join(self.lines(words)))

    def test_rows_with_centred_cells_and_sums_below_empty_rows_keep_their_names(self):
        budget = [
            ("Postage", "1,250.00", "300.00"),
            ("Office equipment|and supplies", "1,724.96", "1,750.00"),
            ("Town clerk", "13,144.17", "14,430.00"),
            ("Deputy town|clerk", "10,084.48", "11,603.00"),
            ("Mileage", "98.02", "650.00"),
            ("Software", "6,630.00", "3,125.00"),
            ("Records", "25.00", "25.00"),
        ]
        words = [
            (50, 775, "Clerk"),
            (50, 760, "Submit the budget to the town office by: Friday"),
            (50, 745, "Hearing of the committee in the town hall: Monday"),
            (60, 724, "Election"),
            *((140, 730, "Actual"), (140, 718, "last year")),
            *((210, 730, "Budget"), (210, 718, "this year")),
        ]
        for row, (name, actual, planned) in enumerate(budget):
            y = 700 - 24 * row
            first, _, second = name.partition("|")
            words += [(40, y + 6, first), (46, y - 6, second)] if second else [(44, y, first)]
            words += [(140, y, actual), (210, y, planned)]
        words += [(60, 440, "TOTAL"), (140, 440, "32,956.63"), (210, 440, "31,883.00")]
        expected = [
            f"Election: {name.replace('|', ' ')}; Actual last year: {actual}; Budget this year: {planned}"
            for name, actual, planned in (*budget, ("TOTAL", "32,956.63", "31,883.00"))
        ]
        self.assertEqual(self.lines(words)[2:], expected)
        self.assertEqual(self.lines([*words, (50, 455, "A note is above the sums.")])[2:-2], expected[:-1])

    def test_a_sentence_above_a_price_list_and_its_first_prices_are_no_column_names(self):
        names = ("Soup", "Fried eggs", "Fish", "Hot dog with chili", "Noodles", "Rice", "Cheese", "Tea")
        dishes = [(name, f"{price}.50") for price, name in enumerate(names)]
        sentence = "Add onions, tomatoes, mustard and pickled cucumbers to any of these dishes for nothing"
        found = self.lines([(50, 715, sentence), *self.cells(dishes, (50, 430))])
        self.assertEqual(found, [sentence, *(f"{dish}; {price}" for dish, price in dishes)])

    def test_a_sentence_above_a_table_whose_words_are_beside_the_columns_by_chance_is_no_row(self):
        names = ("Printer", "Lamp", "Writing desk", "Chair", "Shelf", "Sofa", "Safe", "Cupboard", "Mat")
        rows = [("Item", "Pieces"), *((name, f"{20 + number}") for number, name in enumerate(names))]
        words = [(50, 730, "Rooms and items in the order of the house"), (50, 715, "All the rooms")]
        words += [(118, 715, "are checked each year."), *self.cells(rows, (50, 121))]
        expected = [f"Item: {name}; Pieces: {pieces}" for name, pieces in rows[1:]]
        found = self.lines(words)
        self.assertTrue(found[0].endswith("All the rooms are checked each year."), found)
        self.assertEqual(found[1:], expected)

    def test_rows_of_a_pdf_table_without_lines_may_have_several_lines(self):
        rows = [
            (("Harbour",), ("Keeps the berths and the", "crane in order"), ("Ann Smith",)),
            (("Pier", "office"), ("Sells tickets",), ("Bo Larsen, on", "Mondays Cy", "Young")),
            (("Yard",), ("Repairs boats, engines", "and nets"), ("Dee Hall",)),
            (("Lighthouse",), ("Watches",), ("Ed Poe",)),
        ]
        expected = [
            "Harbour; Keeps the berths and the crane in order; Ann Smith",
            "Pier office; Sells tickets; Bo Larsen, on Mondays Cy Young",
            "Yard; Repairs boats, engines and nets; Dee Hall",
            "Lighthouse; Watches; Ed Poe",
        ]
        for space in (4, 8):
            words, top = [(50, 730, "The offices of the harbour and what they do.")], 700
            for row in rows:
                for x, cell in zip((50, 150, 350), row, strict=True):
                    words += [(x, top - 12 * number, line) for number, line in enumerate(cell)]
                top -= 12 * max(map(len, row)) + space
            words.append((50, top - 20, "All offices are closed on Sundays."))
            with self.subTest(space=space):
                self.assertEqual(self.lines(words)[1:-1], expected)

    def test_cells_without_space_between_rows_continue_below_an_empty_first_cell(self):
        rows = [("Editor", "Ann Smith"), ("", "Bo Larsen"), ("Clerk", "Dee Hall"), ("Reader", "Cy Young")]
        self.assertEqual(
            self.lines(self.cells(rows, (50, 200))),
            ["Editor; Ann Smith Bo Larsen", "Clerk; Dee Hall", "Reader; Cy Young"],
        )

    def test_text_columns_with_line_numbers_are_not_rows(self):
        short, long = "The ferry leaves", "at nine and arrives at ten in the morning, unless"
        quote = [(50, 700 - 15 * n, short) for n in range(8)]
        beside = [(200, 697 - 12 * n, long) for n in range(10)]
        paragraphs = [
            (x, 700 - 12 * n - 8 * (n // 3), f"{long} {n}")
            for x in (50, 330)
            for n in range(9)
            if n % 3 or x < 99
        ]
        clauses = [("1.1", long), ("", long), ("1.2", long), ("", long), ("1.3", long)]
        margin = [(50, 700 - 14 * n, f"Chapter {n}" if n < 5 else "") for n in range(12)]
        margin += [(300, 700 - 14 * n, str(n)) for n in range(12)]
        for words in (quote + beside, paragraphs, self.cells(clauses, (50, 100)), margin):
            with self.subTest(words=words[0]):
                self.assertNotIn(";", "\n".join(self.lines([each for each in words if each[2]])))

    CLOSE = (
        ("Region", "Pier", "No", "Fare"),
        ("Northern Isles", "Ellery", "12", "45.00"),
        ("Northern Coast", "Oban", "9", "8.50"),
        ("Southern Coast", "Carrow", "22", "51.00"),
        ("Southern Isles", "Sennick", "7", "38.50"),
        ("Eastern Sounds", "Wick", "14", "9.20"),
        ("Eastern Fjords", "Holm", "31", "40.10"),
        ("Western Fjords", "Stour", "5", "7.75"),
        ("Western Sounds", "Linney", "18", "12.00"),
    )

    def test_columns_with_little_space_between_them_are_recognised_by_their_edges(self):
        # The longest cell of each column ends about 3 points before the next column begins.
        lines = self.lines(self.cells(self.CLOSE, (50, 134, 177, 195)))
        self.assertEqual(lines[0], "Region: Northern Isles; Pier: Ellery; No: 12; Fare: 45.00")
        self.assertEqual(lines[-1], "Region: Western Sounds; Pier: Linney; No: 18; Fare: 12.00")
        self.assertEqual(len(lines), 8)

    def test_references_with_numbers_are_not_rows(self):
        authors = ("Ann Smith", "Bo Larsen", "Cy Young", "Dee Hall", "Ed Poe", "Flo Abbott")
        text = [
            (
                50,
                700 - 13 * n,
                f"{n} {authors[n % 6]} {1990 + 2 * n}, The ferries, pages {3 * n} to {5 * n + 20}",
            )
            for n in range(1, 19)
        ]
        self.assertNotIn(";", "\n".join(self.lines(text)))

    def test_words_aligned_by_chance_do_not_divide_a_column(self):
        rows = [("Team", "Fare")]
        rows += [
            (f"Ellery Harbour at {name} Ferries", f"{n}.50")
            for n, name in enumerate(["Oban", "Wick"] * 5, 10)
        ]
        rows += [
            (f"{name} at Ellery Harbour", f"{n}.20") for n, name in enumerate(["Stour", "Linney Bay"] * 5, 30)
        ]
        lines = self.lines(self.cells(rows, (50, 330)))
        self.assertEqual(lines[0], "Team: Ellery Harbour at Oban Ferries; Fare: 10.50")
        self.assertEqual(lines[-1], "Team: Linney Bay at Ellery Harbour; Fare: 39.20")

    def test_names_and_values_of_a_pdf_form_are_not_a_header(self):
        rows = [("Phone", "01632 960118"), ("Name", "Ann Smith"), ("Town", "Ellery")]
        self.assertEqual(self.lines(self.cells(rows, (50, 200)))[1], "Name; Ann Smith")

    def test_numbers_of_a_sheet_are_shown_in_their_format(self):
        self.assertEqual({key: shown(*key) for key in FORMATS}, FORMATS)

    def test_merged_cells_of_a_sheet_repeat_and_hidden_sheets_are_not_read(self):
        book = openpyxl.Workbook()
        sheet = book.active
        for row in (
            ("Route", "Season", "Fare"),
            ("R1", "Winter", 22),
            (None, "Summer", 28),
            ("R2", "All", 30),
        ):
            sheet.append(row)
        sheet.merge_cells("A2:A3")
        hidden = book.create_sheet("Secret")
        hidden.append(("a", "b"))
        hidden.sheet_state = "hidden"
        data = BytesIO()
        book.save(data)
        found = reading("a.xlsx", data.getvalue())
        self.assertEqual([section.anchor for section in found.sections], ["sheet=Sheet"])
        self.assertIn("Route: R1; Season: Summer; Fare: 28", found.sections[0].text)

    def test_a_long_text_in_a_merged_cell_over_rows_and_columns_is_not_repeated(self):
        note = "All prices are net. " * 6
        book = openpyxl.Workbook()
        for row in (
            ("Item", "Price", "Day"),
            ("Screw", 10, "Monday"),
            (note, None, "x1"),
            (None, None, "x2"),
        ):
            book.active.append(row)
        book.active.merge_cells("A3:B4")
        data = BytesIO()
        book.save(data)
        self.assertEqual(reading("a.xlsx", data.getvalue()).sections[0].text.count("net"), 6)

    def test_a_merged_cell_of_a_sheet_over_rows_and_columns_is_in_the_first_column_of_each_row(self):
        lines = [
            "Office: Harbour; Name: Ann; Note: mornings",
            "Office: Harbour; Name: Bo; Note: mornings",
            "Office: Pier; Town: Ellery; Name: Cy; Note: -",
        ]
        book = openpyxl.Workbook()
        for row in (
            ("Office", "Town", "Name", "Note"),
            ("Harbour", None, "Ann", "mornings"),
            (None, None, "Bo"),
            ("Pier", "Ellery", "Cy", "-"),
        ):
            book.active.append(row)
        book.active.merge_cells("A2:B3")
        data = BytesIO()
        book.save(data)
        with zipfile.ZipFile(data) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        # Without a style, programs do not write the continued cells.
        sheet = "xl/worksheets/sheet1.xml"
        more = b'count="2"><mergeCell ref="D2:D3"/>'
        parts[sheet] = parts[sheet].replace(b'count="1">', more)
        self.assertIn(more, parts[sheet])
        self.assertEqual(reading("a.xlsx", building.package(parts)).sections[0].text.split("\n"), lines)

        covered = "<table:covered-table-cell/>"
        twice = '<table:covered-table-cell table:number-columns-repeated="2"/>'
        rows = [
            odf_row(*map(odf_cell, ("Office", "Town", "Name", "Note"))),
            odf_row(
                odf_cell("Harbour", 'table:number-rows-spanned="2" table:number-columns-spanned="2"'),
                covered,
                odf_cell("Ann"),
                odf_cell("mornings", 'table:number-rows-spanned="2"'),
            ),
            odf_row(twice, odf_cell("Bo"), covered),
            odf_row(*map(odf_cell, ("Pier", "Ellery", "Cy", "-"))),
        ]
        data = odf("spreadsheet", f'<table:table table:name="Staff">{"".join(rows)}</table:table>')
        self.assertEqual(reading("a.ods", data).sections[0].text.split("\n"), lines)

    def test_tables_below_each_other_on_a_sheet_have_names_of_their_own(self):
        fares = [("Port", "Fare"), ("Ellery", 45), ("Gannet", 38)]
        staff = [("Office", "Head", "Rooms"), ("Harbour", "Ann", 4), ("Pier", "Bo", 7)]
        lines = ["Port: Ellery; Fare: 45", "Port: Gannet; Fare: 38"]
        offices = ["Office: Harbour; Head: Ann; Rooms: 4", "Office: Pier; Head: Bo; Rooms: 7"]
        for rows, expected in (
            ([*fares, (), ("Staff", ""), *staff], [*lines, "Staff", *offices]),
            ([*fares, (), *fares], [*lines, *lines]),  # the names again
            ([*fares, (), ("Sundays", ""), ("Islay", 51)], [*lines, "Sundays", "Port: Islay; Fare: 51"]),
            (
                [*fares, (), ("Phone", "Ann"), ("Fax", 12)],
                [*lines, "Port: Phone; Fare: Ann", "Port: Fax; Fare: 12"],
            ),
        ):
            with self.subTest(rows=rows):
                text = list(table_lines([[str(cell) for cell in row] for row in rows]))
                self.assertEqual(text, expected)

    def test_a_header_of_several_rows_names_the_columns_of_its_groups(self):
        rows = [
            ["Fares of the year"],
            ["Port", "2026", "", "2027", ""],
            ["", "Adult", "Child", "Adult", "Child"],
            ["Ellery", 45, 22, 47, 23],
            ["Carrow", 51, 25, 53, 26],
        ]
        data = BytesIO()
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.active.merge_cells("A2:A3")
        book.active.merge_cells("B2:C2")
        book.active.merge_cells("D2:E2")
        book.save(data)
        self.assertEqual(
            reading("a.xlsx", data.getvalue()).sections[0].text.split("\n")[:2],
            [
                "Fares of the year",
                "Port: Ellery; 2026 Adult: 45; 2026 Child: 22; 2027 Adult: 47; 2027 Child: 23",
            ],
        )

    def test_a_row_of_words_below_a_header_with_a_gap_is_not_a_header(self):
        text = reading("a.csv", "Port,,Crew\nEllery,new,\nCarrow,old,12\n").sections[0].text
        self.assertEqual(text, "Port: Ellery; new\nPort: Carrow; old; Crew: 12")
