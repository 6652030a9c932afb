"""Struck text, which is not valid any more and must not join the text that replaces it."""

from django.test import SimpleTestCase

from ingestion.tests import building
from ingestion.tests.building import WORD
from ingestion.tests.parsing.test_reading_formats import reading

READ = "Within 30 days."


class ReadingStruckTextsTests(SimpleTestCase):
    def text(self, name, data):
        (section,) = reading(name, data).sections
        return section.text

    def test_word_files(self):
        run = '<w:r><w:rPr>{}</w:rPr><w:t xml:space="preserve">{}</w:t></w:r>'
        for start, old, more in (("Within ", "14", ""), ("Within", " 14 ", '<w:strike w:val="0"/>')):
            for property in ("<w:strike/>", '<w:dstrike w:val="1"/>'):
                paragraph = run.format("", start) + run.format(property, old) + run.format(more, "30 days.")
                document = (
                    f'<w:document xmlns:w="{WORD}"><w:body><w:p>{paragraph}</w:p></w:body></w:document>'
                )
                data = building.package({**building.docx_parts(), "word/document.xml": document})
                with self.subTest(paragraph):
                    self.assertEqual(self.text("a.docx", data), READ)

    def test_slides(self):
        data = building.pptx(("Leave", ["30 days."], ""))
        plain = b"<a:r><a:t>30 days.</a:t></a:r>"
        struck = b'<a:r><a:rPr strike="%s"/><a:t>%s</a:t></a:r>'
        within = struck % (b"noStrike", b"Within ") + struck % (b"sngStrike", b"14")
        self.assertIn(READ, self.text("a.pptx", building.replaced(data, plain, within + plain)))

    def test_open_document_texts(self):
        urn = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
        spaces = " ".join(f'xmlns:{name}="{urn.format(name)}"' for name in ("text", "office", "style"))
        styles = "".join(
            f'<style:style style:name="{name}">'
            f'<style:text-properties style:text-line-through-style="{line}"/></style:style>'
            for name, line in (("Old", "solid"), ("New", "none"))
        )
        span = '<text:span text:style-name="{}">{}</text:span>'
        for body in (
            f"<text:p>Within {span.format('Old', '14')}30 days.</text:p>",
            f"<text:p>Within{span.format('Old', span.format('T', ' 14') + '<text:s/>')}30 days.</text:p>",
            f'<text:p text:style-name="Old">14 days</text:p><text:p>{READ}</text:p>',
            f'<text:p text:style-name="Old">14{span.format("New", READ)}14</text:p>',
        ):
            content = (
                f"<office:document-content {spaces}><office:automatic-styles>{styles}"
                f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
                "</office:document-content>"
            )
            parts = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}
            with self.subTest(body):
                text = self.text("a.odt", building.package(parts))
                self.assertEqual(" ".join(text.split()), READ)

    def test_rich_texts(self):
        for text in (
            r"Within {\strike 14}30 days.",
            r"Within \striked1 14\striked0 30 days.",
            r"Within\strike  14 \plain 30 days.",
        ):
            with self.subTest(text):
                self.assertEqual(self.text("a.rtf", rb"{\rtf1\ansi " + text.encode() + rb"\par}"), READ)

    def test_markdown(self):
        for text, read in {
            "Within ~~14~~30 days.": READ,
            "Within <del class=x>14</del><ins>30</ins> days.": "Within 30 days.",
            "Within <s>14 **or** 15</s>30 days.": READ,
            "<div>\nWithin <del>14</del>30 days.\n</div>": READ,
            "| Leave | Days |\n|---|---|\n| Own | ~~14~~30 |": "Leave: Own; Days: 30",
            "Use `a~~b~~` for ~5 or ~~6.": "Use a~~b~~ for ~5 or ~~6.",
            "```\na ~~b~~ <del>c</del>\n```": "a ~~b~~ <del>c</del>",
        }.items():
            with self.subTest(text):
                found = " ".join(self.text("a.md", text.encode()).split())
                self.assertEqual(found, read)
