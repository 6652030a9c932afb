"""Superscript digits, which are marks of footnotes or exponents, not part of the number before them."""

import re

from django.test import SimpleTestCase

from chat.verification.terms.facts import tokens
from chatsite.superscripts import superscript, without_note_marks
from ingestion.search.tokens import plain_words
from ingestion.tests import building
from ingestion.tests.building import WORD
from ingestion.tests.parsing.test_reading_formats import reading

READ = "A day costs 250¹ euros, 45 m² more, on the 2nd day²⁾ nothing."


def runs(*parts, raised, plain):
    """The parts of the sentence as runs; every other one is raised."""
    return "".join((raised if place % 2 else plain).format(part) for place, part in enumerate(parts))


PARTS = ("A day costs 250", "1", " euros, 45 m", "2", " more, on the 2", "nd", " day", "2)", " nothing.")


class ReadingSuperscriptsTests(SimpleTestCase):
    def text(self, name, data):
        (section,) = reading(name, data).sections
        return section.text

    def test_web_pages(self):
        page = f"<p>{runs(*PARTS, raised='<sup>{}</sup>', plain='{}')}</p>"
        self.assertEqual(self.text("a.html", page.encode()), READ)

    def test_raised_minutes_and_cents(self):
        page = (
            "<p>Von 8<sup>30</sup> bis 10<sup>00</sup> Uhr: 19<sup>99</sup> €, für 12<sup>1</sup> Personen "
            "250<sup>12</sup> Euro</p>"
        )
        self.assertEqual(
            self.text("a.html", page.encode()), "Von 8:30 bis 10:00 Uhr: 19,99 €, für 12¹ Personen 250¹² Euro"
        )

    def test_rich_texts(self):
        for raised in (r"{{\super {}}}", r"{{\up6\fs16 {}}}", r"\super {}\nosupersub "):
            text = runs(*PARTS, raised=raised, plain="{}")
            with self.subTest(raised):
                self.assertEqual(self.text("a.rtf", rb"{\rtf1\ansi " + text.encode() + rb"\par}"), READ)

    def test_word_files(self):
        run = '<w:r><w:rPr>{}</w:rPr><w:t xml:space="preserve">{{}}</w:t></w:r>'
        for property in ('<w:vertAlign w:val="superscript"/>', '<w:position w:val="8"/>'):
            parts = building.docx_parts()
            paragraph = runs(*PARTS, raised=run.format(property), plain=run.format(""))
            document = f'<w:document xmlns:w="{WORD}"><w:body><w:p>{paragraph}</w:p></w:body></w:document>'
            with self.subTest(property):
                data = building.package({**parts, "word/document.xml": document})
                self.assertEqual(self.text("a.docx", data), READ)

    def test_open_document_texts(self):
        span = '<text:span text:style-name="{}">{{}}</text:span>'
        urn = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
        spaces = " ".join(f'xmlns:{name}="{urn.format(name)}"' for name in ("text", "office", "style"))
        for position in ("super 58%", "33% 100%"):
            content = (
                f'<office:document-content {spaces}><office:automatic-styles><style:style style:name="T1">'
                f'<style:text-properties style:text-position="{position}"/></style:style>'
                f"</office:automatic-styles><office:body><office:text>"
                f"<text:p>{runs(*PARTS, raised=span.format('T1'), plain=span.format('T2'))}</text:p>"
                "</office:text></office:body></office:document-content>"
            )
            parts = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}
            with self.subTest(position):
                self.assertEqual(self.text("a.odt", building.package(parts)), READ)

    def test_raised_text_in_the_footer_of_an_open_document_text_is_not_in_the_content(self):
        """Automatic styles of the content have the same names as those of headers and footers."""
        urn = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
        spaces = " ".join(f'xmlns:{name}="{urn.format(name)}"' for name in ("text", "office", "style"))
        content = '<text:p>Leave: <text:span text:style-name="T1">30</text:span> days</text:p>'
        raised = '<style:text-properties style:text-position="super 58%"/>'
        style = f'<style:style style:name="T1">{raised}</style:style>'
        automatic = f"<office:automatic-styles>{style}</office:automatic-styles>"
        parts = {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {spaces}><office:body><office:text>{content}"
            "</office:text></office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {spaces}>{automatic}</office:document-styles>",
        }
        self.assertEqual(self.text("a.odt", building.package(parts)), "Leave: 30 days")

    def test_slides(self):
        data = building.pptx(("Costs", ["250"], ""))
        plain = b"<a:r><a:t>250</a:t></a:r>"
        raised = b'<a:r><a:rPr baseline="30000"/><a:t>1</a:t></a:r>'
        self.assertIn("250¹", self.text("a.pptx", building.replaced(data, plain, plain + raised)))

    def test_pdfs(self):
        """A footnote's mark, an exponent with a sign, a mark after a space; lower digits stay plain."""
        page = (
            "BT /F1 11 Tf 50 780 Td (A day costs 250) Tj 4 Ts /F1 7 Tf (1) Tj 0 Ts /F1 11 Tf ( euros, 10) Tj"
            " 4 Ts /F1 7 Tf (-3) Tj 0 Ts /F1 11 Tf ( of it, a night ) Tj 4 Ts /F1 7 Tf (2) Tj 0 Ts /F1 11 Tf"
            "( in 2026-2027, H) Tj -2 Ts /F1 7 Tf (2) Tj 0 Ts /F1 11 Tf (O, size A) Tj /F1 7 Tf (4) Tj"
            " /F1 11 Tf (.) Tj ET\n"
        )
        text = self.text("a.pdf", building.drawn(page))
        self.assertEqual(
            " ".join(text.split()),
            "A day costs 250¹ euros, 10⁻³ of it, a night ² in 2026-2027, H2O, size A4.",
        )


class SuperscriptTests(SimpleTestCase):
    def test_only_digits_become_superscripts(self):
        for text, written in {
            "1": "¹",
            "-3": "⁻³",
            "2)": "²⁾",
            "1, 2": "¹, ²",
            "nd": "nd",
            "1-3": "1-3",
            "[1]": "[1]",
        }.items():
            self.assertEqual(superscript(text), written)

    def test_marks_of_notes_are_left_out_of_words_and_numbers(self):
        text = "The fee¹ is 250² euros for 45 m² or 3 m³."
        self.assertEqual(without_note_marks(text), "The fee  is 250  euros for 45 m² or 3 m³.")
        self.assertEqual(plain_words(text), "the fee is 250 euros for 45 m2 or 3 m3")
        self.assertEqual(
            [token.value for token in tokens(text) if token.kind.name == "NUMBER"], ["250", "45", "3"]
        )

    def test_exponents_are_kept(self):
        for text in (
            "10⁶ pieces",
            "10¹² pieces",
            "10⁻³ mol",
            "5 s⁻¹",
            "9.81 m/s²",
            "3 ft²",
            "20 qm²",
            "4 nm³",
        ):
            self.assertEqual(without_note_marks(text), text)

    def test_marks_that_follow_similar_words_are_no_exponents(self):
        for text in (
            "10¹ euros",
            "10³⁾ euros",
            "110³ euros",
            "1.10³ euros",
            "it’s² new",
            "a term³",
            "boats²",
        ):
            self.assertEqual(without_note_marks(text), re.sub("[¹²³⁾]", " ", text))
