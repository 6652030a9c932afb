"""What is read from a file of each format: text, anchors, pages, headings, title, language."""

import io
import json
import tempfile
import zipfile
from pathlib import Path

from django.test import SimpleTestCase

from ingestion.file_names import title_of
from ingestion.parsing import child, process
from ingestion.parsing.sections import Limits, Section
from ingestion.tests import building

ENGLISH = (
    "The leave of this year may be carried over to the next, but not for longer than that and not by all."
)


def reading(name, data):
    """Read a file as the child process does, in this process."""
    sent = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        limits = Limits(100, 100_000, 1_000_000, with_parts=True)
        child.read(path, Path(name).suffix, limits, sent.append, io.BytesIO())
    return process.Reading(
        sections=tuple(Section(*message["section"]) for message in sent if "section" in message),
        parts=tuple(process.Part(message["part"], Path()) for message in sent if "part" in message),
        left_out=tuple(tuple(message["left_out"]) for message in sent if "left_out" in message),
        **sent[-1]["done"],
    )


class ReadingFormatsTests(SimpleTestCase):
    def text(self, found):
        return {section.anchor: section.text for section in found.sections}

    def test_a_pdf_is_read_page_by_page_with_its_headings(self):
        data = building.pdf(
            [(20, "Leave"), ENGLISH], [(20, "Sickness"), "Call before nine."], title="Handbook"
        )
        found = reading("a.pdf", data)
        self.assertEqual((found.title, found.pages, found.language), ("Handbook", 2, "english"))
        self.assertEqual(
            [(section.anchor, section.page, section.heading) for section in found.sections],
            [("page=1", 1, "Leave"), ("page=2", 2, "Sickness")],
        )
        self.assertEqual(found.sections[1].text, "Call before nine.")

    def test_running_titles_of_a_pdf_are_left_out(self):
        pages = [
            [f"Text number {word}.", f"Handbook, page {number}"] for number, word in enumerate("abcd", 1)
        ]
        found = reading("a.pdf", building.pdf(*pages))
        self.assertEqual(
            [section.text for section in found.sections], [f"Text number {word}." for word in "abcd"]
        )

    def test_progress_of_a_pdf_is_reported_in_pages(self):
        told = []
        with tempfile.NamedTemporaryFile() as file:
            file.write(building.pdf(["One."], ["Two."]))
            file.flush()
            process.read(Path(file.name), ".pdf", lambda done, total: told.append((done, total)))
        self.assertEqual(told[-1], (2, 2))

    def test_a_word_file_is_divided_by_headings_and_its_table_rows_name_their_columns(self):
        found = reading(
            "a.docx",
            building.docx(
                ("Heading1", "Travel"),
                ("", "Ask first."),
                ("Heading2", "Rates for 2026"),
                [["Item", "Rate"], ["Own car", "45p"], ["Bicycle", "20p"]],
            ),
        )
        texts = self.text(found)
        self.assertEqual(found.title, "Travel")
        self.assertEqual(texts["travel"], "Travel\n\nAsk first.")
        self.assertEqual(texts["rates-for-2026"], "Item: Own car; Rate: 45p\nItem: Bicycle; Rate: 20p")

    def test_slides_are_read_in_the_order_of_the_show_with_their_notes(self):
        found = reading("a.pptx", building.pptx(("First", ["Hello."], "Smile."), ("Second", ["Bye."], "")))
        self.assertEqual(found.pages, 2)
        self.assertEqual(self.text(found)["slide=1"], "First\n\nHello.\n\nNotes: Smile.")
        self.assertEqual([(s.page, s.heading) for s in found.sections], [(1, "First"), (2, "Second")])

    def test_bullets_of_a_slide_stay_apart(self):
        found = reading("a.pptx", building.pptx(("Safety", ["Know your station", "Call 2222"], "")))
        self.assertEqual(self.text(found)["slide=1"], "Safety\n\n- Know your station\n- Call 2222")

    def test_numbered_paragraphs_of_a_slide_keep_their_numbers(self):
        lines = [
            ("Open", 'lvl="0"', 'type="arabicPeriod"'),
            ("Pull", 'lvl="1"', 'type="alphaLcParenR"'),
            ("Turn", 'lvl="1"', 'type="alphaLcParenR"'),
            ("Close", "", 'type="arabicPeriod"'),
            ("Rest", "", ""),
            ("Lock", "", 'type="romanUcParenBoth" startAt="4"'),
            ("Leave", "", 'type="romanUcParenBoth" startAt="4"'),
        ]
        with zipfile.ZipFile(
            io.BytesIO(building.pptx(("Door", [line for line, _, _ in lines], "")))
        ) as slides:
            parts = {name: slides.read(name).decode() for name in slides.namelist()}
        for line, level, numbering in lines:
            bullet = f"<a:buAutoNum {numbering}/>" if numbering else ""
            run = f"<a:r><a:t>{line}</a:t>"
            parts["ppt/slides/slide1.xml"] = parts["ppt/slides/slide1.xml"].replace(
                run, f"<a:pPr {level}>{bullet}</a:pPr>{run}"
            )
        self.assertEqual(
            self.text(reading("a.pptx", building.package(parts)))["slide=1"].split("\n")[2:],
            ["1. Open", "a) Pull", "b) Turn", "2. Close", "- Rest", "(IV) Lock", "(V) Leave"],
        )

    def test_a_workbook_is_read_by_sheet_also_after_an_empty_one(self):
        found = reading(
            "a.xlsx",
            building.xlsx(
                {"Empty": [], "Pay [2026]": [["Pay in 2026"], ["Grade", "Pay"], ["F", 46560], ["G", 50000.5]]}
            ),
        )
        self.assertEqual(
            self.text(found),
            {"sheet=Pay (2026)": "Pay in 2026\nGrade: F; Pay: 46560\nGrade: G; Pay: 50000.5"},
        )

    def test_a_long_row_becomes_lines_that_each_begin_with_its_first_cell(self):
        names = [f"Column {letter}" for letter in "ABCDEFGHIJ"]
        found = reading("a.xlsx", building.xlsx({"S": [names, ["Ferry", *["long value " * 9] * 9]]}))
        lines = found.sections[0].text.split("\n")
        self.assertGreater(len(lines), 1)
        self.assertTrue(all(line.startswith("Column A: Ferry; ") for line in lines), lines)

    def test_csv_is_read_with_any_usual_separator(self):
        for separator in ",;\t|":
            data = f"port{separator}phone\nEllery{separator}01632 960118\nSennick{separator}01632 960119\n"
            found = reading("a.csv", data)
            self.assertEqual(found.sections[0].text.split("\n")[0], "port: Ellery; phone: 01632 960118")
            self.assertEqual(found.sections[0].anchor, "")

    def test_json_is_read_by_record(self):
        records = [{"port": {"name": "Ellery"}, "tags": ["a", "b"]}, {"port": None, "n": 1}]
        found = reading("a.json", json.dumps(records))
        self.assertEqual(
            self.text(found), {"record=1": "port.name: Ellery; tags: a; tags: b", "record=2": "n: 1"}
        )

    def test_html_is_read_by_heading_without_navigation_and_scripts(self):
        page = (
            "<html><head><title>Guide - Site</title><style>p{}</style></head><body><nav><a>Home</a></nav>"
            "<h1>IT guide</h1><p>Hello &amp; <b>welcome</b>.<script>alert(1)</script></p><h2>Pass words</h2>"
            "<ul><li>Long</li><li>Secret</li></ul><table><tr><th>A</th><th>B</th></tr><tr><td>x</td><td>y</td></tr>"
            "</table><footer>Imprint</footer></body></html>"
        )
        found = reading("a.html", page)
        self.assertEqual(found.title, "IT guide")
        self.assertEqual(
            self.text(found),
            {"it-guide": "IT guide\n\nHello & welcome.", "pass-words": "- Long\n\n- Secret\n\nA: x; B: y"},
        )

    def test_a_page_with_all_its_text_in_a_navigation_is_read(self):
        self.assertEqual(reading("a.html", "<nav><p>Only here.</p>").sections[0].text, "Only here.")

    def test_markdown_anchors_are_those_of_github(self):
        text = "---\ntitle: Rules\n---\n# Über *us* & you!\n\nA [link](http://x).\n\n"
        text += "## Same\n\none\n\n## Same\n\ntwo\n"
        found = reading("a.md", text)
        self.assertEqual(found.title, "Rules")
        self.assertEqual([section.anchor for section in found.sections], ["über-us--you", "same", "same-1"])
        self.assertIn("A link.", found.sections[0].text)

    def test_the_path_of_headings_leaves_out_the_title(self):
        found = reading("a.md", "# Book\n\n## Part\n\n### Chapter\n\ntext\n")
        self.assertEqual(found.sections[0].heading, "Part › Chapter")

    def test_text_is_read_in_any_usual_encoding(self):
        words = "Der Fährplan für Übernachtungen gilt auch für große Schiffe und ist nicht zu ändern. " * 5
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
            found = reading("a.txt", words.encode(encoding))
            self.assertEqual(found.sections[0].text, words.strip(), encoding)
            self.assertEqual(found.language, "german")

    def test_text_in_an_unknown_language_gets_the_simple_configuration(self):
        self.assertEqual(reading("a.txt", "日本語の文書です。").language, "simple")

    def test_characters_that_postgresql_or_readers_cannot_handle_are_removed(self):
        found = reading("a.txt", "one\x0btwo\x07\r\nthree\u202efour\x1b[31m")
        self.assertEqual(found.sections[0].text, "one\ntwo\nthreefour[31m")

    def test_titles_that_programs_fill_in_are_ignored(self):
        filled_in = [
            "Microsoft Word - a.doc",
            "untitled",
            "Untitled-1",
            "report.docx",
            "Document1",
            "Dokument 2",
        ]
        filled_in += ["Dokument 2", "about:blank", "file:///C:/a b", "https://intranet.example/x?y=1", ""]
        for title in filled_in:
            self.assertEqual(reading("a.pdf", building.pdf(["Text."], title=title)).title, "")
        for title in ("About: what we do", "Document retention", "Book 1 of the rules", "HTTP and you"):
            self.assertEqual(reading("a.pdf", building.pdf(["Text."], title=title)).title, title)

    def test_the_first_heading_replaces_a_title_that_a_program_filled_in(self):
        for title in ("about:blank", ""):
            page = building.pdf([(20, "Travel rules"), "Trains come first."], title=title)
            self.assertEqual(reading("a.pdf", page).title, "Travel rules")
        self.assertEqual(reading("a.md", "---\ntitle: Untitled\n---\n# Rules\n\nText.\n").title, "Rules")

    def test_a_file_name_used_as_title_keeps_its_spelling(self):
        names = {
            "notes2.txt": "notes2",
            "fee_table.csv": "Fee table",
            "2027-01-05_minutes-of_board.pdf": "2027-01-05 minutes of board",
        }
        self.assertEqual({name: title_of(name) for name in names}, names)
