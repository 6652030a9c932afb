"""Statements of an answer against the sources that they cite."""

from django.test import SimpleTestCase

from chat.statements import after_edits, from_rows, marks_by_rank, to_rows
from chat.tests.sources import source
from chat.verification import verify
from chat.verification.facts import number_value, tokens
from chat.verification.statements import MAX_STATEMENTS
from history.tally import tally

LEAVE = source(
    1,
    "a.md#x",
    "Leave is planned in March. Staff may carry over\nfive days until 31 March. Ask your manager, Anna Berg. "
    "Carried days lapse after that date and are not paid out. The meal allowance is £25. Abroad it is £30.",
)
BOATS = source(
    2, "b.md", "Boats sail at nine o’clock daily. The harbour office in Sennick is run by Tom Hale."
)
URLAUB = source(
    3,
    "c.md",
    "Der Urlaub beträgt jährlich mindestens 24 Werktage. Die Übertragung des Urlaubs auf das nächste Jahr "
    "ist nur statthaft, wenn dringende Gründe dies rechtfertigen. Der Anspruch ist nicht übertragbar.",
)


class VerdictTests(SimpleTestCase):
    def verdicts(self, answer, *sources):
        return [statement.verdict for statement in verify(answer, sources or (LEAVE, BOATS, URLAUB))]

    def assert_verdict(self, verdict, *statements):
        for statement in statements:
            with self.subTest(statement):
                self.assertEqual(self.verdicts(statement), [verdict])

    def test_words_that_stand_in_the_source_are_quoted_whatever_is_between_them(self):
        self.assert_verdict(
            "quoted",
            "Staff may carry over five days until 31 March. [a.md#x]",
            "> Staff may carry **over five** days until 31 March [a.md#x].",
            "Boats sail at nine o'clock daily [b.md]",
        )

    def test_other_words_for_the_same_are_supported(self):
        self.assert_verdict(
            "supported",
            "You can carry over 5 days of leave until 31 March [a.md#x].",
            "The allowance for meals is 25 pounds [a.md#x].",
            "Tom Hale runs the office in Sennick harbour [b.md].",
            "Der jährliche Urlaub beträgt mindestens 24 Werktage [c.md].",
        )

    def test_another_number_date_or_unit_is_not_found(self):
        self.assert_verdict(
            "not_found",
            "You can carry over six days of leave until 31 March [a.md#x].",
            "You can carry over five days of leave until 30 April [a.md#x].",
            "You can carry over five weeks of leave until 31 March [a.md#x].",
            "The meal allowance is £30 [a.md#x].",
            "Der jährliche Urlaub beträgt mindestens 20 Werktage [c.md].",
        )

    def test_another_name_is_not_found(self):
        self.assert_verdict(
            "not_found",
            "Ask your manager, Tom Hale [a.md#x].",
            "Anna Berg runs the office in Sennick [b.md].",
        )

    def test_what_is_denied_on_one_side_only_is_not_found(self):
        self.assert_verdict(
            "not_found",
            "Staff may not carry over five days until 31 March [a.md#x].",
            "Carried days are paid out after that date [a.md#x].",
            "Der Anspruch ist übertragbar [c.md].",
            "Der jährliche Urlaub beträgt höchstens 24 Werktage [c.md].",
        )

    def test_a_citation_of_another_page_is_not_found(self):
        self.assert_verdict("not_found", "You can carry over five days of leave until 31 March [b.md].")

    def test_stop_words_alone_prove_nothing(self):
        self.assert_verdict("not_found", "They are to be there until the end of the season [a.md#x].")

    def test_a_statement_without_a_citation_is_uncited_and_headings_lead_ins_and_code_are_no_statements(self):
        answer = (
            "# Leave\n\nThe rules are:\n\n- Carried days lapse [a.md#x]\n- Nobody knows more\n\n"
            "```\ncode is said [a.md#x].\n```\n\nIs that all?"
        )
        self.assertEqual(self.verdicts(answer), ["quoted", "uncited"])

    def test_each_citation_of_a_sentence_has_its_own_part_of_it(self):
        answer = "You can carry over five days [a.md#x], and boats sail at ten o’clock daily [b.md]."
        found = verify(answer, (LEAVE, BOATS))
        self.assertEqual([statement.verdict for statement in found], ["supported", "not_found"])
        self.assertEqual(answer[found[0].start : found[0].end], "You can carry over five days")

    def test_two_sources_may_support_a_statement_together(self):
        answer = "Anna Berg is a manager, and Tom Hale runs the harbour office [a.md#x][b.md]."
        (statement,) = verify(answer, (LEAVE, BOATS))
        self.assertEqual((statement.verdict, statement.citations), ("supported", ("a.md#x", "b.md")))
        self.assertEqual([proof.rank for proof in statement.proofs], [1, 2])

    def test_the_marks_are_the_words_of_the_statement_and_no_others(self):
        answer = (
            "Five days may be carried over until 31 March [a.md#x]. Meals: the allowance is £25 [a.md#x]."
        )
        first, second = verify(answer, (LEAVE,))
        marked = [LEAVE.content[start:end] for start, end in first.proofs[0].marks]
        self.assertIn("five days until 31 March", marked[-1])
        self.assertNotIn("allowance", " ".join(marked))
        self.assertEqual(
            [LEAVE.content[start:end] for start, end in second.proofs[0].marks], ["meal allowance is £25"]
        )
        self.assertEqual(answer[slice(first.proofs[0].start, first.proofs[0].end)], "[a.md#x]")
        self.assertEqual(list(marks_by_rank((first, second))), [1])

    def test_scripts_without_spaces_are_compared_by_their_characters(self):
        notice = source(
            4, "d.md", "每位员工每年有二十七天带薪年假。未使用的年假不能转到下一年。会议在10点开始。"
        )
        for answer, verdict in (
            ("每位员工每年有二十七天带薪年假 [d.md]。", "quoted"),
            ("会议在11点开始 [d.md]。", "not_found"),
            ("渡轮每天早上从港口出发 [d.md]。", "not_found"),
        ):
            with self.subTest(answer):
                self.assertEqual(self.verdicts(answer, notice), [verdict])

    def test_a_row_of_a_table_is_a_statement(self):
        answer = (
            "| What | Until |\n|---|---|\n| Carried days | 31 March [a.md#x] |\n| Boats | 32 March [a.md#x] |"
        )
        self.assertEqual(self.verdicts(answer), ["supported", "not_found"])

    def test_beyond_the_bound_nothing_is_assured(self):
        answer = "Leave is planned in March [a.md#x]. " * (MAX_STATEMENTS + 5)
        found = self.verdicts(answer)
        self.assertEqual((len(found), found[-2], found[-1]), (MAX_STATEMENTS + 1, "quoted", "not_found"))

    def test_numbers_have_one_spelling(self):
        for spellings, value in (
            (("1,204", "1.204", "1’204"), "1204"),
            (("2,5", "2.50"), "2.5"),
            (("007", "7"), "7"),
            (("1.234,50", "1,234.5"), "1234.5"),
        ):
            self.assertEqual({number_value(spelling) for spelling in spellings}, {value})
        values = [
            token.value for token in tokens("On 2026-03-31 or 31.03.2026, siebenundzwanzig or twenty-seven")
        ]
        self.assertEqual(values, ["31", "month3", "2026", "31", "month3", "2026", "27", "27"])


class RowsTests(SimpleTestCase):
    def test_statements_survive_being_stored(self):
        found = verify("Carried days lapse [a.md#x]. Nobody knows. Boats sail [b.md].", (LEAVE, BOATS))
        self.assertEqual(from_rows(to_rows(found)), found)

    def test_counts_are_told_in_one_line(self):
        for verdicts, summary, rest in (
            (["quoted", "supported"], "All citations found in the text", ""),
            (
                ["quoted", "not_found", "uncited"],
                "1 of 2 statements was not found in its source",
                "1 statement cites no source",
            ),
            (["not_found"], "The statement was not found in its source", ""),
            (["uncited", "uncited"], "", "2 statements cite no source"),
        ):
            counted = tally(verdicts)
            self.assertEqual((counted.summary, counted.rest), (summary, rest))

    def test_places_move_with_what_is_left_out_and_added_before_them(self):
        place = after_edits([(5, 10, 0), (12, 12, 3)])
        self.assertEqual([place(old) for old in (0, 5, 7, 10, 12, 13)], [0, 5, 5, 5, 7, 11])
