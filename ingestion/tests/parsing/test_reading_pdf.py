"""Headings, broken words and scripts from the right in PDFs as real programs write them."""

import time

from django.test import SimpleTestCase

from chatsite.tests.limits import MARGIN_SECONDS
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading

HEBREW = "".join(map(chr, range(0x05D0, 0x05EA)))  # the letters that "A" to "Z" stand for
SENTENCE = "Employees may carry over five days of leave until the end of March of the next year"


def lines(*texts, top=780):
    """Texts one below the other: (font, size, text)."""
    return "".join(
        f"BT /{font} {size} Tf 1 0 0 1 50 {top - 20 * number} Tm ({text}) Tj ET\n"
        for number, (font, size, text) in enumerate(texts)
    )


class PdfTests(SimpleTestCase):
    def sections(self, *streams, **more):
        return [(s.heading, s.text) for s in reading("a.pdf", building.drawn(*streams, **more)).sections]

    def test_a_heading_is_recognised_by_its_rendered_size(self):
        """LaTeX and others set size 1 and scale the text by its matrix."""
        scaled = "".join(
            f"BT /F1 1 Tf {size} 0 0 {size} 50 {y} Tm ({text}) Tj ET\n"
            for size, y, text in ((18, 780, "Leave"), (10, 750, SENTENCE), (10, 735, "and not later."))
        )
        self.assertEqual(self.sections(scaled), [("Leave", f"{SENTENCE} and not later.")])

    def test_a_heading_is_recognised_by_its_font_and_the_space_above_it(self):
        def paragraph(top):
            return lines(*[("F1", 10, SENTENCE) for _ in range(5)], ("F1", 10, "at the latest."), top=top)

        italic = lines(("F3", 10, "Making mistakes"), top=630)
        close = lines(("F3", 10, "Carried over"), top=490)  # a line of a paragraph, in italics
        page = paragraph(780) + italic + paragraph(610) + close + paragraph(470)
        self.assertEqual(list(dict(self.sections(page))), ["", "Making mistakes"])

    def test_paragraphs_among_smaller_code_are_not_headings(self):
        code = [
            ("F1", 8, f"call number {number} of the program with all its arguments") for number in range(20)
        ]
        text = [("F1", 11, f"{SENTENCE[:70]} {letter}.") for letter in "abcdefghijkl"]
        page = lines(("F2", 16, "Calls"), *code[:10], *text[:6], *code[10:], *text[6:], top=820)
        self.assertEqual({heading for heading, _ in self.sections(page)}, {"Calls"})

    def test_a_large_line_that_continues_on_the_next_one_is_not_a_heading(self):
        texts = [("F1", 10, SENTENCE), ("F1", 11.5, SENTENCE), ("F1", 10, "which begins in April.")]
        self.assertEqual([heading for heading, _ in self.sections(lines(*texts))], [""])

    def test_bold_entries_of_a_table_of_contents_are_not_headings(self):
        """LaTeX sets the entries of chapters in bold type, without leaders."""
        entries = [("F2", 11, "Leave 4"), ("F1", 10, "1 Carrying over . . . . . . . . . . 4")]
        entries += [("F1", 10, "2 Sickness . . . . . . . . . . 5"), ("F2", 11, "Pay 17")]
        text = [("F1", 10, SENTENCE) for _ in range(9)]
        page = lines(("F2", 16, "Contents"), *entries, ("F2", 16, "Leave in 2017"), *text)
        self.assertEqual([heading for heading, _ in self.sections(page)], ["Contents", "Leave in 2017"])

    def test_headings_of_a_recognised_scan_are_centred(self):
        """Text recognition estimates sizes, and writes the numbers of paragraphs as lines of their own."""

        def recognised(*texts):
            return "".join(
                f"BT 3 Tr /F1 {size} Tf 1 0 0 1 {left} {top} Tm ({text}) Tj ET\n"
                for size, left, top, text in texts
            )

        page = recognised(
            (11.5, 70, 698, "(1)"),
            (11, 70, 653, "(2)"),
            (9.1, 278, 760, "85"),
            (9.6, 255, 740, "Rate of leave"),
            (10.6, 105, 700, SENTENCE),
            (8.6, 105, 688, "with the consent of the manager."),
            (9.1, 105, 656, SENTENCE.replace("five", "ten")),
            (10.6, 105, 644, "in the first year."),
            (9.1, 278, 600, "86"),
            (9.1, 250, 580, "Sick employees"),
            (9.6, 105, 550, SENTENCE),
            (8.6, 105, 538, "after an illness."),
        )
        self.assertEqual(
            self.sections(page),
            [
                (
                    "85 Rate of leave",
                    f"(1) {SENTENCE} with the consent of the manager.\n"
                    f"(2) {SENTENCE.replace('five', 'ten')} in the first year.",
                ),
                ("86 Sick employees", f"{SENTENCE} after an illness."),
            ],
        )

    def test_a_scan_with_only_a_few_letters_is_read(self):
        page = "BT 3 Tr /F1 10 Tf 1 0 0 1 50 700 Tm (ab) Tj ET\n"
        self.assertEqual(self.sections(page), [("", "ab")])

    def test_running_titles_of_left_and_right_pages_are_left_out_anywhere_in_the_text(self):
        """Some programs write the header of a page in the middle of its text."""

        def page(number):
            header = f"Staff manual {number}" if number % 2 else f"{number} Part two"
            body = lines(*[("F1", 11, f"{SENTENCE} {line} of {number}.") for line in "abc"], top=740)
            body += lines(("F1", 14, header), top=810)
            # The first row of a list that is always the same, but not at the same height.
            body += lines(("F1", 11, "Port"), top=700 - 11 * number)
            return body + lines(*[("F1", 11, f"{SENTENCE} {line} of {number}.") for line in "def"], top=500)

        text = " ".join(text for _, text in self.sections(*map(page, range(1, 10))))
        self.assertEqual([text.count(words) for words in ("Staff manual", "Part two", "Port")], [0, 0, 9])

    def test_running_titles_beside_the_page_number_are_left_out_although_each_chapter_has_its_own(self):
        def page(number):
            title = f"Chapter {number // 3}. About part {'abcd'[number // 3]}"
            footer = f"{number + 4} {title}" if number % 2 else f"{title} {number + 4}"
            rows = [("F1", 11, f"{SENTENCE} {letter} of {number}.") for letter in "abcd"]
            numbered = ("F1", 11, f"{number + 4} boxes are enough.") if number == 5 else ("F1", 11, "None.")
            return lines(*rows, numbered) + lines(("F1", 9, footer), top=40)

        text = " ".join(text for _, text in self.sections(*map(page, range(1, 12))))
        self.assertNotIn("Chapter", text)
        self.assertIn("9 boxes are enough.", text)

    def test_page_numbers_by_chapter_document_or_sheet_are_running_titles(self):
        for words, numbers in {
            "Manual 3 Page {}": ("1.1", "1.2", "2.1", "2.2", "3.1", "3.2"),
            "Page {} of 2": (1, 2, 1, 2, 1, 2),
            "Sheet {}/12": (1, 3, 5, 7, 9, 11),
        }.items():
            pages = [
                lines(*[("F1", 11, f"{SENTENCE} {letter} of {'uvwxyz'[place]}.") for letter in "abcd"])
                + lines(("F1", 9, words.format(number)), top=40)
                for place, number in enumerate(numbers)
            ]
            with self.subTest(words):
                text = "\n".join(text for _, text in self.sections(*pages))
                self.assertNotIn(words.split()[0], text)

    def test_lines_whose_numbers_do_not_count_the_pages_are_not_running_titles(self):
        prices = (49, 25, 39, 85, 499)
        days = (5, 12, 19, 26, 2)

        def page(number):
            rows = [("F1", 11, f"{SENTENCE} {letter} of {number}.") for letter in "abcd"]
            of_page = [("F1", 11, f"Price: {prices[number]} euros"), ("F1", 11, f"{prices[number]} pieces")]
            dates = [
                ("F1", 11, f"Minutes of 0{number + 2}.0{number + 1}.2024"),
                ("F1", 11, f"Next meeting on {days[number]}.{number + 1}. at noon"),
            ]
            return lines(*dates, *rows, *of_page) + lines(("F1", 9, f"Page {number + 1} of 5"), top=40)

        text = "\n".join(text for _, text in self.sections(*map(page, range(5))))
        for number, price in enumerate(prices):
            for words in (
                f"Price: {price}",
                f"{price} pieces",
                f"Minutes of 0{number + 2}.0{number + 1}.2024",
                f"Next meeting on {days[number]}.{number + 1}. at noon",
            ):
                self.assertIn(words, text)
        self.assertNotIn("Page", text)

    def test_titles_that_begin_each_page_are_headings_although_their_numbers_count_the_pages(self):
        def page(number, size, title):
            rows = [("F1", 11, f"{SENTENCE} {letter} of {'uvwxyz'[number]}.") for letter in "abcd"]
            return lines(("F2", size, title), *rows)

        lessons = [(number, 18, f"Lesson {number}") for number in range(1, 6)]
        names = ("Scope", "Terms", "Duties", "Dates", "Liability")
        chapters = [(number, 11, f"{number} {name}") for number, name in enumerate(names, 1)]
        for titles in (lessons, chapters):
            headings = [heading for heading, _ in self.sections(*(page(*each) for each in titles))]
            self.assertEqual(headings, [title for _, _, title in titles])

    def test_large_page_numbers_and_bold_running_titles_with_a_number_are_not_headings(self):
        def page(number, footer, title=None):
            rows = [("F1", 8, f"{SENTENCE} {letter} of {'uvwxyz'[number - 1]}.") for letter in "abcd"]
            return lines(*([title] if title else []), *rows) + lines(footer, top=40)

        for words in ("{}", "- {} -", "Page {} of 5"):
            for footer in (("F1", 12), ("F2", 16)):
                pages = [page(number, (*footer, words.format(number))) for number in range(1, 6)]
                with self.subTest(words, footer=footer):
                    found = self.sections(*pages)
                    self.assertEqual({heading for heading, _ in found}, {""})
                    self.assertTrue(all(text.startswith(SENTENCE) for _, text in found))
        pages = [page(each, ("F1", 8, str(each)), ("F2", 9, f"Prices 2026 {each}")) for each in range(1, 6)]
        self.assertEqual({heading for heading, _ in self.sections(*pages)}, {""})

    def test_a_title_is_kept_although_it_is_also_the_running_title(self):
        pages = [
            lines(("F1", 22, "Staff manual"), *[("F1", 11, f"{SENTENCE} {a} {b}.") for b in "abcde"])
            for a in "p"
        ]
        pages += [
            lines(("F1", 11, "Staff manual"), *[("F1", 11, f"{SENTENCE} {a} {b}.") for b in "abcde"])
            for a in "qrst"
        ]
        found = self.sections(*pages)
        self.assertEqual({heading for heading, _ in found}, {"Staff manual"})
        self.assertNotIn("Staff manual", " ".join(text for _, text in found))

    def test_words_of_a_page_without_spaces_are_separated_by_the_distances_of_its_letters(self):
        widths = {
            "f": 2.78,
            "i": 2.22,
            "l": 2.22,
            "m": 8.33,
            "r": 3.33,
            "t": 2.78,
            "c": 5,
            "s": 5,
            "w": 7.22,
            "y": 5,
        }
        text = "the delivery within the whole country costs nothing in summer"
        x, page = 50.0, ""
        for letter in text:
            if letter != " ":
                page += f"BT /F1 10 Tf 1 0 0 1 {x:.2f} 700 Tm ({letter}) Tj ET\n"
            x += 2 if letter == " " else widths.get(letter, 5.56)
        [(_, found)] = self.sections(page)
        self.assertEqual(found, text)

    def test_headings_and_paragraphs_written_out_of_order_are_read_from_top_to_bottom(self):
        headings = lines(("F2", 14, "Leave"), top=800) + lines(("F2", 14, "Pay"), top=720)
        leave, pay = (
            lines(*[("F1", 11, f"{SENTENCE} {word}.") for word in words], top=top)
            for top, words in ((780, ("now", "then")), (700, ("late", "soon", "there")))
        )
        expected = {
            "Leave": f"{SENTENCE} now. {SENTENCE} then.",
            "Pay": f"{SENTENCE} late. {SENTENCE} soon. {SENTENCE} there.",
        }
        self.assertEqual(dict(self.sections(pay + headings + leave)), expected)
        columns = "".join(
            f"BT /F1 11 Tf 1 0 0 1 {x} {780 - 15 * row} Tm ({column} line {row}) Tj ET\n"
            for x, column in ((50, "left"), (320, "right"))
            for row in range(12)
        )
        title = "BT /F1 11 Tf 1 0 0 1 50 810 Tm (The title was drawn last) Tj ET\n"
        [(_, text)] = self.sections(columns + title)
        self.assertEqual(text.split("\n")[11:13], ["left line 11", "right line 0"])

    def test_a_heading_above_another_without_text_is_not_lost(self):
        page = lines(("F1", 11, f"{SENTENCE}."), ("F1", 20, "Download here"), ("F1", 15, "Or ask us"))
        self.assertEqual(self.sections(page), [("", f"{SENTENCE}."), ("Download here", "Or ask us")])

    def test_emoji_do_not_shift_fonts_and_positions_of_later_text(self):
        page = lines(("F1", 11, "A" * 12), ("F2", 16, "Leave"), ("F1", 11, SENTENCE))
        found = self.sections(page, meaning="\U0001f3c1")
        self.assertEqual(found, [("", "\U0001f3c1" * 12), ("Leave", SENTENCE)])
        table = table_page([("A" * 9, "Port", "Fare"), ("A", "Ellery", "45"), ("A", "Gannet", "38")])
        rows = self.sections(table, meaning="\U0001f3c1")[0][1].split("\n")
        self.assertEqual(rows[1], "\U0001f3c1; Ellery; 45")

    def test_rows_between_two_rules_are_separated_if_a_column_has_numbers(self):
        """Books draw lines only above and below the names of the columns, and at the end."""

        def page(rows):
            text = "".join(
                f"BT /F1 11 Tf 1 0 0 1 {left} {760 - 16 * number} Tm ({cell}) Tj ET\n"
                for number, row in enumerate(rows)
                for left, cell in zip((50, 250, 350), row, strict=True)
            )
            heights = 775, 755, 755 - 16 * len(rows) + 10
            return text + "".join(f"50 {height} m 500 {height} l S\n" for height in heights)

        fares = [
            ("Ellery . . . . .", "45.00", "2"),
            ("Gannet . . . .", "38.50", "1"),
            ("Isle of Saint", "", ""),
        ]
        fares += [("Mary . . . . . .", "51.00", "4")]
        self.assertEqual(
            self.sections(page([("Port", "Fare", "Zone"), *fares])),
            [
                (
                    "",
                    "Port: Ellery; Fare: 45.00; Zone: 2\nPort: Gannet; Fare: 38.50; Zone: 1\nIsle of Saint\n"
                    "Port: Mary; Fare: 51.00; Zone: 4",
                )
            ],
        )
        prices = [
            ("Coat", "red", "45"),
            ("Hat", "blue", "12"),
            ("Scarf", "green", "9"),
            ("Boot", "brown", "70"),
        ]
        self.assertEqual(
            self.sections(page([("Item", "Colour", "Price"), *prices])),
            [("", "\n".join("Item: {}; Colour: {}; Price: {}".format(*row) for row in prices))],
        )
        words = [
            ("Ellery is the", "closed on", "yes"),
            ("largest", "Sundays and", ""),
            ("port", "in winter", ""),
        ]
        found = self.sections(page([("Port", "Note", "Open"), *words]))
        self.assertEqual(
            found,
            [("", "Port: Ellery is the largest port; Note: closed on Sundays and in winter; Open: yes")],
        )

    def test_a_word_broken_at_a_line_end_is_not_joined_with_the_next_column(self):
        placed = [
            (50, 780, "Rule"),
            (300, 780, "Level"),
            (50, 760, "Check the Content-"),
            (300, 750, "second"),
        ]
        placed += [(50, 746, "Security header"), (50, 726, "Log"), (300, 726, "first")]
        page = "".join(f"BT /F1 11 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n" for x, y, text in placed)
        page += "".join(f"50 {height} m 500 {height} l S\n" for height in (795, 774, 740, 720))
        text = self.sections(page)[0][1]
        self.assertEqual(text.split("\n")[0], "Rule: Check the Content- Security header; Level: second")

    def test_a_number_that_ends_a_sentence_does_not_begin_a_list(self):
        broken = f"{SENTENCE}, or at frame"
        page = lines(("F1", 11, broken), ("F1", 11, "40. The master informs everybody."))
        self.assertEqual(self.sections(page), [("", f"{broken} 40. The master informs everybody.")])
        items = [f"1. {SENTENCE}", f"2. {SENTENCE}", f"3. {SENTENCE}"]
        self.assertEqual(
            self.sections(lines(*[("F1", 11, item) for item in items])), [("", "\n".join(items))]
        )

    def test_list_markers_drawn_after_the_text_precede_their_items(self):
        placed = [(50, 780, "Bring these:"), (70, 760, "A towel"), (70, 740, "A tent"), (50, 720, "Thanks.")]
        placed += [(55, 760, "1."), (55, 740, "2."), (500, 720, "3.")]
        page = "".join(f"BT /F1 11 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n" for x, y, text in placed)
        text = self.sections(page)[0][1]
        self.assertEqual(text.split("\n")[:4], ["Bring these:", "1. A towel", "2. A tent", "Thanks."])

    def test_bullets_of_symbol_fonts_are_bullets(self):
        """Word writes them as private characters, which no other font has."""
        long = SENTENCE.replace("A", "a").replace("B", "b")
        page = lines(*[("F1", 11, text) for text in (f"A {long}", f"A {long}", "B yes")])
        found = self.sections(page, meaning="\uf0b7\uf0fc")
        self.assertEqual(found[0][1].split("\n")[-1], "✓ yes")
        self.assertEqual([line[:2] for line in found[0][1].split("\n")], ["• ", "• ", "✓ "])

    def test_the_paragraph_after_a_list_is_not_part_of_its_last_item(self):
        def page(left):
            placed = [
                (50, f"- {SENTENCE}."),
                (50, f"- {SENTENCE}"),
                (left, f"{SENTENCE}."),
                (50, "Then apply."),
            ]
            return "".join(
                f"BT /F1 11 Tf 1 0 0 1 {x} {780 - 20 * number} Tm ({text}) Tj ET\n"
                for number, (x, text) in enumerate(placed)
            )

        wrapped = f"- {SENTENCE}.\n- {SENTENCE} {SENTENCE}."
        self.assertEqual(self.sections(page(60)), [("", f"{wrapped}\n\nThen apply.")])
        self.assertEqual(self.sections(page(50)), [("", f"{wrapped}\n\nThen apply.")])

    def test_bookmarks_name_headings_that_look_like_text(self):
        page = lines(
            ("F1", 11, "1 Leave"), ("F1", 11, SENTENCE), ("F1", 11, "1.1 In part-time"), ("F1", 11, "Less.")
        )
        found = self.sections(page, bookmarks=[(0, "Leave", 1), (1, "In part-time", 1)])
        self.assertEqual(found, [("1 Leave", SENTENCE), ("1 Leave › 1.1 In part-time", "Less.")])

    def test_a_bookmark_whose_title_is_not_on_its_page_names_what_follows(self):
        found = self.sections(
            lines(("F1", 11, SENTENCE)),
            lines(("F1", 11, "Call us.")),
            bookmarks=[(0, "Leave", 1), (0, "Sick", 2)],
        )
        self.assertEqual(found, [("Leave", SENTENCE), ("Sick", "Call us.")])

    def test_a_bookmark_is_not_the_heading_of_the_text_above_its_destination(self):
        page = lines(("F1", 11, SENTENCE), ("F1", 11, "Fees"), ("F1", 11, "Call us."))
        marked = page.replace("(Fees)", "(Fees) Tj /F1 6 Tf 4 Ts (1)")
        for stream, title in ((page, "Rates"), (marked, "Fees")):
            with self.subTest(title):
                headings = dict(self.sections(stream, bookmarks=[(0, title, 1, 775)]))
                self.assertEqual(headings[""], SENTENCE)
                self.assertEqual(len(headings), 2)
        for height in (0, 800):
            found = self.sections(page, bookmarks=[(0, "Rates", 1, height)])
            self.assertEqual([heading for heading, _ in found], ["Rates"])

    def test_a_bookmarked_heading_that_was_taken_for_a_row_of_a_table_is_a_heading(self):
        rows = [("Route", "Fare", "Boat"), ("R1", "40", "Tern"), ("Fees", "", ""), ("R2", "57", "Skua")]
        found = self.sections(table_page(rows), bookmarks=[(0, "Fees", 1)])
        expected = [("", "Route: R1; Fare: 40; Boat: Tern"), ("Fees", "Route: R2; Fare: 57; Boat: Skua")]
        self.assertEqual(found, expected)

    def test_thousands_of_bookmarks_to_one_page_take_little_time(self):
        started = time.monotonic()
        page = lines(*[("F1", 2, f"Line {number}") for number in range(500)])
        self.sections(page, bookmarks=[(0, f"Line {number}", 1) for number in range(5_000)])
        self.assertLess(time.monotonic() - started, 5 + MARGIN_SECONDS)

    def test_a_bold_line_of_the_size_of_the_text_is_a_heading(self):
        page = lines(
            ("F2", 11, "Who may apply?"),
            ("F1", 11, f"{SENTENCE}."),
            ("F2", 11, "How"),
            ("F1", 11, "By form."),
        )
        self.assertEqual(self.sections(page), [("Who may apply?", f"{SENTENCE}."), ("How", "By form.")])

    def test_list_items_in_large_type_are_not_headings(self):
        def item(top, *texts):
            return "".join(
                f"BT /F1 14 Tf 1 0 0 1 {left} {top - 20 * number} Tm ({text}) Tj ET\n"
                for number, (left, text) in enumerate(texts)
            )

        items = item(760, (50, r"\225 Report any damage that you notice to your"), (60, "manager at once"))
        items += item(720, (50, r"\225 No smoking in company vehicles."))
        page = lines(("F2", 18, "Vehicles"), top=800) + items
        page += lines(*[("F1", 10, f"{SENTENCE}.") for _ in range(9)], top=680)
        self.assertEqual({heading for heading, _ in self.sections(page)}, {"Vehicles"})

    def test_a_heading_with_a_mark_is_a_heading(self):
        marked = lines(("F1", 14, r"\225 Opening hours"), *[("F1", 10, f"{SENTENCE}.") for _ in range(9)])
        self.assertEqual([heading for heading, _ in self.sections(marked)], ["• Opening hours"])

    def test_a_paragraph_in_large_type_is_not_a_heading(self):
        letter = [("F1", 13, f"We welcome you {number} times, and {SENTENCE[:60]}") for number in range(4)]
        page = lines(("F2", 18, "Welcome"), *letter, *[("F1", 10, f"{SENTENCE}.") for _ in range(12)])
        self.assertEqual({heading for heading, _ in self.sections(page)}, {"Welcome"})

    def test_bookmarks_of_paragraphs_and_list_items_are_not_headings(self):
        """Authors give list items the style of a heading, and export them as bookmarks."""
        page = lines(*[("F1", 10, f"{SENTENCE}.") for _ in range(9)])
        for title in ("• Report all damage, please.", "word " * 50):
            with self.subTest(title=title):
                found = self.sections(page, bookmarks=[(0, title, 1)])
                self.assertEqual({heading for heading, _ in found}, {""})

    def test_bold_words_within_a_paragraph_are_not_headings(self):
        begins = "BT /F2 11 Tf 1 0 0 1 50 780 Tm (Note) Tj /F1 11 Tf ( that it ends.) Tj ET\n"
        self.assertEqual(self.sections(begins + lines(("F1", 11, SENTENCE), top=760))[0][0], "")
        inside = lines(("F1", 11, SENTENCE), ("F2", 11, SENTENCE), ("F1", 11, "unless it is agreed."))
        self.assertEqual(self.sections(inside)[0][0], "")

    def test_a_diagonal_watermark_is_not_a_heading(self):
        for cosine, sine in ((0.7, 0.7), (0.82, 0.57), (0.57, 0.82)):
            for font in ("F1", "F2"):
                mark = f"BT /{font} 60 Tf {cosine} {sine} -{sine} {cosine} 150 300 Tm (DRAFT) Tj ET\n"
                page = lines(("F2", 14, "Leave"), ("F1", 11, f"{SENTENCE}."), ("F1", 11, f"{SENTENCE}."))
                with self.subTest(sine=sine, font=font):
                    self.assertEqual({heading for heading, _ in self.sections(mark + page)}, {"", "Leave"})

    def test_a_bold_line_whose_sentence_goes_on_in_plain_type_is_not_a_heading(self):
        before = [("F1", 11, f"{SENTENCE}.")] * 3

        def headings(bold, after):
            page = lines(*before) + lines(("F2", 11, bold), top=700) + lines(("F1", 11, after), top=687)
            return [heading for heading, _ in self.sections(page)]

        self.assertEqual(headings("Those who come late pay 5 euros", "and are not paid back."), [""])
        self.assertEqual(
            headings("Those who come late or leave", r"a\) pay 5 euros"), ["", "Those who come late or leave"]
        )
        self.assertEqual(headings("Coming late", "costs 5 euros."), ["", "Coming late"])

    def test_a_text_in_bold_has_no_bold_headings(self):
        page = lines(*[("F2", 11, f"{SENTENCE} {number}") for number in range(6)], ("F1", 11, "Small print."))
        self.assertEqual([heading for heading, _ in self.sections(page)], [""])

    def test_words_broken_at_line_ends_are_joined(self):
        page = lines(
            ("F1", 11, f"{SENTENCE} for an ef-"),
            ("F1", 11, f"ficient office in a well-known town, {SENTENCE} in a well-"),
            ("F1", 11, "known town during COVID-"),
            ("F1", 11, "19 only."),
        )
        text = self.sections(page)[0][1]
        for words in ("an efficient office", "in a well-known town during", "COVID-19 only"):
            self.assertIn(words, text)

    def test_hyphens_of_compounds_and_before_french_pronouns_are_kept_at_line_ends(self):
        for before, after, joined in (
            ("Vor-", "und Nachbereitung", "Vor- und Nachbereitung"),
            ("Ein-", "bzw. Auszahlung", "Ein- bzw. Auszahlung"),
            ("pre-", "or post-processing", "pre- or post-processing"),
            ("col-", "or of the boat", "color of the boat"),
            ("Avez-", "vous compris", "Avez-vous compris"),
            ("dit-", "elle bien", "dit-elle bien"),
            ("va-t-", "il bien", "va-t-il bien"),
        ):
            for producer in ("LaTeX", "Skia/PDF m140"):
                kept = joined.replace("color", "col-or") if producer != "LaTeX" else joined
                page = lines(
                    *[("F1", 11, SENTENCE)] * 40, ("F1", 11, f"{SENTENCE} {before}"), ("F1", 11, after)
                )
                with self.subTest(joined, producer=producer):
                    self.assertIn(kept, self.sections(page, producer=producer)[0][1])

    def test_a_word_broken_at_the_end_of_a_page_is_not_joined_with_a_note(self):
        page = lines(("F1", 11, f"{SENTENCE} for an ef-")) + lines(("F1", 8, "see also the plan."), top=60)
        self.assertEqual(self.sections(page), [("", f"{SENTENCE} for an ef-\nsee also the plan.")])
        beside = lines(("F1", 11, f"{SENTENCE} for an ef-")) + lines(("F1", 9, "ficient office."), top=765)
        self.assertIn("efficient office", self.sections(beside)[0][1])

    def test_broken_words_that_end_like_pronouns_or_have_an_apostrophe_are_joined(self):
        for before, after, joined in (
            ("ner-", "vous people", "nervous people"),
            ("indige-", "nous people", "indigenous people"),
            ("finanzi-", "elle Mittel", "finanzielle Mittel"),
            ("dans l'e-", "cole", "dans l'ecole"),
        ):
            page = lines(*[("F1", 11, SENTENCE)] * 40, ("F1", 11, f"{SENTENCE} {before}"), ("F1", 11, after))
            with self.subTest(joined):
                self.assertIn(joined, self.sections(page, producer="LaTeX")[0][1])

    def test_words_broken_between_lines_of_a_column_are_joined(self):
        """PDFium joins such lines and puts U+0002 or U+FFFE where the hyphen was."""
        page = "".join(
            f"BT /F1 9 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n"
            for x, y, text in (
                (50, 700, "The method is ef-"), (50, 689, "ficient and ro-"), (50, 678, "bust in all cases."),
                (320, 700, "Results are repro-"), (320, 689, "ducible by the same"), (320, 678, "seed."),
            )
        )  # fmt: skip
        text = " ".join(text for _, text in self.sections(page))
        for word in ("efficient", "robust", "reproducible"):
            self.assertIn(word, text)

    def test_hyphens_at_line_ends_of_a_browsers_pdf_are_kept(self):
        whole = [("F1", 11, SENTENCE)] * 40
        page = lines(*whole[:20], ("F1", 11, f"{SENTENCE} in half-"), ("F1", 11, "days only."), *whole[20:])
        for producer, words in (("Skia/PDF m140", "in half-days only"), ("LaTeX", "in halfdays only")):
            self.assertIn(words, self.sections(page, producer=producer)[0][1])
        page = lines(*whole[:8], *[("F1", 11, "all of the ef-"), ("F1", 11, "ficient offices")] * 3)
        self.assertIn("efficient", self.sections(page, producer="Skia/PDF m140")[0][1])

    def test_a_hebrew_table_is_read_from_right_to_left(self):
        """Words of right-to-left scripts once had a negative width, and a page of them took minutes."""
        started = time.monotonic()
        places = [(500, "ABC"), (300, "DEF"), (100, "GHI")]
        page = "".join(
            f"BT /F1 11 Tf 1 0 0 1 {x} {760 - 18 * row} Tm ({word if row else word[::-1]}) Tj ET\n"
            for row in range(30)
            for x, word in places
        )
        page += "".join(f"50 {754 - 18 * row} m 560 {754 - 18 * row} l S\n" for row in range(-1, 30))
        text = self.sections(page, meaning=HEBREW)[0][1]
        self.assertLess(time.monotonic() - started, 5 + MARGIN_SECONDS)
        first = text.split("\n")[0].split("; ")
        self.assertEqual([set(pair) & set(HEBREW[:3]) != set() for pair in first], [True, False, False])


def table_page(rows, lefts=(50, 200, 300)):
    """A page with a ruled table."""
    cells = "".join(
        f"BT /F1 11 Tf 1 0 0 1 {left} {760 - 20 * number} Tm ({cell}) Tj ET\n"
        for number, row in enumerate(rows)
        for left, cell in zip(lefts, row, strict=True)
    )
    rules = "".join(
        f"50 {774 - 20 * number} m 400 {774 - 20 * number} l S\n" for number in range(len(rows) + 1)
    )
    return cells + rules


class TableOverPagesTests(SimpleTestCase):
    FIRST = [
        ("Route", "Fare", "Boat"),
        ("R1 north", "40.50", "Tern"),
        ("R2 south", "57.50", "Skua"),
        ("R3 west", "61.00", "Tern"),
    ]
    NEXT = [("R4 east", "80.10", "Gull"), ("R5 north", "12.00", "Tern")]

    def texts(self, *pages):
        return [section.text.splitlines() for section in reading("a.pdf", building.drawn(*pages)).sections]

    def test_rows_on_the_next_pages_have_the_names_of_the_columns(self):
        pages = (table_page(self.FIRST), table_page(self.NEXT), table_page(self.NEXT))
        _, second, third = self.texts(*pages)
        self.assertEqual(second[0], "Route: R4 east; Fare: 80.10; Boat: Gull")
        self.assertEqual(second, third)

    def test_a_repeated_header_is_not_a_row(self):
        _, second = self.texts(table_page(self.FIRST), table_page([self.FIRST[0], *self.NEXT]))
        self.assertEqual(len(second), 2)
        self.assertEqual(second[0], "Route: R4 east; Fare: 80.10; Boat: Gull")

    def test_another_table_keeps_its_own_names(self):
        for header in (("Harbour", "Depth", "Berths"), ("Pier 1", "Depth", "Berths")):
            _, second = self.texts(table_page(self.FIRST), table_page([header, *self.NEXT]))
            self.assertEqual(second[0], f"{header[0]}: R4 east; Depth: 80.10; Berths: Gull")

    def test_columns_at_other_positions_are_another_table(self):
        _, second = self.texts(table_page(self.FIRST), table_page(self.NEXT, lefts=(50, 300, 370)))
        self.assertNotIn("Route:", "".join(second))


class BorderedTableTests(SimpleTestCase):
    """Tables with a border around each cell, and with columns that are closer than words."""

    LEFTS = (72, 95, 205, 239, 290)
    ROWS = [("No.", "Item", "Room", "Value")] + [
        (str(number), "Printer, black", f"R {number}", f"{number}9,90 E") for number in range(11, 15)
    ]

    def table(self, borders):
        text = "".join(
            f"BT /F1 11 Tf 1 0 0 1 {left + 2} {760 - 20 * number} Tm ({cell}) Tj ET\n"
            for number, row in enumerate(self.ROWS)
            for left, cell in zip(self.LEFTS, row, strict=False)
        )
        heights = [774 - 20 * number for number in range(len(self.ROWS) + 1)]
        rules = "".join(f"72 {height} m 290 {height} l S\n" for height in heights)
        return text + rules + borders

    def texts(self, borders):
        [section] = reading("a.pdf", building.drawn(self.table(borders))).sections
        return section.text.split("\n")

    def test_vertical_lines_separate_columns_that_are_close_together(self):
        expected = [
            "; ".join(f"{name}: {cell}" for name, cell in zip(self.ROWS[0], row, strict=True))
            for row in self.ROWS[1:]
        ]
        whole = "".join(f"{left} 774 m {left} 674 l S\n" for left in self.LEFTS)
        cells = "".join(
            f"{left} {774 - 20 * row} m {left} {754 - 20 * row} l S\n"
            for left in self.LEFTS
            for row in range(5)
        )
        for borders in (whole, cells):
            self.assertEqual(self.texts(borders), expected)
        self.assertNotEqual(self.texts(""), expected)

    def test_a_vertical_line_through_a_few_rows_or_through_words_separates_no_columns(self):
        plain = self.texts("")
        self.assertEqual(self.texts("205 774 m 205 734 l S\n"), plain)
        self.assertEqual(self.texts("130 774 m 130 674 l S\n"), plain)

    def test_a_row_with_merged_cells_does_not_join_the_columns_of_the_others(self):
        heights = [774 - 20 * number for number in range(len(self.ROWS) + 2)]
        total = (
            "BT /F1 11 Tf 1 0 0 1 74 660 Tm (Total, all rooms) Tj 167 0 Td (543,90 E) Tj ET\n"
            "72 654 m 290 654 l S\n"
        )
        rows = ((left, heights[-1 if left in (72, 239, 290) else -2]) for left in self.LEFTS)
        borders = "".join(f"{left} 774 m {left} {bottom} l S\n" for left, bottom in rows)
        *lines, last = self.texts(total + borders)
        self.assertEqual(lines[0], "No.: 11; Item: Printer, black; Room: R 11; Value: 119,90 E")
        self.assertEqual(len(lines), 4)
        self.assertEqual(last, "No.: Total, all rooms; Value: 543,90 E")

    def test_two_names_with_their_values_are_not_names_of_columns(self):
        rows = [("Address", "Main Road 1"), ("Phone", "0221 1234")]
        cells = "".join(
            f"BT /F1 11 Tf 1 0 0 1 {left} {760 - 20 * number} Tm ({cell}) Tj ET\n"
            for number, row in enumerate(rows)
            for left, cell in zip((74, 126), row, strict=True)
        )
        rules = "".join(f"72 {height} m 200 {height} l S\n" for height in (774, 754, 734))
        borders = "".join(f"{left} 774 m {left} 734 l S\n" for left in (72, 124, 200))
        [section] = reading("a.pdf", building.drawn(cells + rules + borders)).sections
        self.assertEqual(section.text, "Address; Main Road 1\nPhone; 0221 1234")


class RowsBetweenLinesTests(SimpleTestCase):
    """Tables with a line below each row and none above the names of the columns, as browsers draw them."""

    NAMES = [("Situation", "What happens"), ("", "then")]
    ROWS = [("Another count", "Blocked with an error"), ("A negative quantity", "Rejected")]

    def table(self, top):
        """The content stream of the table, with names of two lines, and the height below it."""
        names = "".join(
            f"BT /F2 11 Tf 1 0 0 1 {left} {top - 13 * number} Tm ({word}) Tj ET\n"
            for number, row in enumerate(self.NAMES)
            for left, word in zip((50, 300), row, strict=True)
        )
        stream = f"{names}50 {top - 20} m 500 {top - 20} l S\n"
        for number, row in enumerate(self.ROWS):
            y = top - 36 - 22 * number
            for left, word in zip((50, 300), row, strict=True):
                stream += f"BT /F1 11 Tf 1 0 0 1 {left} {y} Tm ({word}) Tj ET\n"
            stream += f"50 {y - 6} m 500 {y - 6} l S\n"
        return stream, y - 30

    def test_the_names_above_the_first_line_are_those_of_the_columns(self):
        rows = [f"Situation: {first}; What happens then: {second}" for first, second in self.ROWS]
        first, below = self.table(760)
        text = f"BT /F1 11 Tf 1 0 0 1 50 {below} Tm (The counts of the second year are as follows) Tj ET\n"
        second, _ = self.table(below - 30)
        before = "BT /F2 11 Tf 1 0 0 1 50 790 Tm (Counts) Tj ET\n"
        sections = reading("a.pdf", building.drawn(before + first + text + second)).sections
        self.assertEqual(
            [line for section in sections for line in section.text.split("\n") if ";" in line], rows * 2
        )

    def test_text_below_a_table_is_not_part_of_its_last_row(self):
        first, below = self.table(760)
        first = first[: first.rindex("50 ")]  # without the last line
        text = "The counts of the second year are in the next table, in the order of their rooms"
        between = f"BT /F1 11 Tf 1 0 0 1 50 {below} Tm ({text}) Tj ET\n"
        sections = reading("a.pdf", building.drawn(first + between + self.table(below - 30)[0])).sections
        found = "\n".join(section.text for section in sections).split("\n")
        rows = [f"Situation: {first}; What happens then: {second}" for first, second in self.ROWS]
        self.assertEqual(found, [*rows, text, *rows])
