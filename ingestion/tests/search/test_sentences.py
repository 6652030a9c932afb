"""Splitting text into sentences, and finding a question's words in them."""

from django.test import SimpleTestCase

from ingestion.search.rough_stems import matching_words, stems
from ingestion.search.sentence_splitting import spans_of, split_sentences


class SplittingTests(SimpleTestCase):
    def texts(self, content):
        return [span.text for span in split_sentences(content) if not span.is_heading]

    def test_sentences_end_at_full_stops_but_not_at_abbreviations(self):
        self.assertEqual(
            self.texts(
                "Dr. Smith and J. K. Rowe, e.g. The Two, came at 5 p.m. on 3.5. Did they? Yes! It was No. 7."
            ),
            [
                "Dr. Smith and J. K. Rowe, e.g. The Two, came at 5 p.m. on 3.5.",
                "Did they?",
                "Yes!",
                "It was No. 7.",
            ],
        )

    def test_each_line_of_a_schedule_is_a_separate_sentence(self):
        schedule = (
            "Week 5 - Working with scales in history - Sarah\nWeek 6 - Independent learning\nEssay 1 due\n"
            "Week 7 - Transnational lives - Bernhard"
        )
        self.assertEqual(self.texts(schedule), schedule.split("\n"))
        wrapped = (
            "The house in\nBerlin has a garden. All of its rooms\nwere painted last year, and\n"
            "Paula chose the colours."
        )
        self.assertEqual(len(self.texts(wrapped)), 2)

    def test_no_as_an_answer_is_a_sentence_but_not_before_a_number(self):
        for text in ("No. Ask your manager first.", "May I? No. Ask first."):
            self.assertIn("No.", self.texts(text))
        for text in ("No. 7 is closed.", "Berth No. A is closed."):
            self.assertEqual(self.texts(text), [text])

    def test_a_year_or_number_ends_a_sentence(self):
        self.assertEqual(
            self.texts("It began in 1985. Then it grew by 12. The end."),
            ["It began in 1985.", "Then it grew by 12.", "The end."],
        )

    def test_a_german_ordinal_or_abbreviation_ends_no_sentence(self):
        for text in (
            "Der Termin ist am 12. März 2026 um 9 Uhr.",
            "Die Küche ist im 2. Obergeschoss.",
            "Der 2. Vorsitzende unterschreibt.",
            "Im 1. Halbjahr stiegen die Kosten um 5 Mio. Euro auf 3 Std. Arbeit.",
            "Nach Abs. 2 Ziff. 1 gilt gem. Anlage 2 nichts.",
        ):
            self.assertEqual([span.text for span in split_sentences(text)], [text])
        for text, ends in (
            ("Abgabe ist am 12. Danach gilt nichts.", "am 12."),
            ("Reply by 12. The office is closed.", "by 12."),
        ):
            self.assertTrue(next(iter(split_sentences(text))).text.endswith(ends), text)

    def test_bullets_and_rows_are_separate_sentences(self):
        self.assertEqual(
            self.texts(
                "Bring:\n- a muzzle\n- a lead\n\nGrade: E; Salary: 48,000\nGrade: F; Salary: 52,000\n"
            ),
            ["Bring:", "a muzzle", "a lead", "Grade: E; Salary: 48,000", "Grade: F; Salary: 52,000"],
        )

    def test_a_row_with_only_its_first_cell_is_a_table_row(self):
        spans = split_sentences("Item: Drill; Notes: 14 volts\nItem: Files\nItem: Driver\nNote: Ask first.")
        self.assertEqual([span.is_row for span in spans], [True, True, True, False])
        self.assertFalse(any(span.is_row for span in split_sentences("Item: Files\nItem: Driver")))

    def test_clauses_are_items_and_rows_whole_where_they_are_quoted(self):
        for text, items in (
            (
                "He must: (a) feed the animal; (b) clean the yard. He pays.",
                ["(a) feed the animal;", "(b) clean the yard."],
            ),
            (
                "its noise;(c)break the bottles; or(d)leave them there.",
                ["(c)break the bottles; or", "(d)leave them there."],
            ),
            ("See these parts: (a) and (b) of section 3(a).", []),
            ("A plan of 401(k) is (a) an old one, (b) a good one.", []),
        ):
            self.assertEqual([span.text for span in spans_of(text) if span.is_item], items, text)
            self.assertFalse(any(span.is_item for span in split_sentences(text)), text)
        row = "Item: Van; Rule: Book it. Return it"
        self.assertEqual([span.text for span in spans_of(row)], [row])
        self.assertEqual(len(split_sentences(row)), 2)

    def test_lines_of_a_page_are_joined(self):
        self.assertEqual(
            self.texts("You may take\nthree weeks. Ask\nfirst."), ["You may take three weeks.", "Ask first."]
        )

    def test_chinese_sentences_end_without_a_space(self):
        self.assertEqual(self.texts("每年二十七天。可以结转。"), ["每年二十七天。", "可以结转。"])

    def test_headings_are_recognised(self):
        spans = split_sentences("## Annual leave\n\nYou have 27 days.\n\nSick pay\n\nIt is full pay.")
        self.assertEqual([span.text for span in spans if span.is_heading], ["Annual leave", "Sick pay"])

    def test_the_position_of_every_sentence_is_correct(self):
        content = (
            "# A b\n\n  * One two.  Three\nfour! \n\n| Grade | Pay |\n| --- | --- |\n| F | 5 |\n\n“Five.” Six"
        )
        for span in split_sentences(content):
            self.assertEqual(" ".join(content[span.start : span.end].split()), span.text)

    def test_unusual_text_causes_no_errors(self):
        for content in ("", " \n\n", "....", "- \n- \n", "a" * 5000, "x; " * 2000, "\r\n\r\n#", "。。。"):
            split_sentences(content)


class MatchingTests(SimpleTestCase):
    def test_the_words_of_a_question_are_found_in_other_forms(self):
        text = "Carrying over: five day’s leave"
        words = [text[start:end] for start, end in matching_words("How many days may I carry over?", text)]
        self.assertEqual(words, ["Carrying", "over", "day"])

    def test_words_without_meaning_of_their_own_are_found_only_if_there_are_no_others(self):
        text = "Don't ask what's due at plant T. Things that happen, happen then."
        for question, words in (
            ("What's due? Don't you know?", ["due"]),
            ("What happens then?", ["happen", "happen", "then"]),
        ):
            self.assertEqual([text[start:end] for start, end in matching_words(question, text)], words)

    def test_codes_with_the_same_beginning_are_different_words(self):
        text = "TX5000A TX5000B, KD2024001; M10x60 and M10x600"
        for code, words in (("tx5000b", ["TX5000B"]), ("KD2024002", []), ("M10x600", ["M10x600"])):
            question = f"How much is the {code}?"
            self.assertEqual([text[start:end] for start, end in matching_words(question, text)], words)

    def test_an_ending_after_a_digit_makes_no_other_word(self):
        for one, other in (
            ("14tägige", "14tägigen"),
            ("2jähriger", "2jährigen"),
            ("1990s", "1990"),
            ("TX5000s", "TX5000"),
            ("mp3s", "mp3"),
        ):
            self.assertEqual(stems(one), stems(other))
        for one, other in (("TX5000A", "TX5000B"), ("KD2024001", "KD2024002"), ("TX5000A", "TX5000")):
            self.assertNotEqual(stems(one), stems(other))
