"""No word of a file is dropped silently: long headings, cells, tables in tables, mixed messages."""

import json
import re
from email.message import EmailMessage

from django.test import SimpleTestCase

from ingestion.indexing.splitting import passages_of
from ingestion.parsing.readers.tables import table_text
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading
from ingestion.tests.parsing.test_reading_office import docx, paragraph
from ingestion.tests.parsing.test_reading_other_formats import odf, odf_cell, odf_row
from ingestion.tests.parsing.test_reading_pdf import lines

NUMBERED = re.compile(r"q\d{6}z")


class Words:
    """Numbered words, each of which the reader must return."""

    def __init__(self):
        self.made = []

    def __call__(self, count=1):
        words = [f"q{len(self.made) + number:06d}z" for number in range(count)]
        self.made += words
        return " ".join(words)


class WholeTests(SimpleTestCase):
    def setUp(self):
        self.words = Words()

    def found(self, name, data):
        """Check that every word is in a section and in a passage; return the reading of the file."""
        read = reading(name, data)
        for parts in (
            [read.title, *(f"{section.heading}\n{section.text}" for section in read.sections)],
            [
                read.title,
                *(f"{passage.heading}\n{passage.content}" for passage in passages_of(read.sections)),
            ],
        ):
            found = set(NUMBERED.findall("\n".join(parts)))
            self.assertEqual([word for word in self.words.made if word not in found], [])
        return read

    def styled(self, style, count):
        return paragraph(self.words(count), f'<w:pStyle w:val="{style}"/>')

    def test_a_clause_that_is_a_heading_is_kept(self):
        """Contracts number their clauses as headings."""
        body = self.styled("heading 1", 3) + self.styled("heading 2", 60) + self.styled("heading 2", 60)
        read = self.found("a.docx", docx(body + paragraph(self.words(5))))
        self.assertEqual([section.heading for section in read.sections], ["q000000z q000001z q000002z"])

    def test_a_path_of_long_headings_is_kept_and_shortened_above_its_end(self):
        body = "".join(self.styled(f"heading {level}", 15) for level in (1, 2, 3, 4))
        read = self.found("a.docx", docx(body + paragraph(self.words(5))))
        second, third, own = read.sections[-1].heading.split(" › ")
        self.assertEqual(own, " ".join(f"q{number:06}z" for number in range(45, 60)))
        self.assertEqual([second[:8], second[-1], third[:8], third[-1]], ["q000015z", "…", "q000030z", "…"])

    def test_a_first_heading_that_is_not_the_title_is_kept(self):
        """The document has another title, and no text under its first heading."""
        self.found(
            "a.md",
            f"---\ntitle: Plan of the year\n---\n# {self.words(3)}\n\n## {self.words(2)}\n\n{self.words()}\n",
        )
        self.words = Words()
        self.found("a.md", f"# {self.words(26)}\n\n## {self.words(2)}\n\n{self.words()}\n")

    def test_long_headings_of_texts_are_kept(self):
        title = self.words(60)
        self.found("a.txt", f"{title}\n{'=' * len(title)}\n\n{self.words(3)}")

    def test_endnotes_are_kept(self):
        reference = '<w:r><w:endnoteReference w:id="2"/></w:r>'
        notes = f'<w:endnote w:id="2">{paragraph(self.words(5))}</w:endnote>'
        text = paragraph(self.words(2)).replace("</w:p>", f"{reference}</w:p>")
        self.found("a.docx", docx(text, endnotes=notes))

    def test_a_table_in_a_table_is_kept(self):
        w = self.words
        inner = f"<table><tr><td>{w()}</td><td>{w()}</td></tr></table>"
        row = f"<tr><td>{w()}</td><td>{w()}</td></tr>"
        text = f"<table><tr><td>{w()}</td><td>{inner}</td><td>{w()}</td></tr>{row}</table><p>{w()}</p>"
        read = self.found("a.html", text)
        self.assertIn(f"{w.made[2]} {w.made[3]}", read.sections[0].text)

    def test_headings_and_stray_text_in_a_table_are_kept(self):
        w = self.words
        cells = f"<td>{w()}</td><td><h3>{w()}</h3>{w()}</td><td>{w()}</td><td>{w()}</td>"
        read = self.found("a.html", f"<table>{w()}<tr>{cells}</tr><tr>{w()}</tr>{w()}</table>")
        self.assertNotIn("zq", " ".join(section.text for section in read.sections))

    def test_more_columns_than_a_span_allows_are_kept(self):
        cells = "".join(f"<td>{self.words()}</td>" for _ in range(1_100))
        self.found("a.html", f"<table><tr>{cells}</tr></table>")
        self.words = Words()
        row = odf_row(*(odf_cell(self.words()) for _ in range(1_100)))
        self.found("a.ods", odf("spreadsheet", f'<table:table table:name="S">{row}</table:table>'))

    def test_a_table_of_one_row_with_long_cells_is_kept(self):
        """The cells are read as names of columns."""
        self.found("a.html", f"<table><tr><td>{self.words(40)}</td><td>{self.words(40)}</td></tr></table>")

    def test_a_long_name_of_a_column_is_kept(self):
        rows = "".join(f"{self.words()};{self.words()}\n" for _ in range(4))
        read = self.found("a.csv", f"{self.words(20)};{self.words(2)}\n{rows}")
        self.assertTrue(all(len(line) < 450 for line in read.sections[0].text.splitlines()))

    def test_a_column_without_values_is_kept(self):
        """Such columns occur in forms that are filled in by hand."""
        rows = "".join(f"{self.words()};{self.words()};\n" for _ in range(4))
        self.found("a.csv", f"{self.words()};{self.words()};{self.words()}\n{rows}")

    def test_a_cell_of_300_kb_is_kept(self):
        text = table_text([["Name", "Text"], ["Log", self.words(30_000)]])
        self.assertEqual(NUMBERED.findall(text), self.words.made)

    def test_text_boxes_and_notes_of_opendocument_are_kept(self):
        w = self.words
        box = f"<draw:frame><draw:text-box><text:p>{w(3)}</text:p></draw:text-box></draw:frame>"
        note = f"<text:note><text:note-body><text:p>{w(3)}</text:p></text:note-body></text:note>"
        heading = f'<text:h text:outline-level="1">{w(2)}{note}</text:h>'
        cells = odf_cell(f"{w()}{box.replace(w.made[0], w())}"), odf_cell(w())
        table = f"<table:table>{odf_row(*cells)}</table:table>"
        read = self.found("a.odt", odf("text", f"{box}{heading}{table}<text:p>{w()}</text:p>"))
        text = " ".join(section.text for section in read.sections)
        self.assertEqual(text.count(w.made[-3]), 1)

    def test_rich_text_with_unclosed_tables_and_groups_is_kept(self):
        w = self.words
        text = rf"{{\rtf1\trowd\cellx1\intbl {w()}\cell\row {w(3)}\par {{\u8364}}{w()}\par "
        self.found("a.rtf", rf"{text}\trowd\cellx1\cellx2\intbl {w()}\cell {w()}}}")

    def test_a_plain_text_footer_of_an_html_message_is_kept(self):
        """Mailing lists add such footers."""
        mail = self.mail()
        mail.set_content(f"<p>{self.words(5)}</p>", subtype="html")
        mail.add_attachment(self.words(3), disposition="inline")
        mail.add_attachment(b"BEGIN:VCARD", maintype="text", subtype="vcard", disposition="inline")
        read = self.found("a.eml", mail.as_bytes())
        self.assertIn(("attachment.vcf", "files of this kind cannot be read"), read.left_out)

    def test_all_recipients_and_names_of_unread_attachments_are_kept(self):
        mail = self.mail()
        del mail["To"]
        mail["To"] = ", ".join(f"{self.words()} <someone.with.a.name@example.org>" for _ in range(60))
        mail.set_content(self.words(2))
        for number in range(202):
            mail.add_attachment(b"text", maintype="text", subtype="plain", filename=f"a{number}.txt")
        read = self.found("a.eml", mail.as_bytes())
        self.assertIn(("a201.txt", "only 200 attachments are read"), read.left_out)

    def test_a_newsletter_is_read_from_its_html_if_the_plain_text_only_refers_to_it(self):
        mail = self.mail()
        mail.set_content("Your programme shows this message as text. Please open it in a browser.")
        mail.add_alternative(f"<h1>News</h1><p>{self.words(80)}</p>", subtype="html")
        read = self.found("a.eml", mail.as_bytes())
        self.assertNotIn("in a browser", read.sections[-1].text)

    def test_a_text_in_two_forms_is_read_once(self):
        mail = self.mail()
        text = self.words(80)
        mail.set_content(text)
        mail.add_alternative(f"<p>{text}</p><p>Sent with a long footer</p>", subtype="html")
        read = self.found("a.eml", mail.as_bytes())
        self.assertEqual(sum(section.text.count(self.words.made[0]) for section in read.sections), 1)

    def test_a_message_of_too_many_parts_says_so(self):
        mail = self.mail()
        mail.make_mixed()
        for _ in range(2_001):
            part = EmailMessage()
            part.set_content("text")
            mail.attach(part)
        read = reading("a.eml", mail.as_bytes())
        self.assertIn(("further parts", "only 2000 parts are read"), read.left_out)

    def test_marked_text_of_a_web_page_is_kept(self):
        w = self.words
        script = "<script>//<![CDATA[\nx < 1\n//]]></script>"
        page = f"<p>{w(2)}<![CDATA[ {w(2)} <b> {w()} & {w()} ]]>{w()}</p>"
        self.found(
            "a.html",
            f"<html><body>{page}{script}<p>{w()}</p></body></html>".encode(),
        )

    def test_a_duplicate_name_in_an_object_is_kept(self):
        w = self.words
        self.found(
            "a.json",
            f'{{"step": "{w()}", "step": {{"a": "{w()}"}}, "b": [{{"c": "{w()}", "c": "{w()}"}}]}}'.encode(),
        )

    def mail(self):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "a@example.org", "b@example.org", "Plan"
        return mail

    def test_the_keys_of_many_records_are_kept(self):
        self.found("a.json", json.dumps({"x": {self.words(): {"a": self.words()} for _ in range(1_500)}}))

    def test_a_broken_byte_does_not_change_the_other_letters(self):
        text = "".join(f"{self.words(5)} Größe für Maß\n" for _ in range(100)).encode()
        read = self.found("a.txt", text[:900] + b"\xff" + text[900:])
        self.assertEqual(read.sections[0].text.count("Größe"), 100)

    def test_a_list_over_several_pages_of_a_pdf_is_kept(self):
        """The rows differ only in their numbers, like running titles."""
        rows = [f"{self.words()} of 2024 over {number}.50 EUR" for number in range(120)]
        pages = [rows[start : start + 30] for start in range(0, 120, 30)]
        drawn = [
            lines(*(("F1", 9, text) for text in [f"Page {number} of 4", *page]))
            for number, page in enumerate(pages, 1)
        ]
        read = self.found("a.pdf", building.drawn(*drawn))
        self.assertNotIn("Page 3", " ".join(section.text for section in read.sections))

    def test_a_pdf_heading_above_a_larger_one_is_kept(self):
        fonts = (("F1", 14), ("F1", 20), ("F1", 10), ("F1", 10))
        self.found(
            "a.pdf", building.drawn(lines(*((*font, self.words(9 - 2 * (font[1] > 10))) for font in fonts)))
        )
