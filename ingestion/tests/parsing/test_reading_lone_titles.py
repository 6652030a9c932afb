"""Headings of texts that have no markup for them."""

from django.test import SimpleTestCase

from ingestion.tests.parsing.test_reading_formats import reading

RULES = """RULES OF THE HOUSE

These rules were adopted by the board for the safety and comfort of all residents.

Parking

1. Outdoor parking is allowed in lined spaces only.
2. Campers may stay for a period not to exceed 24 hours.

Swimming Pool

The pool is open from nine in the morning until ten in the evening.

Can I keep a dog?

Two dogs at most are allowed in a unit, and they are kept on a leash on the common areas.
"""
ADDRESSES = """Alma Berg

14 Mill Lane

Brightfield

Ben Carr

3 Station Road

Northhaven

They both live here, and they can be reached every day of the week, also by telephone.
"""
FORM = """Name of Applicant

Reason

Please state in full sentences why you need the item, and for how long you need it.

Department

Supervisor

Signature
"""


class LoneTitlesTests(SimpleTestCase):
    def headings(self, name, text):
        return [section.heading for section in reading(name, text.encode()).sections if section.heading]

    def test_short_lines_above_text_are_headings(self):
        below = ["Parking", "Swimming Pool", "Can I keep a dog?"]
        self.assertEqual(self.headings("rules.md", RULES), ["RULES OF THE HOUSE", *below])
        self.assertEqual(
            self.headings("rules.txt", RULES),
            ["RULES OF THE HOUSE", *(f"RULES OF THE HOUSE › {title}" for title in below)],
        )

    def test_a_section_sign_begins_a_heading(self):
        text = "\n\n".join(
            f"§ {number} {name}\n\nThis section applies to all members of the association, without exception."
            for number, name in ((1, "Name and Seat"), (2, "Purpose"), (3, "Members"))
        )
        self.assertEqual(
            self.headings("rules.txt", text), ["§ 1 Name and Seat", "§ 2 Purpose", "§ 3 Members"]
        )

    def test_no_text_is_lost(self):
        for name in ("rules.md", "rules.txt"):
            contents = reading(name, RULES.encode())
            text = " ".join(f"{section.heading} {section.text}" for section in contents.sections)
            self.assertEqual([word for word in RULES.split() if word not in text], [], name)

    def test_a_text_with_headings_of_its_own_is_divided_by_these(self):
        marked = RULES.replace("RULES OF THE HOUSE", "# Rules").replace("Swimming Pool", "## Swimming Pool")
        self.assertNotIn("Parking", " ".join(self.headings("rules.md", marked)))
        underlined = RULES.replace("Swimming Pool", "Swimming Pool\n-------------")
        self.assertEqual(self.headings("rules.txt", underlined), ["Swimming Pool"])

    def test_headings_below_the_title_alone_are_found(self):
        titled = RULES.replace("RULES OF THE HOUSE", "# House rules")
        self.assertEqual(
            self.headings("rules.md", titled),
            ["House rules", "Parking", "Swimming Pool", "Can I keep a dog?"],
        )

    def test_headings_of_other_text_formats_are_found(self):
        trains = "== Trains\n\nBook early.\n\n=== Seats\n\nSecond class."
        text = f"# Travel\n\n{trains}\n\n== Planes\n\nOver 600 km only."
        self.assertEqual(self.headings("travel.md", text), ["Trains", "Trains › Seats", "Planes"])

    def test_addresses_and_forms_have_no_headings(self):
        for text in (ADDRESSES, FORM):
            for name in ("list.md", "list.txt"):
                self.assertEqual(self.headings(name, text), [])
