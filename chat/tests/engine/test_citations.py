import random
import time

from django.test import SimpleTestCase

from chat.citations import CitationFilter, cited_labels

LABELS = ["guide.pdf#page=3", "rates.xlsx#sheet=Winter timetable", "notes.md"]


def filtered(text, pieces=None, labels=LABELS):
    filter_ = CitationFilter(labels)
    out = "".join(filter_.feed(piece) for piece in (pieces or [text])) + filter_.flush()
    return out, filter_


class CitationFilterTests(SimpleTestCase):
    def test_a_citation_of_a_source_passes_and_is_counted_once(self):
        out, filter_ = filtered("Five days [guide.pdf#page=3]. Yes [guide.pdf#page=3][notes.md].")
        self.assertEqual(out, "Five days [guide.pdf#page=3]. Yes [guide.pdf#page=3][notes.md].")
        self.assertEqual(filter_.cited, ["guide.pdf#page=3", "notes.md"])

    def test_a_citation_that_matches_no_source_is_removed_with_the_space_before_it(self):
        out, filter_ = filtered("The salary is 5 [secret.pdf#page=1]. More [salary-bands.xlsx].")
        self.assertEqual(out, "The salary is 5. More.")
        self.assertEqual(filter_.removed, 2)

    def test_only_sources_of_a_list_of_labels_stay(self):
        out, _ = filtered("So [guide.pdf#page=3, secret.pdf#page=9; notes.md].")
        self.assertEqual(out, "So [guide.pdf#page=3][notes.md].")

    def test_case_and_spacing_do_not_matter(self):
        out, _ = filtered("At noon [Rates.xlsx#sheet=winter  timetable].")
        self.assertEqual(out, "At noon [rates.xlsx#sheet=Winter timetable].")

    def test_a_label_in_another_letter_case_does_not_take_over_a_citation(self):
        for labels in (["leave.md", "Leave.md"], ["Leave.md", "leave.md"]):
            out, filter_ = filtered("Four weeks [leave.md]. Nine [Leave.md]. Ten [LEAVE.md].", labels=labels)
            self.assertEqual(out, "Four weeks [leave.md]. Nine [Leave.md]. Ten.")
            self.assertEqual(filter_.cited, ["leave.md", "Leave.md"])
            self.assertEqual(filter_.removed, 1)

    def test_other_brackets_and_links_stay_text(self):
        text = "An [aside], a[0], [link.md](https://example.org/) and [ ] a box"
        self.assertEqual(filtered(text)[0], text)

    def test_an_open_bracket_at_the_end_is_not_lost(self):
        self.assertEqual(filtered("It ends [guide.pdf#pa")[0], "It ends [guide.pdf#pa")

    def test_a_very_long_bracket_is_released(self):
        filter_ = CitationFilter(LABELS)
        out = filter_.feed("[" + "x" * 5000)
        self.assertGreater(len(out), 4000)

    def test_a_long_run_of_spaces_takes_linear_time(self):
        spaces = " " * 200_000
        before = time.thread_time()
        out, _ = filtered(f"{spaces}x{spaces}[notes.md]\t{spaces}[")
        self.assertEqual(out, f"{spaces}x{spaces}[notes.md]\t{spaces}[")
        self.assertLess(time.thread_time() - before, 10)  # quadratic time would be minutes

    def test_the_split_of_a_text_into_pieces_does_not_matter(self):
        text = (
            "First [guide.pdf#page=3] then [evil.docx#a] and [x] [notes.md, gone.pdf#page=2] "
            "[a](b) [link.md](https://example.org) end [secret.pdf#page=4]"
        )
        expected = filtered(text)[0]
        generator = random.Random(7)
        for _ in range(300):
            cuts = sorted(generator.sample(range(1, len(text)), generator.randint(1, 40)))
            pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
            self.assertEqual(filtered(text, pieces)[0], expected, pieces)

    def test_a_verified_text_cites_its_labels_again(self):
        self.assertEqual(
            cited_labels("a [notes.md] b [guide.pdf#page=3] [notes.md]", LABELS),
            ("notes.md", "guide.pdf#page=3"),
        )
