"""What is read from Word and Excel files beyond plain headings, paragraphs and rows."""

import re
import zipfile
from datetime import datetime, time
from io import BytesIO
from unittest import mock
from xml.etree import ElementTree

import openpyxl
import pytest
from django.test import SimpleTestCase

from ingestion.parsing.formats import DAMAGED
from ingestion.parsing.readers.office import drawings
from ingestion.parsing.sections import Unreadable
from ingestion.tests import building
from ingestion.tests.building import WORD
from ingestion.tests.parsing.test_reading_formats import reading


def docx(body, **parts):
    """A Word file with this XML, and with these parts by the names of their files."""
    files = building.docx_parts()
    files["word/document.xml"] = f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    for name, content in parts.items():
        files[f"word/{name}.xml"] = f'<w:{name} xmlns:w="{WORD}">{content}</w:{name}>'
    return building.package(files)


def paragraph(text, properties=""):
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def cell(text, properties=""):
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def strict(data):
    """The same Office file, as a program saves it as “Strict Open XML”."""
    usual = re.compile(rb"http://schemas\.openxmlformats\.org/(?!package/)(\w+)/2006/")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return building.package(
        {name: usual.sub(rb"http://purl.oclc.org/ooxml/\1/", part) for name, part in parts.items()}
    )


class StrictTests(SimpleTestCase):
    def test_strict_files_are_read_like_others(self):
        book = openpyxl.Workbook()
        book.active.append(["Port", "Opened", "x" * 70_000])  # larger than what is read at once
        book.active.append(["Ellery", datetime(2026, 3, 1), 45])
        saved = BytesIO()
        book.save(saved)
        for name, data in {
            "a.docx": building.docx(
                ("Heading1", "Fares"), ("", "All fares."), [["Port", "Fare"], ["Ellery", "45"]]
            ),
            "a.pptx": building.pptx(("Halyard", ["The depot.", "It closes."], "Say it slowly.")),
            "a.xlsx": building.xlsx({"Fares": [["Port", "Fare"], ["Ellery", 45]]}),
            "b.xlsx": saved.getvalue(),
        }.items():
            changed = strict(data)
            self.assertNotEqual(changed, data)
            self.assertEqual(reading(name, changed).sections, reading(name, data).sections, name)
            self.assertTrue(reading(name, changed).sections, name)


class WordTests(SimpleTestCase):
    def texts(self, *arguments, **parts):
        return [section.text for section in reading("a.docx", docx(*arguments, **parts)).sections]

    def test_headings_are_recognised_by_the_english_names_of_their_styles_and_base_styles(self):
        styles = (
            '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
            '<w:style w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:basedOn w:val="berschrift1"/></w:style>'
        )
        body = paragraph("Anfang", '<w:pStyle w:val="berschrift1"/>') + paragraph("Eins.")
        body += paragraph("Ende", '<w:pStyle w:val="Kapitel"/>') + paragraph("Zwei.")
        found = reading("a.docx", docx(body, styles=styles))
        self.assertEqual([section.anchor for section in found.sections], ["anfang", "ende"])

    def test_circular_base_styles_do_not_stop_the_reading(self):
        styles = "".join(
            f'<w:style w:styleId="{a}"><w:name w:val="{a}"/><w:basedOn w:val="{b}"/></w:style>'
            for a, b in ("xy", "yx")
        )
        self.assertEqual(self.texts(paragraph("Text.", '<w:pStyle w:val="x"/>'), styles=styles), ["Text."])

    def test_signs_of_symbol_fonts_are_read(self):
        signs = "".join(
            f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'
            for font, code in (
                ("Symbol", "F0B3"), ("Symbol", "00B4"), ("Symbol", "F06D"), ("Wingdings", "F0FE"),
                ("Wingdings 2", "F0A3"), ("Webdings", "F045"), ("Arial", "00E9"), ("Arial", "x"),
            )
        )  # fmt: skip
        self.assertEqual(self.texts(f"<w:p>{signs}</w:p>"), ["≥×μ☑☐é"])

    def test_phonetic_guides_are_left_out_and_text_boxes_begin_a_line(self):
        base = "<w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase>"
        ruby = f"<w:r><w:ruby><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt>{base}</w:ruby></w:r>"
        box = f"<w:r><w:pict><w:txbxContent>{paragraph('Box.')}</w:txbxContent></w:pict></w:r>"
        self.assertEqual(self.texts(f"<w:p>{ruby}{box}</w:p>"), ["東京\nBox."])

    def test_a_table_in_a_text_box_keeps_its_rows(self):
        rows = [("Port", "Fare"), ("Ellery", "45"), ("Carrow", "51")]
        cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
        table = "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"
        box = f"<w:r><w:pict><w:txbxContent>{table}{paragraph('Note.')}</w:txbxContent></w:pict></w:r>"
        text = "Port: Ellery; Fare: 45\nPort: Carrow; Fare: 51\nNote."
        self.assertEqual(self.texts(f"<w:p>{box}</w:p>"), [text])

    def test_lists_keep_their_bullets_and_numbers(self):
        numbering = (
            '<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>'
            '<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
            '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
        )
        item = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr>'
        body = paragraph("Ask", item.format(0)) + paragraph("by form", item.format(1))
        body += paragraph("Travel", item.format(0))
        self.assertEqual(self.texts(body, numbering=numbering), ["1. Ask\n\n- by form\n\n2. Travel"])

    def test_headings_and_lists_have_the_numbers_that_word_shows(self):
        def level(number, kind, label, more=""):
            return (
                f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>{more}'
                f'<w:lvlText w:val="{label}"/></w:lvl>'
            )

        numbering = (
            '<w:abstractNum w:abstractNumId="7">'
            + level(0, "upperRoman", "Article %1.")
            + level(1, "decimal", "%1.%2", '<w:pStyle w:val="h2"/><w:isLgl/>')
            + level(2, "lowerLetter", "(%3)")
            + '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
            '<w:num w:numId="2"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="2">'
            '<w:startOverride w:val="1"/></w:lvlOverride></w:num>'
        )
        styles = "".join(
            f'<w:style w:styleId="h{number}"><w:name w:val="heading {number}"/>'
            '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
            for number in (1, 2)
        )
        listed = '<w:numPr><w:ilvl w:val="2"/><w:numId w:val="{}"/></w:numPr>'
        body = "".join(
            paragraph(text, properties)
            for text, properties in (
                ("Members", '<w:pStyle w:val="h1"/>'),
                ("Fees", '<w:pStyle w:val="h1"/>'),
                ("Amount", '<w:pStyle w:val="h2"/>'),
                ("half", listed.format(1)),
                ("", listed.format(1)),
                ("whole", listed.format(1)),
                ("none", listed.format(2)),
                ("Date", '<w:pStyle w:val="h2"/>'),
                ("March", listed.format(2)),
            )
        )
        found = reading("a.docx", docx(body, numbering=numbering, styles=styles)).sections
        self.assertEqual(
            [(section.anchor, section.heading, section.text) for section in found[-2:]],
            [
                ("amount", "Article II. Fees › 2.1 Amount", "(a) half\n\n(c) whole\n\n(a) none"),
                ("date", "Article II. Fees › 2.2 Date", "(a) March"),
            ],
        )

    def numbered(self, levels, *items):
        """The text of items (level, text) of a list with levels of these (format, label, properties)."""
        defined = "".join(
            f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>{more}'
            f'<w:lvlText w:val="{label}"/></w:lvl>'
            for number, (kind, label, more) in enumerate(levels)
        )
        numbering = (
            f'<w:abstractNum w:abstractNumId="7">{defined}</w:abstractNum>'
            '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
        )
        item = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr>'
        body = "".join(paragraph(text, item.format(level)) for level, text in items)
        return self.texts(body, numbering=numbering)[0].split("\n\n")

    def test_numbers_below_a_bullet_or_an_unmarked_item_restart(self):
        items = [(0, "Order."), (1, "ask"), (1, "wait"), (0, "Delivery."), (1, "check")]
        for kind, mark in (("bullet", "- "), ("none", "")):
            self.assertEqual(
                self.numbered([(kind, "•", ""), ("decimal", "(%2)", "")], *items),
                [f"{mark}Order.", "(1) ask", "(2) wait", f"{mark}Delivery.", "(1) check"],
            )

    def test_numbers_of_a_level_that_does_not_restart_continue(self):
        levels = [
            ("upperRoman", "Part %1", ""),
            ("decimal", "Article %2", '<w:lvlRestart w:val="0"/>'),
            ("lowerLetter", "%3)", '<w:lvlRestart w:val="1"/>'),
        ]
        items = [(0, "x"), (1, "x"), (2, "x"), (1, "x"), (2, "x"), (0, "x"), (1, "x"), (2, "x")]
        self.assertEqual(
            self.numbered(levels, *items),
            ["Part I x", "Article 1 x", "a) x", "Article 2 x", "b) x", "Part II x", "Article 3 x", "a) x"],
        )

    def test_cells_of_a_table_have_their_automatic_numbers_and_no_bullets(self):
        numbering = (
            '<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>'
            '<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
            '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
        )

        def numbered(text, level):
            item = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
            return f"<w:tc>{paragraph(text, item)}</w:tc>"

        rows = [
            cell("No.") + cell("Service") + cell("Price"),
            numbered("", 0) + cell("Repair") + numbered("5", 1),
            numbered("", 0) + cell("Cleaning") + cell("7"),
        ]
        table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
        self.assertEqual(
            self.texts(table, numbering=numbering),
            ["No.: 1.; Service: Repair; Price: 5\nNo.: 2.; Service: Cleaning; Price: 7"],
        )

    def test_ordinals_are_numbers(self):
        levels = [("ordinal", "%1", ""), ("decimal", "%1.%2", "")]
        self.assertEqual(
            self.numbered(levels, (0, "Ask"), (1, "by form"), (0, "Travel")),
            ["1. Ask", "1.1 by form", "2. Travel"],
        )

    def test_of_tracked_changes_insertions_are_read_and_deletions_are_not(self):
        body = (
            "<w:p><w:r><w:t>The rate is </w:t></w:r><w:del><w:r><w:delText>40p</w:delText></w:r></w:del>"
            "<w:ins><w:r><w:t>45p</w:t></w:r></w:ins>"
            "<w:moveFrom><w:r><w:t> gone</w:t></w:r></w:moveFrom></w:p>"
        )
        self.assertEqual(self.texts(body), ["The rate is 45p"])

    def test_a_deleted_end_of_a_paragraph_joins_it_with_the_next_one(self):
        deleted = '<w:rPr><w:del w:id="1" w:author="A"/></w:rPr>'
        body = paragraph("Leave is ", deleted) + paragraph("thirty days.") + paragraph("Ask early.")
        self.assertEqual(self.texts(body), ["Leave is thirty days.\n\nAsk early."])
        self.assertEqual(self.texts(paragraph("The last words.", deleted)), ["The last words."])

    def test_deleted_paragraphs_of_a_list_are_not_counted(self):
        numbering = (
            '<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>'
            '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
        )
        item = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
        deleted = (
            f'<w:p><w:pPr>{item}<w:rPr><w:del w:id="1" w:author="A"/></w:rPr></w:pPr>'
            "<w:del><w:r><w:delText>Wait</w:delText></w:r></w:del></w:p>"
        )
        body = paragraph("Ask", item) + deleted + paragraph("Travel", item)
        self.assertEqual(self.texts(body, numbering=numbering), ["1. Ask\n\n2. Travel"])

    def test_text_in_content_controls_and_links_is_read(self):
        body = f"<w:sdt><w:sdtContent>{paragraph('In a control.')}</w:sdtContent></w:sdt>"
        body += "<w:p><w:hyperlink><w:r><w:t>A link.</w:t></w:r></w:hyperlink></w:p>"
        self.assertEqual(self.texts(body), ["In a control.\n\nA link."])

    def test_equations_are_read(self):
        math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
        equation = f'<m:oMath xmlns:m="{math}"><m:r><m:t>E=mc</m:t></m:r></m:oMath>'
        body = f"<w:p><w:r><w:t>So </w:t></w:r>{equation}</w:p>"
        self.assertEqual(self.texts(body), ["So E=mc"])

    def test_footnotes_follow_the_paragraph_that_refers_to_them(self):
        body = '<w:p><w:r><w:t>Ask.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>' + paragraph("Go.")
        notes = f'<w:footnote w:id="2">{paragraph("Except on Sundays.")}</w:footnote>'
        self.assertEqual(self.texts(body, footnotes=notes), ["Ask.\n\nExcept on Sundays.\n\nGo."])

    def test_a_note_whose_reference_was_deleted_is_left_out(self):
        reference = '<w:r><w:footnoteReference w:id="{}"/></w:r>'
        deleted = f"<w:del>{reference.format(2)}</w:del>"
        body = f"<w:p><w:r><w:t>Ask.</w:t></w:r>{deleted}{reference.format(3)}</w:p>"
        notes = "".join(
            f'<w:footnote w:id="{number}">{paragraph(text)}</w:footnote>'
            for number, text in ((2, "Until 2025."), (3, "In writing."))
        )
        self.assertEqual(self.texts(body, footnotes=notes), ["Ask.\n\nIn writing."])

    def test_a_tab_to_a_margin_separates_words(self):
        body = "<w:p><w:r><w:t>Full time</w:t><w:ptab/><w:t>38 hours</w:t></w:r></w:p>"
        self.assertEqual(self.texts(body), ["Full time 38 hours"])

    def test_merged_cells_keep_their_columns_and_repeat_in_each_row(self):
        rows = [
            cell("Route") + cell("Season") + cell("Fare"),
            cell("R1", '<w:vMerge w:val="restart"/>') + cell("Winter") + cell("22"),
            cell("", "<w:vMerge/>") + cell("Summer") + cell("28"),
            cell("R2", '<w:gridSpan w:val="2"/>') + cell("30"),
        ]
        table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
        self.assertEqual(
            self.texts(table),
            ["Route: R1; Season: Winter; Fare: 22\nRoute: R1; Season: Summer; Fare: 28\nRoute: R2; Fare: 30"],
        )

    def test_a_row_that_begins_in_a_later_column_keeps_the_names_of_its_columns(self):
        rows = [
            cell("Item") + cell("2025") + cell("2026"),
            cell("Rent") + cell("100 €") + cell("110 €"),
            '<w:trPr><w:gridBefore w:val="1"/></w:trPr>' + cell("110 €") + cell("121 €"),
        ]
        table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
        self.assertEqual(
            self.texts(table), ["Item: Rent; 2025: 100 €; 2026: 110 €\n2025: 110 €; 2026: 121 €"]
        )

    def test_a_short_bold_paragraph_is_a_heading_and_a_bold_sentence_is_not(self):
        bold = "<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>{}</w:t></w:r></w:p>".format
        body = bold("On Sundays") + paragraph("No boats.") + bold("Wear a vest.") + paragraph("Always.")
        found = reading("a.docx", docx(body)).sections
        self.assertEqual(
            [(section.heading, section.text) for section in found],
            [("On Sundays", "On Sundays\n\nNo boats.\n\nWear a vest.\n\nAlways.")],
        )

    def test_clauses_that_are_styled_as_headings_are_text(self):
        """Contracts style their clauses as headings, because these have numbers."""
        clauses = [
            "Each party may terminate this agreement at any time with 45 days of written notice.",
            "after a breach of any of these obligations the notice is thirty days; or",
            "thirty days also apply to the following services of the institution:",
        ]
        body = [("Heading1", "Term and termination"), *(("Heading2", clause) for clause in clauses)]
        [section] = reading("a.docx", building.docx(*body)).sections
        self.assertEqual(section.text, "\n\n".join(["Term and termination", *clauses]))

    def test_a_long_text_without_headings_is_cited_by_its_paragraphs(self):
        body = "".join(paragraph(f"Paragraph {number}. " + "Words. " * 100) for number in range(1, 21))
        found = reading("a.docx", docx(body)).sections
        self.assertEqual([section.anchor for section in found[:3]], ["", "paragraph=6", "paragraph=11"])
        self.assertTrue(found[1].text.startswith("Paragraph 6."))
        text = "\n\n".join(f"Paragraph {number}. " + "Words. " * 100 for number in range(1, 21))
        found = reading("a.txt", text).sections
        self.assertEqual([section.anchor for section in found[:2]], ["line=1", "line=12"])

    def test_no_text_of_a_long_file_is_lost(self):
        """The parser reads in pieces of 16 KB, which end anywhere."""
        paragraphs = "".join(paragraph(f"Paragraph {number}. " + "word " * 20) for number in range(200))
        cells = [("Name", "Note"), *((f"Item {number}", "x" * 40) for number in range(400))]
        rows = "".join(f"<w:tr>{cell(name)}{cell(note)}</w:tr>" for name, note in cells)
        text = " ".join(self.texts(f"{paragraphs}<w:tbl>{rows}</w:tbl>{paragraphs}"))
        self.assertEqual(text.count("word"), 2 * 200 * 20)
        for number in range(200):
            self.assertEqual(text.count(f"Paragraph {number}."), 2)
        self.assertEqual((text.count("Name: Item"), text.count(f"Note: {'x' * 40}")), (400, 400))

    def test_entities_that_multiply_end_the_reading(self):
        bomb = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
            f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(12)
        )
        parts = building.docx_parts(("", "x"))
        parts["word/document.xml"] = bomb + "]>" + parts["word/document.xml"].replace("<w:t>x", "<w:t>&m;")
        with self.assertRaises(Unreadable) as caught:
            reading("a.docx", building.package(parts))
        self.assertEqual(str(caught.exception), DAMAGED)


@pytest.mark.slow
class SheetTests(SimpleTestCase):
    def test_values_are_read_as_they_are_displayed(self):
        book = openpyxl.Workbook()
        sheet = book.active
        sheet.append(["What", "Value"])
        values = [datetime(2026, 3, 1), datetime(2026, 3, 1, 9, 30), time(6, 10), 28900.0, 0.1 + 0.2, True]
        for number, value in enumerate(values):
            sheet.append([chr(97 + number), value])
        sheet.append(["share", 0.075])
        sheet.cell(sheet.max_row, 2).number_format = "0.0%"
        data = BytesIO()
        book.save(data)
        lines = reading("a.xlsx", data.getvalue()).sections[0].text.split("\n")
        self.assertEqual(
            [line.rpartition("Value: ")[2] for line in lines],
            ["2026-03-01", "2026-03-01 09:30", "06:10", "28900", "0.3", "TRUE", "7.5%"],
        )

    def test_entities_that_multiply_end_the_reading(self):
        data = building.xlsx({"S": [["a", "b"], ["x", 1]]})
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        bomb = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
            f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(12)
        )
        sheet = parts["xl/worksheets/sheet1.xml"].decode().replace("<t>x", "<t>&m;")
        parts["xl/worksheets/sheet1.xml"] = bomb + "]>" + sheet
        with self.assertRaises(Unreadable):
            reading("a.xlsx", building.package(parts))


CHART = """<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"
xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:chart>
<c:title><c:tx><c:rich><a:p><a:r><a:t>Passengers</a:t></a:r></a:p></c:rich></c:tx></c:title>
<c:plotArea><c:barChart>{}</c:barChart></c:plotArea></c:chart></c:chartSpace>"""
DIAGRAM = """<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"
xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst>{}</dgm:ptLst></dgm:dataModel>"""


class WordOmissionsTests(SimpleTestCase):
    def text(self, body, **parts):
        return "\n".join(section.text for section in reading("a.docx", docx(body, **parts)).sections)

    def test_hidden_text_and_deleted_rows_are_left_out(self):
        hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>not for customers</w:t></w:r>"
        shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>for all</w:t></w:r>'
        row = "<w:tr>{}" + cell("Ellery") + cell("45") + "</w:tr>"
        deleted = row.format('<w:trPr><w:del w:id="1" w:author="A"/></w:trPr>').replace("45", "40")
        head = f"<w:tr>{cell('Port')}{cell('Fare')}</w:tr>"
        table = f"<w:tbl>{head}{deleted}{row.format('')}</w:tbl>"
        text = self.text(f"<w:p>{hidden}{shown}</w:p>{table}")
        self.assertEqual(text, "for all\n\nPort: Ellery; Fare: 45")

    def test_a_generated_table_of_contents_is_left_out(self):
        entry = paragraph("1 Leave 3", '<w:pStyle w:val="Verzeichnis1"/>')
        style = '<w:style w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>'
        gallery = '<w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj>'
        generated = (
            f"<w:sdt><w:sdtPr>{gallery}</w:sdtPr><w:sdtContent>{paragraph('Pay 5')}</w:sdtContent></w:sdt>"
        )
        self.assertEqual(self.text(entry + generated + paragraph("Five days."), styles=style), "Five days.")

    def test_headings_with_a_style_based_on_that_of_a_title_of_contents_are_read(self):
        styles = (
            '<w:style w:styleId="C"><w:name w:val="TOC Heading"/></w:style>'
            '<w:style w:styleId="U"><w:name w:val="Unnumbered"/><w:basedOn w:val="C"/></w:style>'
        )
        body = paragraph("Contents", '<w:pStyle w:val="C"/>') + paragraph("Preface", '<w:pStyle w:val="U"/>')
        self.assertEqual(self.text(body + paragraph("Five days."), styles=styles), "Preface\n\nFive days.")

    def test_fractions_and_powers_are_written_in_a_line(self):
        math = "http://schemas.openxmlformats.org/officeDocument/2006/math"

        def part(name, text):
            return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"

        fraction = f"<m:f>{part('num', 'days + 1')}{part('den', '12')}</m:f>"
        powers = "".join(f"<m:sSup>{part('e', 'x')}{part('sup', power)}</m:sSup>" for power in ("2", "n + 1"))
        body = f'<w:p xmlns:m="{math}"><m:oMath>{fraction}{powers}</m:oMath></w:p>'
        self.assertEqual(self.text(body), "(days + 1)/12x²x^(n + 1)")


def series(name, **values):
    def points(texts):
        return "".join(f'<c:pt idx="{place}"><c:v>{text}</c:v></c:pt>' for place, text in enumerate(texts))

    return (
        f"<c:ser><c:tx><c:strRef><c:strCache>{points([name])}</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:strRef><c:strCache>{points(values)}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache>{points(values.values())}</c:numCache></c:numRef></c:val></c:ser>"
    )


class DrawingTests(SimpleTestCase):
    chart = CHART.format(series("Ellery", May="4.2999999999999998", June="5") + series("Gannet", May="3"))
    diagram = DIAGRAM.format(
        "".join(
            f"<dgm:pt><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>"
            for text in ("Harbour master", "Crew", "")
        )
    )
    lines = "Passengers\nMay; Ellery: 4.3; Gannet: 3\nJune; Ellery: 5"

    def relations(self, folder):
        related = "".join(
            f'<Relationship Id="{name}" Type="{building.OFFICE}/{kind}" Target="{folder}{name}.xml"/>'
            for name, kind in (
                ("chart", "chart"),
                ("data", "diagramData"),
                ("gone", "chart"),
                ("broken", "chart"),
            )
        )
        return building.RELATIONS.format(related)

    def test_charts_and_diagrams_of_a_slide_are_read(self):
        slides = building.pptx(("Ferries", ["In 2026"], ""))
        with zipfile.ZipFile(BytesIO(slides)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        parts |= {"ppt/x/chart.xml": self.chart, "ppt/x/data.xml": self.diagram}
        parts["ppt/slides/_rels/slide1.xml.rels"] = self.relations("../x/")
        found = reading("a.pptx", building.package(parts)).sections
        self.assertEqual(found[0].text, f"Ferries\n\nIn 2026\n\n{self.lines}\n\n- Harbour master\n- Crew")

    def test_numbers_and_dates_of_a_chart_are_read_in_their_formats(self):
        def numbers(name, number_format, *values):
            points = "".join(f'<c:pt idx="{at}"><c:v>{text}</c:v></c:pt>' for at, text in enumerate(values))
            cache = f"<c:numCache><c:formatCode>{number_format}</c:formatCode>{points}</c:numCache>"
            return f"<c:{name}><c:numRef>{cache}</c:numRef></c:{name}>"

        days = numbers("cat", "mmm\\ yy", "46023.0", "46054", "x", "1e300")
        shares = numbers("val", "0.0%", "0.25", "0.755", "#N/A", "1")
        root = ElementTree.fromstring(CHART.format(f"<c:ser>{days}{shares}</c:ser>"))
        with mock.patch.object(drawings, "xml_part", return_value=root):
            text = drawings.drawing_text(mock.sentinel.archive, "/chart", "chart.xml")
        self.assertEqual(text, "Passengers\n2026-01-01; 25.0%\n2026-02-01; 75.5%\nx; #N/A\n1e300; 100.0%")

    def test_slide_numbers_and_other_texts_of_the_page_with_notes_are_left_out(self):
        def shape(runs):
            text = f"<p:txBody><a:p>{runs}</a:p></p:txBody>"
            return f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr>{text}</p:sp></p:spTree>"

        with zipfile.ZipFile(BytesIO(building.pptx(("Ferries", ["In 2026"], "Smile.")))) as archive:
            parts = {name: archive.read(name).decode() for name in archive.namelist()}
        namespace = "http://schemas.openxmlformats.org/officeDocument/2006/math"
        math = f'<m:oMath xmlns:m="{namespace}"><m:r><m:t>a=b</m:t></m:r></m:oMath>'
        number = '<a:fld type="slidenum"><a:t>7</a:t></a:fld>'
        slide, notes = "ppt/slides/slide1.xml", "ppt/notesSlides/notes1.xml"
        parts[slide] = parts[slide].replace("</p:spTree>", shape(f"<a:r><a:t>Page</a:t></a:r>{number}{math}"))
        parts[notes] = parts[notes].replace("</p:spTree>", shape("<a:r><a:t>(footer)</a:t></a:r>"))
        found = reading("a.pptx", building.package(parts)).sections
        self.assertEqual(found[0].text, "Ferries\n\nIn 2026\n\nPagea=b\n\nNotes: Smile.")

    def test_charts_and_diagrams_of_a_word_file_are_read_in_place(self):
        space = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
        chart = (
            f'<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" {space} r:id="{{}}"/>'
        )
        diagram = (
            '<dgm:relIds xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
            f'{space} r:dm="data"/>'
        )
        drawn = "".join(
            f"<w:p><w:r><w:drawing>{drawing}</w:drawing></w:r></w:p>"
            for drawing in (chart.format("chart"), diagram, *map(chart.format, ("gone", "none", "broken")))
        )
        files = building.docx_parts()
        body = f"<w:body>{paragraph('Before.')}{drawn}{paragraph('After.')}</w:body>"
        files["word/document.xml"] = f'<w:document xmlns:w="{WORD}">{body}</w:document>'
        files |= {"word/chart.xml": self.chart, "word/data.xml": self.diagram, "word/broken.xml": "<c:chart"}
        files["word/_rels/document.xml.rels"] = self.relations("")
        found = reading("a.docx", building.package(files)).sections
        self.assertEqual(found[0].text, f"Before.\n\n{self.lines}\n\n- Harbour master\n- Crew\n\nAfter.")
