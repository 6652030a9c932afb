"""Comments, shapes and several tables on the sheets of spreadsheets."""

import io
import itertools
import zipfile
from datetime import datetime, time, timedelta

import openpyxl
from django.test import SimpleTestCase
from openpyxl.comments import Comment
from openpyxl.styles import Font

from ingestion.parsing.readers.office.cell_styles import open_workbook
from ingestion.parsing.readers.office.sheets import shown
from ingestion.parsing.readers.tables import table_lines
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading
from ingestion.tests.parsing.test_reading_other_formats import odf

FARES = [("Port", "Fare"), ("Ellery", 45), ("Gannet", 38)]
NAMESPACES = (
    f'xmlns:r="{building.OFFICE}" xmlns:a="{building.DRAWING}" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"'
)
CHART = (
    f"<c:chartSpace {NAMESPACES}><c:chart><c:title><a:p><a:r><a:t>Fares by port</a:t></a:r></a:p></c:title>"
    "<c:plotArea><c:ser><c:val><c:pt idx='0'><c:v>45</c:v></c:pt></c:val></c:ser></c:plotArea>"
    "</c:chart></c:chartSpace>"
)
THREADS = (
    '<ThreadedComments xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments">'
    '<threadedComment ref="B2"><text>Too low?</text></threadedComment>'
    '<threadedComment ref="B2"><text>No.</text></threadedComment></ThreadedComments>'
)
OLD_COMMENTS = (
    f'<comments xmlns="{building.SHEET}"><commentList><comment ref="B2"><text><t>[Threaded comment]</t>'
    "</text></comment></commentList></comments>"
)


def written(book):
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def drawn(row, inside):
    place = f"<xdr:from><xdr:col>3</xdr:col><xdr:row>{row}</xdr:row></xdr:from>"
    return f"<xdr:twoCellAnchor>{place}{inside}</xdr:twoCellAnchor>"


def text_box(*lines):
    text = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return f"<xdr:sp><xdr:txBody>{text}</xdr:txBody></xdr:sp>"


def with_parts(rows, **related):
    """A workbook with one sheet and these parts, by the type of their relationship."""
    with zipfile.ZipFile(io.BytesIO(building.xlsx({"Fares": rows}))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for kind, text in related.items():
        parts[f"xl/{kind}.xml"] = text
    listed = "".join(
        f'<Relationship Id="{kind}" Type="{building.OFFICE}/{kind}" Target="../{kind}.xml"/>'
        for kind in related
    )
    parts["xl/worksheets/_rels/sheet1.xml.rels"] = building.RELATIONS.format(listed)
    chart = f'<Relationship Id="k" Type="{building.OFFICE}/chart" Target="chart.xml"/>'
    parts["xl/_rels/drawing.xml.rels"] = building.RELATIONS.format(chart)
    parts["xl/chart.xml"] = CHART
    return building.package(parts)


def with_styles(styles):
    """A workbook with these styles, whose cells have the styles 0 to 3."""
    with zipfile.ZipFile(io.BytesIO(building.xlsx({"Fares": FARES}))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    values = [["Port", "Since", "Fare"], ["Ellery", 45717, 45.5], ["Gannet", 45718, 38]]
    styles_of = [(1, 1, 1), (0, 2, 3), (0, 2, 3)]
    rows = "".join(
        "<row>"
        + "".join(styled(value, number) for value, number in zip(row, numbers, strict=True))
        + "</row>"
        for row, numbers in zip(values, styles_of, strict=True)
    )
    sheet = f'<worksheet xmlns="{building.SHEET}"><sheetData>{rows}</sheetData></worksheet>'
    parts["xl/worksheets/sheet1.xml"] = sheet
    parts["xl/styles.xml"] = f'<x:styleSheet xmlns:x="{building.SHEET}">{styles}</x:styleSheet>'
    return building.package(parts)


def styled(value, number):
    if isinstance(value, str):
        return f'<c s="{number}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c s="{number}"><v>{value}</v></c>'


class NumberFormatTests(SimpleTestCase):
    def test_numbers_are_written_as_their_format_shows_them(self):
        telephone = r"[<=9999999]###\-####;\(###\)\ ###\-####"
        short = '[>=1000000]0.0,,"M";[>=1000]0.0,"K";0'
        for value, number_format, text in (
            (123456789, r"000\-00\-0000", "123-45-6789"),
            (5551234, telephone, "555-1234"),
            (8005551234, telephone, "(800) 555-1234"),
            (1234567.891, r"#\ ##0.00\ \k\g", "1234 567.89 kg"),
            (-1234, "# ##0;(# ##0)", "-1 234"),
            (12, "# ##0", "12"),
            (2500000, short, "2.5M"),
            (2500, short, "2.5K"),
            (0.4, short, "0"),
            (-7, "[Color 10]0;[Color 12]-0", "-7"),
            (1, '"yes";"yes";"no"', "yes"),
            (0, '"yes";"yes";"no"', "no"),
            (0, '#,##0;-#,##0;"-"', "0"),
            (7, 'General" kg"', "7 kg"),
            (-3.5, r'"$" #,##0.00;"$" #,##0.00\-', "-$ 3.50"),
            (0.256, r"0.0\ %", "25.6 %"),
            (0.125, "0%", "13%"),
            (2.5, "0", "3"),
            (-2.5, "0", "-3"),
            (2.675, "0.00", "2.68"),
            (1234.5, "#,##0", "1,235"),
            (1.5, "# ?/?", "1.5"),
            (5, "", "5"),
        ):
            self.assertEqual(shown(value, number_format), text, number_format)

    def test_times_and_durations_are_written_as_their_format_shows_them(self):
        for value, number_format, text in (
            (timedelta(hours=-2, minutes=-30), "[h]:mm", "-2:30"),
            (timedelta(minutes=-15), "[h]:mm", "-0:15"),
            (timedelta(hours=37, minutes=30), "[h]:mm:ss", "37:30:00"),
            (timedelta(minutes=43, seconds=5), "[mm]:ss", "43:05"),
            (timedelta(minutes=90), "[mm]", "90"),
            (timedelta(seconds=20), "[ss]", "20"),
            (time(0, 21, 37), "mm:ss", "21:37"),
            (time(0, 0, 20), "mm:ss", "00:20"),
            (time(1, 21, 37), "mm:ss", "01:21:37"),
            (time(8, 15, 30), "hh:mm:ss", "08:15:30"),
            (time(8, 15), "h:mm:ss", "08:15"),
            (time(8, 15, 30), "hh:mm", "08:15"),
            (datetime(1900, 1, 1), "hh:mm", "00:00"),
            (datetime(1900, 1, 1, 13, 30), 'h "Std." mm "Min."', "13:30"),
            (datetime(2026, 3, 1, 8, 15, 30), "dd.mm.yyyy hh:mm:ss", "2026-03-01 08:15:30"),
            (datetime(2026, 3, 1), "[$-407]d. mmmm yyyy", "2026-03-01"),
            (datetime(2026, 3, 1), "mmm", "2026-03-01"),
            (datetime(2026, 3, 1, 9, 30), "General", "2026-03-01 09:30"),
        ):
            self.assertEqual(shown(value, number_format), text, number_format)

    def test_escaped_characters_of_a_text_are_decoded(self):
        self.assertEqual(shown("Harbour_x000D_\nPier", "General"), "Harbour\r\nPier")
        self.assertEqual(shown("_x005F_x0041_ file_x2_", "General"), "_x0041_ file_x2_")


class StylesTests(SimpleTestCase):
    FORMATS = '<x:numFmts><x:numFmt numFmtId="170" formatCode="&quot;€&quot;0.00"/></x:numFmts>'
    FONTS = (
        "<x:fonts><x:font/><m:AlternateContent xmlns:m='urn:m'><m:Choice><x:font><x:b/></x:font></m:Choice>"
        "<m:Fallback><x:font><x:b/></x:font></m:Fallback></m:AlternateContent></x:fonts>"
    )
    CELLS = (
        '<x:cellXfs><x:xf numFmtId="0" fontId="0"/><x:xf numFmtId="0" fontId="1"/>'
        '<x:xf numFmtId="14" fontId="0"/><x:xf numFmtId="170" fontId="0"/></x:cellXfs>'
    )
    READ = ["Port: Ellery; Since: 2025-03-01; Fare: €45.50", "Port: Gannet; Since: 2025-03-02; Fare: €38.00"]

    def lines(self, *styles):
        return reading("a.xlsx", with_styles("".join(styles))).sections[0].text.split("\n")

    def test_a_named_style_without_a_name_or_format_does_not_prevent_reading(self):
        for named in ('<x:cellStyle xfId="0"/>', '<x:cellStyle name="Normal" xfId="7"/>'):
            styles = f"<x:cellStyles>{named}</x:cellStyles>"
            self.assertEqual(self.lines(self.FORMATS, self.FONTS, self.CELLS, styles), self.READ)

    def test_an_unknown_attribute_of_a_format_does_not_prevent_reading(self):
        cells = self.CELLS.replace("<x:xf ", '<x:xf more="1" ')
        self.assertEqual(self.lines(self.FORMATS, self.FONTS, cells), self.READ)

    def test_bold_type_is_found_when_styles_are_at_fault(self):
        cells = self.CELLS.replace("<x:xf ", '<x:xf more="1" ')
        for mark, expected in (("<x:b/>", True), ('<x:b val="0"/>', False)):
            data = with_styles(self.FORMATS + self.FONTS.replace("<x:b/>", mark) + cells)
            sheet = open_workbook(io.BytesIO(data)).worksheets[0]
            first, *others = sheet.iter_rows()
            self.assertEqual([bool(cell.font.b) for cell in first], [expected] * 3)
            self.assertFalse(any(cell.font.b for row in others for cell in row))


class SheetNotesTests(SimpleTestCase):
    def lines(self, name, data):
        sections = reading(name, data).sections
        return [line for section in sections for line in section.text.split("\n")]

    def test_comments_follow_the_rows_of_their_cells(self):
        book = openpyxl.Workbook()
        for row in FARES:
            book.active.append(row)
        book.active["B2"].comment = Comment("Agreed\nin March", "Ann")
        book.active["B9"].comment = Comment("Nothing here yet", "Ann")
        self.assertEqual(
            self.lines("a.xlsx", written(book)),
            [
                "Port: Ellery; Fare: 45",
                "Comment on B2: Agreed in March",
                "Port: Gannet; Fare: 38",
                "Comment on B9: Nothing here yet",
            ],
        )

    def test_threads_of_comments_are_read_once(self):
        data = with_parts(FARES, comments=OLD_COMMENTS, threadedComment=THREADS)
        self.assertEqual(self.lines("a.xlsx", data)[1:3], ["Comment on B2: Too low?", "Comment on B2: No."])
        note = '<comment ref="A3"><text><t>Closed on Sundays</t></text></comment></commentList>'
        data = with_parts(
            FARES, comments=OLD_COMMENTS.replace("</commentList>", note), threadedComment=THREADS
        )
        self.assertEqual(
            [line for line in self.lines("a.xlsx", data) if line.startswith("Comment")],
            ["Comment on B2: Too low?", "Comment on B2: No.", "Comment on A3: Closed on Sundays"],
        )

    def test_text_boxes_and_titles_of_charts_are_read_where_they_are(self):
        chart = drawn(9, '<xdr:graphicFrame><c:chart r:id="k"/></xdr:graphicFrame>')
        other = drawn(2, text_box("Under 14s: half", "Bicycles: free"))
        drawing = f"<xdr:wsDr {NAMESPACES}>{chart}{drawn(0, text_box('Fares of 2026'))}{other}</xdr:wsDr>"
        self.assertEqual(
            self.lines("a.xlsx", with_parts(FARES, drawing=drawing)),
            [
                "Fares of 2026",
                "Port: Ellery; Fare: 45",
                "Under 14s: half",
                "Bicycles: free",
                "Port: Gannet; Fare: 38",
                "Fares by port",
            ],
        )

    def test_a_sheet_with_a_damaged_drawing_is_read_without_it(self):
        self.assertEqual(self.lines("a.xlsx", with_parts(FARES, drawing="<a"))[0], "Port: Ellery; Fare: 45")
        whole = with_parts(FARES, drawing="STORED" + "<a/>" * 50)
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            place = archive.getinfo("xl/drawing.xml").header_offset + 40
        broken = whole[:place] + bytes([whole[place] ^ 0xFF, whole[place + 1] ^ 0xFF]) + whole[place + 2 :]
        self.assertEqual(self.lines("a.xlsx", broken)[0], "Port: Ellery; Fare: 45")

    def test_comments_and_shapes_of_opendocument_are_not_part_of_a_cell(self):
        box = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
        note = "<office:annotation><text:p>Agreed</text:p></office:annotation>"
        rows = [
            ("<text:p>Port</text:p>", "<text:p>Fare</text:p>"),
            ("<text:p>Ellery</text:p>", f"{note}<text:p>45</text:p>"),
            ("<text:p>Gannet</text:p>", f"<text:p>38</text:p>{box.format('Half for children')}"),
        ]
        cells = "".join(
            f"<table:table-row>{''.join(f'<table:table-cell>{cell}</table:table-cell>' for cell in row)}"
            "</table:table-row>"
            for row in rows
        )
        shapes = f"<table:shapes>{box.format('Fares of 2026')}</table:shapes>"
        data = odf("spreadsheet", f'<table:table table:name="Fares">{shapes}{cells}</table:table>')
        self.assertEqual(
            self.lines("a.ods", data),
            [
                "Fares of 2026",
                "Port: Ellery; Fare: 45",
                "Comment on B2: Agreed",
                "Port: Gannet; Fare: 38",
                "Half for children",
            ],
        )

    def test_hidden_and_filtered_rows_of_opendocument_are_read(self):
        cells = "".join(
            f"<table:table-row{hidden}><table:table-cell><text:p>{port}</text:p></table:table-cell>"
            f"<table:table-cell><text:p>{fare}</text:p></table:table-cell></table:table-row>"
            for hidden, port, fare in (
                ("", "Port", "Fare"),
                (' table:visibility="filter"', "Ellery", 45),
                (' table:visibility="collapse"', "Gannet", 38),
                (' table:visibility="visible"', "Carrow", 5),
            )
        )
        data = odf("spreadsheet", f'<table:table table:name="Fares">{cells}</table:table>')
        self.assertEqual(
            self.lines("a.ods", data),
            ["Port: Ellery; Fare: 45", "Port: Gannet; Fare: 38", "Port: Carrow; Fare: 5"],
        )


class SheetHeadersTests(SimpleTestCase):
    def lines(self, *rows):
        return list(table_lines([[str(cell) for cell in row] for row in rows]))

    def test_a_bold_row_names_the_columns_of_the_rows_below_it(self):
        book = openpyxl.Workbook()
        staff = [("Office", "Head"), ("Harbour", "Ann"), ("Pier", "Bo")]
        total = [("Total", 83)]
        notes = [("see", "below")]  # bold, but no other row follows
        for row in [*FARES, *total, *staff, *notes]:
            book.active.append(row)
        for row in (1, 4, 5, 8):
            for cell in book.active[row]:
                cell.font = Font(bold=True)
        self.assertEqual(
            reading("a.xlsx", written(book)).sections[0].text.split("\n"),
            [
                "Port: Ellery; Fare: 45",
                "Port: Gannet; Fare: 38",
                "Port: Total; Fare: 83",
                "Office: Harbour; Head: Ann",
                "Office: Pier; Head: Bo",
                "Office: see; Head: below",
            ],
        )

    def test_a_name_may_continue_in_the_row_below_it(self):
        self.assertEqual(
            self.lines(
                ("Function", "Percent", "Median"),
                ("", "of hires", "monthly"),
                ("", "", "salary"),
                ("Law", "9 %", 2300),
                ("Marketing", "16 %", 1900),
            ),
            [
                "Function: Law; Percent of hires: 9 %; Median monthly salary: 2300",
                "Function: Marketing; Percent of hires: 16 %; Median monthly salary: 1900",
            ],
        )
        free = [("Port", "Adult", "Child"), ("Islay", "free", "free"), ("Ellery", 45, 22), ("Gannet", 38, 19)]
        self.assertEqual(self.lines(*free)[0], "Port: Islay; Adult: free; Child: free")

    def test_years_beside_an_empty_corner_name_columns(self):
        self.assertEqual(
            self.lines(("", 2024, 2025), ("Turnover", 10, 12), ("Profit", 1, 2)),
            ["Turnover; 2024: 10; 2025: 12", "Profit; 2024: 1; 2025: 2"],
        )
        self.assertEqual(self.lines((2024, 2025), (10, 12)), ["2024; 2025", "10; 12"])
        self.assertEqual(self.lines(("", 2024), ("Turnover", 10)), ["2024", "Turnover; 10"])

    def test_repeated_column_names_are_qualified_by_the_groups_above_them(self):
        self.assertEqual(
            self.lines(
                ("Leg 1", "", "Leg 2", ""),
                ("Time", "Speed", "Time", "Speed"),
                ("9:00", 4, "9:30", 5),
                ("9:05", 3, "9:35", 6),
            )[0],
            "Leg 1 Time: 9:00; Leg 1 Speed: 4; Leg 2 Time: 9:30; Leg 2 Speed: 5",
        )

    def test_a_title_with_a_note_does_not_name_columns(self):
        self.assertEqual(
            self.lines(
                ("Fares of the year", "", "", "as of March"),
                ("Port", "Adult", "Child", "Car"),
                ("Ellery", 45, 22, 90),
                ("Gannet", 38, 19, 80),
            ),
            [
                "Fares of the year; as of March",
                "Port: Ellery; Adult: 45; Child: 22; Car: 90",
                "Port: Gannet; Adult: 38; Child: 19; Car: 80",
            ],
        )

    def test_words_above_numbers_name_columns_after_a_form_without_an_empty_row(self):
        items = [("Boat", 1, 900), ("Oar", 2, 45), ("Rope", 3, 12)]
        self.assertEqual(
            self.lines(("Customer:", "Smith"), ("Item", "Quantity", "Price"), *items),
            [
                "Customer: Smith",
                "Item: Boat; Quantity: 1; Price: 900",
                "Item: Oar; Quantity: 2; Price: 45",
                "Item: Rope; Quantity: 3; Price: 12",
            ],
        )


class TablesBesideEachOtherTests(SimpleTestCase):
    def sections(self, *rows):
        data = building.xlsx({"Fares": rows})
        return {section.anchor: section.text for section in reading("a.xlsx", data).sections}

    def test_tables_beside_each_other_are_read_one_after_the_other(self):
        staff = [("Staff", ""), ("Office", "Head"), ("Harbour", "Ann"), ("Pier", "Bo"), ("Yard", "Cy")]
        fares = [*FARES, ("Islay", 51), ("", ""), ("Carrow", 22), ("Sennick", 40)]
        rows = [
            (*left, "", *right) for left, right in itertools.zip_longest(fares, staff, fillvalue=("", ""))
        ]
        self.assertEqual(
            self.sections(*rows),
            {
                "sheet=Fares!A2:B7": "Port: Ellery; Fare: 45\nPort: Gannet; Fare: 38\nPort: Islay; Fare: 51\n"
                "Port: Carrow; Fare: 22\nPort: Sennick; Fare: 40",
                "sheet=Fares!D1:E5": "Staff\nOffice: Harbour; Head: Ann\nOffice: Pier; Head: Bo\n"
                "Office: Yard; Head: Cy",
            },
        )

    def test_adjacent_tables_with_the_same_column_names_are_separate(self):
        rows = [(*row, "", *row) for row in (*FARES, ("Islay", 51))]
        self.assertEqual(list(self.sections(*rows)), ["sheet=Fares!A2:B4", "sheet=Fares!D2:E4"])

    def test_an_empty_column_inside_a_table_does_not_divide_it(self):
        for rows in (
            [("Port", "Adult", "", "Child", "Dog"), ("Ellery", 45, "", 22, 5), ("Gannet", 38, "", 19, 5)],
            [("Port", "", "Fare"), ("Ellery", "", 45), ("Gannet", "", 38)],
            [("Port", "Fare", "", "", "By"), ("", 4, "", "x", "y"), ("a", "", "", "z")],
            [
                ("Port", "Fare", "", "By", "Note"),
                ("Ellery", 45, "", "Ann", "new"),
                ("Gannet", 38, "", "Bo", ""),
            ],
        ):
            with self.subTest(rows=rows):
                self.assertEqual(list(self.sections(*rows, rows[-1])), ["sheet=Fares"])
