"""OpenDocument, rich text, mail, e-books, archives and the Office formats from before 2007."""

import email
import email.policy
import io
import shutil
import subprocess
import tempfile
import unittest
import zipfile
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage
from pathlib import Path
from unittest import mock

from django.test import SimpleTestCase

from ingestion.parsing import process
from ingestion.parsing.containers import LEADS_OUT
from ingestion.parsing.formats import DAMAGED, FORMATS, PASSWORD
from ingestion.parsing.readers import READERS, mail
from ingestion.parsing.readers.office import legacy
from ingestion.parsing.sections import Limits, Unreadable
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading

SOFFICE = unittest.skipUnless(shutil.which("soffice"), "LibreOffice is not installed")
NAMES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
        ("presentation", "presentation"), ("style", "style"), ("fo", "xsl-fo-compatible"),
        ("svg", "svg-compatible"),
    )
)  # fmt: skip
STYLES = (
    '<office:automatic-styles><style:style style:name="B"><style:text-properties fo:font-weight="bold"/>'
    '</style:style><style:style style:name="Gone"><style:table-properties table:display="false"/>'
    "</style:style>"
    "</office:automatic-styles>"
)
LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(12)
)


def odf(kind, body, before="", **parts):
    content = (
        f"{before}<office:document-content {NAMES}>{STYLES}<office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    return building.package(
        {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content} | parts
    )


def odf_row(*cells):
    return f"<table:table-row>{''.join(cells)}</table:table-row>"


def odf_cell(text, more=""):
    return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"


def epub(*chapters, **parts):
    items = "".join(
        f'<item id="c{number}" href="c%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in reversed(range(len(chapters))))
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="O/p.opf"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>The book</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine>"
        f"</package>"
    )
    files = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "O/p.opf": package}
    files |= {
        f"O/c {number}.xhtml": f"<html><body>{text}</body></html>" for number, text in enumerate(chapters)
    }
    return building.package(files | parts)


def message(*attachments, text="Dear all,\n\nthe ferry leaves at nine.", html=""):
    mail = EmailMessage()
    mail["From"], mail["To"] = "Ada Berg <ada@example.org>", "crew@example.org"
    mail["Subject"], mail["Date"] = "Fährplan für März", "Mon, 02 Mar 2026 09:30:00 +0000"
    mail.set_content(text)
    if html:
        mail.clear_content()
        mail.set_content(html, subtype="html")
    for name, data in attachments:
        mail.add_attachment(data, "application", "octet-stream", filename=name)
    return mail.as_bytes()


class OtherFormatsTests(SimpleTestCase):
    def parts(self, name, data):
        return [(section.anchor, section.text) for section in reading(name, data).sections]

    def reason(self, name, data):
        """The sentence with which the child process refuses the file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(data)
            with self.assertRaises(Unreadable) as caught:
                process.read(path, Path(name).suffix, lambda done, total: None, folder=Path(folder))
        return str(caught.exception)

    def test_an_opendocument_text_is_read_by_its_headings_with_lists_tables_and_notes(self):
        table = odf_row(odf_cell("Port"), odf_cell("Fare")) + odf_row(odf_cell("Ellery"), odf_cell("45"))
        body = (
            '<text:h text:outline-level="1">Leave</text:h><text:p>Ask<text:s/>first.<text:note>'
            "<text:note-body>"
            "<text:p>By form.</text:p></text:note-body></text:note></text:p>"
            "<text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>"
            '<text:h text:outline-level="2">'
            "Fares</text:h><text:list><text:list-item><text:p>Adults</text:p></text:list-item></text:list>"
            f'<table:table>{table}</table:table><text:p text:style-name="B">On Sundays</text:p>'
            f"<text:p>None.<draw:frame><draw:text-box><table:table>{table}</table:table></draw:text-box>"
            f"</draw:frame></text:p>"
        )
        self.assertEqual(
            self.parts("a.odt", odf("text", body)),
            [("leave", "Leave\n\nAsk first.\n\nBy form."), ("fares", "- Adults\n\nPort: Ellery; Fare: 45"),
             ("on-sundays", "None.\nPort: Ellery; Fare: 45")],
        )  # fmt: skip

    def test_items_and_headings_of_an_opendocument_text_have_their_displayed_numbers(self):
        def level(kind, number, given):
            return f'<text:{kind} text:level="{number}" style:num-suffix="." {given}/>'

        outline = "".join(
            level("outline-level-style", number, f'style:num-format="1" text:display-levels="{number}"')
            for number in (1, 2)
        )
        styles = (
            f"<office:document-styles {NAMES}><office:styles>"
            f"<text:outline-style>{outline}</text:outline-style>"
            '<text:list-style style:name="L1">'
            + level("list-level-style-number", 1, 'style:num-format="1"')
            + level("list-level-style-number", 2, 'style:num-format="a" style:num-prefix="("')
            + level("list-level-style-bullet", 3, "")
            + "</text:list-style></office:styles></office:document-styles>"
        )

        def listed(*items, more='text:style-name="L1"'):
            inside = "".join(f"<text:list-item>{item}</text:list-item>" for item in items)
            return f"<text:list {more}>{inside}</text:list>"

        def paragraph(text):
            return f"<text:p>{text}</text:p>"

        inner = listed(
            paragraph("a towel"), paragraph("a tent") + listed(paragraph("green"), more=""), more=""
        )
        body = (
            '<text:h text:outline-level="1">Duties</text:h><text:h text:outline-level="2">Camp</text:h>'
            + listed(paragraph("Bring") + inner, paragraph("Stay"))
            + paragraph("Then:")
            + listed(paragraph("Go"), more='text:style-name="L1" text:continue-numbering="true"')
            + listed(paragraph("Anew"))
            + '<text:p text:style-name="Heading">Fees</text:p>'
            + paragraph("None.")
        )
        found = reading("a.odt", odf("text", body, **{"styles.xml": styles})).sections
        items = ["1. Bring", "(a. a towel", "(b. a tent", "- green", "2. Stay", "Then:", "3. Go", "1. Anew"]
        self.assertEqual(
            [(section.anchor, section.heading, section.text) for section in found],
            [
                ("camp", "1.1. Camp", "\n\n".join(items)),
                ("fees", "1.1. Camp › Fees", "None."),
            ],
        )

    def test_numbers_below_a_bullet_of_an_opendocument_text_restart(self):
        def listed(*items):
            return f'<text:list text:style-name="L">{"".join(items)}</text:list>'

        def item(text, below=""):
            return f"<text:list-item><text:p>{text}</text:p>{below}</text:list-item>"

        style = (
            '<text:list-style style:name="L"><text:list-level-style-bullet text:level="1"/>'
            '<text:list-level-style-number text:level="2" style:num-format="1" style:num-suffix="."'
            ' text:display-levels="2"/></text:list-style>'
        )
        body = listed(
            item("Order", listed(item("ask"), item("wait"))), item("Delivery", listed(item("check")))
        )
        data = odf("text", body, **{"styles.xml": f"<office:styles {NAMES}>{style}</office:styles>"})
        [(_, text)] = self.parts("a.odt", data)
        self.assertEqual(text.split("\n\n"), ["- Order", "1. ask", "2. wait", "- Delivery", "1. check"])

    def test_cells_of_an_opendocument_text_have_their_automatic_numbers(self):
        style = (
            '<text:list-style style:name="L"><text:list-level-style-number text:level="1"'
            ' style:num-format="1" style:num-suffix="."/></text:list-style>'
        )
        number = (
            '<table:table-cell><text:list text:style-name="L" text:continue-numbering="true">'
            "<text:list-item><text:p/></text:list-item></text:list></table:table-cell>"
        )
        rows = [
            odf_row(odf_cell("No."), odf_cell("Service")),
            odf_row(number, odf_cell("Repair")),
            odf_row(number, odf_cell("Cleaning")),
        ]
        data = odf(
            "text",
            f"<table:table>{''.join(rows)}</table:table>",
            **{"styles.xml": f"<office:styles {NAMES}>{style}</office:styles>"},
        )
        [(_, text)] = self.parts("a.odt", data)
        self.assertEqual(text, "No.: 1.; Service: Repair\nNo.: 2.; Service: Cleaning")

    def test_a_sheet_is_cited_by_its_name_and_the_range_of_its_cells(self):
        rows = odf_row(odf_cell("Port"), odf_cell("Fare"))
        rows += odf_row(odf_cell("Ellery", 'table:number-rows-spanned="2"'), odf_cell("45"))
        rows += odf_row("<table:covered-table-cell/>", odf_cell("38"))
        rows += odf_row('<table:table-cell table:number-columns-repeated="16384"/>').replace(
            "<table:table-row>", '<table:table-row table:number-rows-repeated="1048000">'
        )
        body = f'<table:table table:name="Fares">{rows}</table:table>'
        body += f'<table:table table:name="Old" table:style-name="Gone">{rows}</table:table>'
        self.assertEqual(
            self.parts("a.ods", odf("spreadsheet", body)),
            [("sheet=Fares", "Port: Ellery; Fare: 45\nPort: Ellery; Fare: 38")],
        )
        many = "".join(odf_row(odf_cell(f"Port {n}"), odf_cell("45")) for n in range(2, 100))
        head = odf_row(odf_cell("Port"), odf_cell("Fare"))
        body = f'<table:table table:name="Fares">{head}{many}</table:table>'
        found = self.parts("a.ods", odf("spreadsheet", body))
        self.assertEqual([anchor for anchor, _ in found], ["sheet=Fares!A2:B51", "sheet=Fares!A52:B99"])
        self.assertTrue(found[1][1].startswith("Port: Port 52; Fare: 45\n"), found[1][1][:80])

    def test_descriptions_of_shapes_are_lines_and_phonetic_guides_are_left_out(self):
        guide = "<text:ruby-text>とうきょう</text:ruby-text>"
        ruby = f"<text:ruby><text:ruby-base>東京</text:ruby-base>{guide}</text:ruby>"
        described = "<svg:title>Map</svg:title><svg:desc>The harbour.</svg:desc><text:p>Pier 1</text:p>"
        body = f"<text:p>{ruby}<draw:rect>{described}</draw:rect></text:p>"
        found = reading("a.odt", odf("text", body))
        self.assertEqual(found.sections[0].text, "東京\nMap\nThe harbour.\nPier 1")

    def test_the_title_of_a_rich_text_is_its_second_form_in_unicode(self):
        title = rb"{\info{\upr{\title ????}{\*\ud\uc0{\title \u1055\u1086\u1088\u1090}}}}"
        self.assertEqual(reading("a.rtf", rb"{\rtf1\ansi" + title + rb"Text.\par}").title, "Порт")

    def test_a_rich_text_has_one_code_page_for_fonts_without_a_character_set(self):
        data = rb"{\rtf1\ansi\ansicpg1250{\fonttbl{\f0 Arial;}}{\f0 \'9alo} \f0 \'9alo\par}"
        self.assertEqual(reading("a.rtf", data).sections[0].text, "\u0161lo \u0161lo")

    def test_the_places_in_a_long_section_below_a_long_heading_fit(self):
        heading = "Rules " + 188 * "x"
        body = "".join(f"<p>{number} {'word ' * 200}.</p>" for number in range(30))
        found = reading("a.html", f"<h1>Handbook</h1><h2>{heading}</h2>{body}".encode()).sections
        places = [section.anchor for section in found]
        self.assertGreater(len(places), 5)
        self.assertEqual(len(places), len(set(places)))
        self.assertLessEqual(max(map(len, places)), 200)

    def test_text_declared_as_latin_1_is_read_as_windows_1252(self):
        page = '<meta charset="iso-8859-1"><p>50 € – ohne „Versand“.</p>'.encode("cp1252")
        self.assertEqual(reading("a.html", page).sections[0].text, "50 € – ohne „Versand“.")
        head = b"Subject: Price\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\n"
        mail = head + "50 € – ohne „Versand“.".encode("cp1252")
        self.assertEqual(reading("a.eml", mail).sections[-1].text, "50 € – ohne „Versand“.")

    def test_a_declared_encoding_that_is_none_of_text_is_ignored(self):
        found = reading("a.html", b'<meta charset="hex"><p>The ferry leaves at nine.</p>')
        self.assertEqual(found.sections[0].text, "The ferry leaves at nine.")

    def test_a_bold_heading_after_a_table_is_a_heading(self):
        table = rb"\trowd\intbl Port\cell Fare\cell\row\intbl Ellery\cell 45\cell\row\pard"
        data = rb"{\rtf1\ansi Fares\par " + table + rb"{\b On Sundays}\par None.\par}"
        self.assertEqual(reading("a.rtf", data).sections[-1].heading, "On Sundays")

    def test_characters_of_symbol_fonts_in_a_rich_text_are_read(self):
        fonts = (
            rb"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset2{\*\panose 05}Symbol;}"
            rb"{\f2\fcharset2 Wingdings{\*\falt Symbol};}}"
        )
        text = rb"{\f1 \'b3} 5 {\f2 \u-3842 ?} {\f1 a\plain b}\enspace c \f0 \'b3\column d\par"
        found = reading("a.rtf", rb"{\rtf1\ansi" + fonts + text + b"}")
        self.assertEqual(found.sections[0].text, "≥ 5 ☑ αb c ³\n\nd")

    def test_cells_of_a_rich_text_that_span_rows_are_repeated(self):
        def row(first, *cells):
            text = rb"".join(cell + rb"\cell" for cell in cells)
            return rb"\trowd" + first + rb"\cellx1\cellx2\pard\intbl " + text + rb"\row"

        rows = row(b"", b"Route", b" Season") + row(rb"\clvmgf", b"R1", b" Winter")
        rows += row(rb"\clvmrg", b"", b" Summer") + row(b"", b"", b" All")
        found = reading("a.rtf", rb"{\rtf1\ansi " + rows + b"}")
        self.assertEqual(found.sections[0].text, "Route: R1; Season: Winter\nRoute: R1; Season: Summer\nAll")

    def test_an_opendocument_presentation_is_read_slide_by_slide_with_its_notes(self):
        page = (
            '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Safety</text:p>'
            "</draw:text-box>"
            "</draw:frame><draw:frame><draw:text-box><text:p>Wear a vest.</text:p></draw:text-box>"
            "</draw:frame>"
            '<presentation:notes><draw:frame presentation:class="notes"><draw:text-box>'
            "<text:p>Show one.</text:p>"
            "</draw:text-box></draw:frame></presentation:notes></draw:page>"
        )
        found = reading("a.odp", odf("presentation", page * 2))
        self.assertEqual((found.pages, found.title), (2, "Safety"))
        self.assertEqual(found.sections[1].anchor, "slide=2")
        self.assertEqual(found.sections[0].text, "Safety\n\nWear a vest.\n\nNotes: Show one.")

    def test_rich_text_is_read_with_its_headings_tables_and_letters(self):
        data = (
            rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}}"
            rb"{\stylesheet{\s0 Normal;}{\s3\outlinelevel0 heading 1;}}{\info{\title Handbook}}"
            rb"{\header Page}\pard\s3 Leave\par\pard Caf\'e9 and \u8364? {\f1\'cf\'ee\'f0\'f2}, {\v hidden}"
            rb"{\*\unknown noise}{\mmathPr noise}\trwWidth1 five days.\par{\b On Sundays}\par None.\par"
            rb"\trowd\intbl Port\cell Fare\cell\row\intbl Ellery\cell 45\cell\row\pard}"
        )
        found = reading("a.rtf", data)
        self.assertEqual(found.title, "Handbook")
        self.assertEqual(
            [(section.heading, section.text) for section in found.sections],
            [
                ("Leave", "Leave\n\nCaf\u00e9 and \u20ac \u041f\u043e\u0440\u0442, five days."),
                ("On Sundays", "None.\n\nPort: Ellery; Fare: 45"),
            ],
        )

    def test_a_message_is_read_with_its_header_and_its_attachments_are_its_parts(self):
        data = message(("plan.pdf", building.pdf(["Boats to Ellery."])), ("a.exe", b"MZ\x90\0"))
        found = reading("a.eml", data)
        self.assertEqual(found.title, "Fährplan für März")
        self.assertEqual([section.anchor for section in found.sections], ["header", "message"])
        header = found.sections[0].text
        for line in (
            "From: Ada Berg <ada@example.org>",
            "Attachments: plan.pdf, a.exe",
            "Not read: a.exe (files",
        ):
            self.assertIn(line, header)
        self.assertEqual([part.path for part in found.parts], ["plan.pdf"])
        self.assertEqual(found.left_out, (("a.exe", "files of this kind cannot be read"),))

    def test_logos_in_a_message_are_not_parts_but_larger_pictures_are(self):
        mail = EmailMessage()
        mail["Subject"] = "Plan"
        mail.set_content("Plan")
        mail.add_alternative('<p>Plan</p><img src="cid:logo"><img src="cid:scan">', subtype="html")
        html = mail.get_payload()[1]
        html.add_related(b"\x89PNG" + bytes(100), "image", "png", cid="<logo>", filename="logo.png")
        html.add_related(b"\x89PNG" + bytes(40_000), "image", "png", cid="<scan>", filename="scan.png")
        mail.add_attachment(b"\x89PNG" + bytes(100), "image", "png", filename="sent.png")
        found = reading("a.eml", mail.as_bytes())
        self.assertEqual([part.path for part in found.parts], ["sent.png", "scan.png"])

    def test_an_attachment_always_gets_a_name(self):
        data = message(("../../etc/passwd.txt", b"root"), ("same.txt", b"One."), ("same.txt", b"Two."))
        data = data.replace(b"Subject:", b"X-Other: 1\nSubject:")
        inner = message(text="An inner message.")
        outer = EmailMessage()
        outer["Subject"] = "Fwd"
        outer.set_content("See below.")
        outer.add_attachment(email.message_from_bytes(inner, policy=email.policy.default))
        self.assertEqual(
            [part.path for part in reading("a.eml", data).parts], ["passwd.txt", "same.txt", "same (2).txt"]
        )
        parts = reading("b.eml", outer.as_bytes()).parts
        self.assertEqual([part.path for part in parts], ["Fährplan für März.eml"])

    def test_long_headers_are_not_parsed_by_the_library(self):
        headers = {
            "Subject": "=?utf-8?q?Ferry?= " * 4_000,
            "To": '"a" <a@example.org>, ' * 3_000,
            "Cc": ",.(" * 20_000,
            "Content-Type": "text/plain; " + "".join(f"x*{n}=a; " for n in range(4_000)),
            "Content-Disposition": "inline; x=" + "=?utf-8?q?a?= " * 3_000,
        }
        data = (
            "".join(f"{name}: {value}\n" for name, value in headers.items()) + "\nThe ferry leaves at nine."
        )
        with mock.patch.object(
            HeaderRegistry, "__call__", autospec=True, side_effect=HeaderRegistry.__call__
        ) as parsed:
            found = reading("a.eml", data.encode())
        lengths = {call.args[1].lower(): len(call.args[2]) for call in parsed.call_args_list}
        self.assertLessEqual(set(map(str.lower, headers)), lengths.keys())
        for name, length in lengths.items():
            self.assertLessEqual(length, 20_000 if name == "subject" else 2_500, name)
        self.assertTrue(found.title.startswith("FerryFerry"), found.title[:40])
        self.assertEqual(found.sections[-1].text[-30:], "The ferry leaves at nine.")

    def test_each_recipient_of_a_long_list_is_read(self):
        names = [f'"Berg, Ada {n}" <ada.{n}@example.org>' for n in range(400)]
        data = "From: a@example.org\nTo: " + ",\n ".join(names) + "\nSubject: Plan\n\nText."
        header = reading("a.eml", data.encode()).sections[0].text
        self.assertIn("To: " + ", ".join(names), header)

    def test_a_header_that_the_library_cannot_parse_is_read_unparsed(self):
        for name in ("To", "Content-Type", "Content-Disposition"):
            data = f"Subject: Plan\n{name}: {'(' * 2_000}\n\nThe ferry leaves at nine."
            found = reading("a.eml", data.encode())
            self.assertIn("leaves at nine", found.sections[-1].text, name)

    def test_a_message_in_a_message_keeps_its_long_headers(self):
        long = " ".join(f"<{n}@example.org>" for n in range(500))
        inner = f"Subject: Inner\nReferences: {long}\n\nAn inner message."
        data = (
            "Subject: Fwd\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n"
            f"{inner}\n--b--\n"
        )
        parts = mock.Mock(left_out=[])
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_text(data)
            mail.read(Path(file.name), Limits(100, 100_000, 1_000_000), parts)
        parts.add.assert_called_once_with("Inner.eml", [mock.ANY])
        self.assertIn(f"References: {long}\n", parts.add.call_args.args[1][0].decode())

    def test_an_html_message_is_read_without_navigation_and_footers(self):
        found = self.parts("a.eml", message(html="<h1>News</h1><script>x()</script><p>The ferry leaves.</p>"))
        self.assertEqual(found[1], ("news", "News\n\nThe ferry leaves."))

    def test_a_star_inside_a_group_of_rich_text_does_not_hide_text(self):
        data = rb"{\rtf1\ansi{\*\generator Gone}{\f2\fs24\*\cs7\loch The office is closed.}\par}"
        self.assertEqual(reading("a.rtf", data).sections[0].text, "The office is closed.")

    def test_utf_8_text_is_read_as_such_despite_another_declared_encoding(self):
        for encoding in ("utf-8", "iso-8859-1"):
            mail = (
                "From: ann@example.org\nSubject: Tea\nContent-Type: text/plain; charset=iso-8859-1\n"
                "Content-Transfer-Encoding: 8bit\n\nTea in the caf\u00e9.\n"
            ).encode(encoding)
            self.assertEqual(reading("a.eml", mail).sections[-1].text, "Tea in the caf\u00e9.")

    def test_a_text_without_a_header_is_not_a_message(self):
        self.assertIn("it has no header", self.reason("a.eml", b"Just some text.\n"))

    def test_a_book_is_read_in_the_order_of_its_spine(self):
        found = reading("a.epub", epub("<h1>Last</h1><p>The end.</p>", "<h1>First</h1><p>A start.</p>"))
        self.assertEqual(found.title, "The book")
        self.assertEqual([section.anchor for section in found.sections], ["first", "last"])

    def test_an_empty_title_does_not_hide_a_chapter(self):
        head = "<head><title/></head>"
        [(_, text)] = self.parts("a.epub", epub(f"{head}<h1>Leave</h1><p>Thirty days.</p>"))
        self.assertEqual(text, "Leave\n\nThirty days.")

    def test_a_locked_book_is_refused(self):
        locked = (
            '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
            '<e:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'
            "</e:EncryptedData></encryption>"
        )
        self.assertEqual(
            self.reason("a.epub", epub("<p>x</p>", **{"META-INF/encryption.xml": locked})), PASSWORD
        )

    def test_the_files_of_an_archive_are_its_parts_in_the_order_of_their_paths(self):
        data = building.package(
            {"b/plan.md": "# Plan\n\nBoats.", "a.txt": "Words.", "__MACOSX/x.txt": "x", "run.exe": b"MZ"}
        )
        found = reading("a.zip", data)
        self.assertEqual([part.path for part in found.parts], ["a.txt", "b/plan.md"])
        self.assertEqual(found.left_out, (("run.exe", "files of this kind cannot be read"),))
        self.assertEqual(found.sections, ())

    def test_malicious_archives_are_refused_with_a_message(self):
        for data, reason in (
            (building.package({f"{n}.txt": "x" for n in range(1_001)}), "holds 1,001 files; at most 1,000"),
            (building.package({"../../evil.txt": "x"}), "evil.txt (its name leads out of the file"),
            (building.package({"a.txt": b"\0" * 60_000_000}), "allowed. It was not opened."),
            (building.package({"a.exe": b"MZ"}), "None of the 1 files in the archive could be read"),
            (building.package({"a.txt": "x" * 999})[:60], DAMAGED),
        ):
            self.assertIn(reason, self.reason("a.zip", data))

    def test_a_bad_file_in_an_archive_does_not_affect_the_others(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name in ("../up.txt", "/root.txt", "C:\\drive.txt", "nul\0.txt", "x" * 1_100 + ".txt"):
                archive.writestr(name.replace("\0", "~"), "Evil.")
            archive.writestr("right\u202eto\u202dleft.txt", "Words.")
            archive.writestr("Re: plan.txt", "Words.")
            archive.writestr("Case.txt", "Words.")
            archive.writestr("case.txt", "Words.")
            archive.writestr("broken.txt", "Words that are broken.")
            archive.writestr("sub//deep/./a.txt", "Words.")
        data = out.getvalue().replace(b"nul~.txt", b"nul\0.txt")
        data = data.replace(b"Words that are broken.", b"Words that are  roken.")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(data)
            found = process.read(path, ".zip", lambda done, total: None, folder=Path(folder))
            contents = {part.path: part.file.read_text() for part in found.parts}
        self.assertEqual(
            contents,
            dict.fromkeys(
                ["Case.txt", "Re: plan.txt", "case.txt", "righttoleft.txt", "sub/deep/a.txt"], "Words."
            ),
        )
        reasons = dict(found.left_out)
        self.assertEqual(len(reasons), 6)
        self.assertEqual(reasons["broken.txt"], "the file is damaged or incomplete")
        self.assertEqual(reasons["../up.txt"], LEADS_OUT)

    def test_an_encrypted_file_in_an_archive_is_left_out(self):
        data = bytearray(building.package({"a.txt": "Words.", "b.txt": "Words."}))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            start = archive.start_dir
        data[start + 8] |= 1  # the flag of the directory's first entry
        found = reading("a.zip", bytes(data))
        self.assertEqual([part.path for part in found.parts], ["b.txt"])
        self.assertEqual(found.left_out, (("a.txt", "it is password-protected"),))

    def test_names_of_archives_are_read_in_the_encoding_that_their_program_wrote(self):
        data = building.package({"GrXn.txt": "Words."})
        for raw in (b"Gr\x81n.txt", "Gr\u00fc.txt".encode()):  # cp437; and UTF-8 without the flag
            found = reading("a.zip", data.replace(b"GrXn.txt", raw))
            self.assertEqual(
                [part.path for part in found.parts], ["Grün.txt" if raw[2] == 0x81 else "Grü.txt"]
            )

    @unittest.skipUnless(shutil.which("zip"), "zip is not installed")
    def test_an_archive_of_the_zip_program_is_unpacked(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("Übersicht.txt", "unter/ordner/日本.md"):
                Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, name).write_text("Words.")
            subprocess.run(["zip", "-qr", "a.zip", "."], cwd=folder, check=True)
            subprocess.run(["zip", "-q", "-e", "-P", "x", "b.zip", "Übersicht.txt"], cwd=folder, check=True)
            found = reading("a.zip", Path(folder, "a.zip").read_bytes())
            locked = self.reason("b.zip", Path(folder, "b.zip").read_bytes())
        self.assertEqual([part.path for part in found.parts], ["unter/ordner/日本.md", "Übersicht.txt"])
        self.assertIn("Übersicht.txt (it is password-protected)", locked)

    def test_broken_mislabelled_and_exponential_files_are_refused_with_a_message(self):
        whole = odf("text", "<text:p>Words.</text:p>")
        for name, data, reason in (
            ("a.odt", whole[: len(whole) // 2], DAMAGED),
            ("a.odt", building.docx(("", "Words.")), "The name of the file says OpenDocument text"),
            ("a.ods", whole, "The name of the file says OpenDocument spreadsheet"),
            ("a.epub", whole, "The name of the file says EPUB"),
            ("a.odt", odf("text", "<text:p>&m;</text:p>", before=LAUGHS + "]>"), DAMAGED),
            (
                "a.odt",
                odf("text", "<text:section>" * 20_000 + "</text:section>" * 20_000),
                DAMAGED + "|No text",
            ),
            ("a.rtf", b"Just words.", "The name of the file says rich text"),
            ("a.rtf", rb"{\rtf1 " + b"{" * 50_000, "nested too deeply"),
            ("a.doc", b"Just words.", "The name of the file says Word 97"),
            ("a.msg", building.docx(("", "Words.")), "The name of the file says Outlook"),
            ("a.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, DAMAGED),
        ):
            self.assertRegex(self.reason(name, data), reason.replace(".", r"\."), name)

    def test_an_encrypted_opendocument_file_is_refused(self):
        manifest = (
            '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><m:file-entry>'
            "<m:encryption-data/></m:file-entry></m:manifest>"
        )
        data = odf("text", "<text:p>x</text:p>", **{"META-INF/manifest.xml": manifest})
        self.assertEqual(self.reason("a.odt", data), PASSWORD)

    def test_reading_rich_text_takes_linear_time(self):
        for filler in (b"\\", b"{", b"\\s1", b"{\\s1 x", b"\\'", b"\\u8364", b" ", b"\\par "):
            data = rb"{\rtf1{\stylesheet " + filler * (200_000 // len(filler))
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                try:
                    process.read(Path(file.name), ".rtf", lambda done, total: None)
                except Unreadable as error:
                    self.assertNotIn("longer than is allowed", str(error), filler)

    @SOFFICE
    def test_old_office_files_are_read_if_libreoffice_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.rtf").write_bytes(rb"{\rtf1\ansi The ferry leaves at nine.\par}")
            subprocess.run(
                ["soffice", f"-env:UserInstallation=file://{folder}/p", "--headless", "--convert-to", "doc",
                 "--outdir", folder, f"{folder}/a.rtf"],
                check=True, capture_output=True, timeout=120,
            )  # fmt: skip
            found = process.read(Path(folder, "a.doc"), ".doc", lambda done, total: None)
        self.assertEqual([section.text for section in found.sections], ["The ferry leaves at nine."])

    def test_an_old_office_file_that_was_cut_is_refused_although_libreoffice_would_read_its_beginning(self):
        whole = building.ole({f"part {number}": b"x" * 4000 for number in range(4)})
        with mock.patch.object(legacy.shutil, "which", return_value="soffice"):
            for size in (512, 1024, 4096, len(whole) - 1024, len(whole) - 512):
                with self.assertRaisesMessage(Unreadable, DAMAGED):
                    reading("a.xls", whole[:size])

    def test_if_libreoffice_refuses_crashes_or_hangs_the_reason_says_so(self):
        data = building.ole({"WordDocument": b"x"})
        for script, seconds, reason in (
            ("exit 0", 30, legacy.REFUSED),
            ("exit 134", 30, legacy.CRASHED),
            ("kill -SEGV $$", 30, legacy.CRASHED),
            ("exec sleep 60", 0.1, legacy.TOO_LONG),
        ):
            with tempfile.TemporaryDirectory() as folder:
                program = Path(folder, "program")
                program.write_text(f"#!/bin/sh\n{script}\n")
                program.chmod(0o700)
                with (
                    mock.patch.multiple(legacy, PROGRAM=str(program), SECONDS=seconds),
                    self.assertRaises(Unreadable) as caught,
                ):
                    reading("a.doc", data)
            self.assertEqual(str(caught.exception), reason, script)

    def test_without_libreoffice_an_old_office_file_is_refused_with_that_reason(self):
        data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
        with (
            mock.patch.object(legacy.shutil, "which", return_value=None),
            self.assertRaises(Unreadable) as caught,
        ):
            reading("a.xls", data)
        self.assertEqual(str(caught.exception), legacy.NOT_INSTALLED)

    def test_every_format_has_a_reader_and_is_documented(self):
        self.assertEqual({kind.family for kind in FORMATS.values()} - set(READERS), set())
        listed = Path(__file__).parents[3].joinpath("docs/formats.md").read_text("utf-8")
        self.assertEqual([ending for ending in FORMATS if f"`{ending}`" not in listed], [])
