"""Filled-in fields of PDF forms, and texts typed onto a page."""

from django.test import SimpleTestCase

from ingestion.parsing.sections import Unreadable
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading

PAGE = "BT /F1 10 Tf 50 700 Td (Name:) Tj 0 -40 Td (Port:) Tj 300 0 Td (Date:) Tj ET"


def field(value, left, bottom, more="", kind="/Subtype/Widget/FT/Tx/V"):
    return f"<</Type/Annot{kind}({value})/Rect[{left} {bottom} {left + 100} {bottom + 16}]{more}>>"


def form(*annotations, page=PAGE):
    listed = f"/Annots[{''.join(annotations)}]/MediaBox".encode("latin-1")
    return building.drawn(page).replace(b"/MediaBox", listed)


class FormTests(SimpleTestCase):
    def lines(self, *annotations):
        sections = reading("a.pdf", form(*annotations)).sections
        return [line for section in sections for line in section.text.split("\n")]

    def test_the_value_of_a_field_follows_the_text_on_its_left(self):
        filled = [field("2 March", 400, 655), field("Ellery", 100, 655), field("Ada Berg", 100, 695)]
        lines = self.lines(*filled)
        self.assertIn("Name: Ada Berg", lines)
        self.assertIn("Port: Ellery Date: 2 March", lines)

    def test_a_field_over_a_line_of_text_does_not_divide_a_word(self):
        self.assertIn("Name: Ada Berg", self.lines(field("Ada Berg", 60, 695)))

    def test_a_field_without_text_beside_it_is_named_by_its_description(self):
        self.assertIn("Telephone: 12345", self.lines(field("12345", 100, 300, "/TU(Telephone:)")))
        self.assertIn("12345", self.lines(field("12345", 100, 300)))

    def test_a_text_typed_onto_the_page_is_read(self):
        typed = field("Approved", 100, 300, kind="/Subtype/FreeText/Contents")
        self.assertIn("Approved", self.lines(typed))
        self.assertEqual(reading("a.pdf", form(typed, page="")).sections[0].text, "Approved")

    def test_hidden_fields_passwords_and_states_of_buttons_are_not_read(self):
        lines = self.lines(
            field("hidden", 100, 300, "/F 2"),
            field("secret", 100, 280, "/Ff 8192"),
            field("Yes", 100, 260, "/AS/Yes"),
            field("remark", 100, 240, kind="/Subtype/Text/Contents"),
            "<</Type/Annot/Subtype/Widget/FT/Tx/V(nowhere)>>",
        )
        self.assertEqual(" ".join(lines).split(), ["Name:", "Port:", "Date:"])

    def test_a_field_has_the_value_of_its_parent(self):
        """Fields that occur on several pages have one value, in their parent."""
        parent = b"/AcroForm<</Fields[90 0 R]>>/Pages 2 0 R"
        for flags, expected in (("", ["Name: Ada Berg"]), ("/Ff 8192", ["Name:"])):
            kid = "<</Type/Annot/Subtype/Widget/Parent 90 0 R/Rect[100 695 200 711]>>"
            value = f"90 0 obj<</FT/Tx/T(name)/V(Ada Berg){flags}/Kids[91 0 R]>>endobj\n91 0 obj{kid}endobj\n"
            data = form("91 0 R").replace(b"/Pages 2 0 R", parent, 1)
            data = data.replace(b"1 0 obj", value.encode() + b"1 0 obj", 1)
            sections = reading("a.pdf", data).sections
            lines = [line for section in sections for line in section.text.split("\n")]
            self.assertEqual([line for line in lines if line.startswith("Name")], expected)

    def test_empty_fields_add_no_text(self):
        with self.assertRaises(Unreadable):
            reading("a.pdf", form(field("", 100, 300), page=""))
