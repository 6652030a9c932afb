"""Statements of an answer against the sources that they cite."""

from django.test import SimpleTestCase

from chat.statements import after_edits, from_rows, marks_by_rank, to_api, to_rows
from chat.tests.sources import source
from chat.verification import verify
from chat.verification.answer_statements import MAX_STATEMENTS
from chat.verification.facts import language_of, number_value, tokens
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


# Lines as they come from a PDF: headings and rows are only lines.
SAFETY = source(
    5,
    "s.pdf#page=1",
    """4 Vessels and fire
The order to abandon ship is never given by bell or whistle. Only the master gives it, by
voice. Everyone is counted within 15 minutes on Class A, ten minutes on Class B and five
minutes on Class C. The badge shows your first name; your surname is never shown there.
Equipment
Kind Class A Class B Class C
Life rafts 10 4 3
Explosives No No No
Extinguishers hang beside the doors.
Fire
Type of fire Use Never use
Oil, fuel, paint Foam, dry powder Water
Electrical equipment Carbon dioxide Water, foam
The bridge sounds the signals.
Signals
Signal Meaning
Continuous bell Fire
Three long blasts Person overboard
Clothing is issued in Carrow Quay.
Uniforms
Item Number issued Replaced every
Fleece jacket 1 24 months
Waterproof coat 1 36 months
Seafarers who return after more than 28 days need a fresh medical examination. The course
lasts six weeks; the last two weeks are optional. Telephone your manager no later than one
hour before your shift starts. Overtime and sea bonus are left out of full pay. The manual is
edition 2026.1 and takes effect on 1 January 2026. A day at sea never exceeds 12 hours. The
office answers on extension 3100. Ask for the harbour master on extension 2200.""",
)
FRIST = source(
    6,
    "f.md",
    "Der volle Anspruch wird erstmalig nach sechsmonatigem Bestehen des Arbeitsverhältnisses erworben. "
    "Der Arbeitgeber ist verpflichtet, eine Bescheinigung auszuhändigen.\n\n"
    "(2) Als Werktage gelten alle Kalendertage.",
)


FAIRS = source(
    7,
    "g.md",
    "Refunds are paid within seven days. Rosters are published 28 days ahead. "
    "Stays of six months need a permit.\n\n"
    "If the price limit cannot be kept because of a trade fair, the travel desk may approve up to "
    "30 per cent more.\n\n"
    "The Head of People appoints an investigator on form HR-07.\n\n"
    "The policy must not:\n\n- Require personal information.\n- Limit testing to members.",
)
FARES = source(
    8,
    "h.md",
    "Ticket: Adult; Winter fare (GBP): 22; Summer fare (GBP): 28\n"
    "Ticket: Child; Winter fare (GBP): 11; Summer fare (GBP): 14\n\n"
    "Allowance: Night allowance; Amount: £3.35; Approved by: Duty Manager\n"
    "Allowance: Standby; Amount: £46; Approved by: Technical Director",
)


class VerdictTests(SimpleTestCase):
    def verdicts(self, answer, *sources):
        return [statement.verdict for statement in verify(answer, sources or (LEAVE, BOATS, URLAUB))]

    def assert_verdicts_in(self, found, verdict, *statements):
        for statement in statements:
            with self.subTest(statement):
                self.assertEqual(self.verdicts(f"{statement} [{found.label}].", found), [verdict])

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

    def test_the_number_of_a_list_item_is_no_part_of_its_statement(self):
        answer = "1. Staff may carry over five days [a.md#x]\n2. Boats sail at ten [b.md]\n"
        said = [answer[each.start : each.end] for each in verify(answer, (LEAVE, BOATS))]
        self.assertEqual(said, ["Staff may carry over five days", "Boats sail at ten"])

    def test_other_words_for_the_same_are_supported(self):
        self.assert_verdict(
            "supported",
            "You can carry over 5 days of leave until 31 March [a.md#x].",
            "The allowance for meals is 25 pounds [a.md#x].",
            "Tom Hale runs the office in Sennick harbour [b.md].",
            "Der jährliche Urlaub beträgt mindestens 24 Werktage [c.md].",
        )

    def test_what_no_fact_denies_is_unclear_in_other_words_and_loud_on_another_subject(self):
        for statement, unclear in (
            ("Anyone can move five days into the following calendar [a.md#x]", True),
            ("Ask your manager, Anna Berg, about the parking permit [a.md#x]", True),
            ("The kitchen serves soup and fresh bread at noon [a.md#x]", False),
            ("You can carry over six days of leave until 31 March [a.md#x]", False),
        ):
            with self.subTest(statement):
                (found,) = verify(statement, (LEAVE,))
                self.assertEqual((found.verdict, found.unclear), ("not_found", unclear))
                self.assertEqual(from_rows(to_rows((found,))), (found,))
                self.assertEqual(to_api((found,))[0].get("unclear", False), unclear)

    def test_a_fact_beside_other_words_contradicts_only_what_is_nearly_literal(self):
        (literal,) = verify("The meal allowance is £30 [a.md#x]", (LEAVE,))
        (free,) = verify("Anna Berg plans what people eat on journeys for £30 [a.md#x]", (LEAVE,))
        self.assertEqual((literal.verdict, literal.unclear), ("not_found", False))
        self.assertEqual((free.verdict, free.unclear), ("not_found", True))

    def test_a_number_or_name_without_another_in_its_place_may_be_written_otherwise(self):
        office = source(
            9,
            "o.md",
            "The OA contacts you soon after the form was accepted. Sick pay lasts eight weeks after 3 to 5 "
            "years of service. Core hours are 10:00 to 15:30; the house is open between 07:00 and 19:00. "
            "Only the clerk can change the contract.",
        )
        self.assert_verdicts_in(
            office,
            "supported",
            "The core hours are between 10:00 and 15:30",
            "Nobody but the clerk can change the contract",
        )
        for statement, unclear in (
            ("After four years of service sick pay lasts eight weeks [o.md]", True),
            ("After seven years of service sick pay lasts eight weeks [o.md]", False),
            ("The Office of Acquisition contacts you soon after the form was accepted [o.md]", True),
            ("The Office of Recruitment contacts you soon after the form was accepted [o.md]", False),
        ):
            with self.subTest(statement):
                (found,) = verify(statement, (office,))
                self.assertEqual((found.verdict, found.unclear), ("not_found", unclear))

    def test_what_is_excluded_in_german_is_not_permitted(self):
        law = source(
            9,
            "g.md",
            "Der Nachweis in elektronischer Form ist ausgeschlossen. Das Gesetz gilt für alle. Aushilfen von "
            "höchstens einem Monat sind nicht erfasst.",
        )
        self.assert_verdicts_in(
            law,
            "not_found",
            "Der Nachweis in elektronischer Form ist zulässig",
            "Aushilfen von höchstens einem Jahr sind nicht erfasst",
        )

    def test_a_short_german_sentence_is_german(self):
        self.assertEqual(
            language_of("Für Vollzeitkräfte an Land gibt es 27 Tage zuzüglich acht Feiertage."), "german"
        )

    def test_numbers_in_words_are_numbers(self):
        facts = source(
            9,
            "n.md",
            "You can have up to 24 credit hours. The top salary in FY22 was $176,300. Rates are reviewed "
            "quarterly. Half the cost is refunded. The permit expires one year after it was issued.",
        )
        self.assert_verdicts_in(
            facts,
            "supported",
            "You can have up to two dozen credit hours",
            "Every three months the rates are reviewed",
            "50 per cent of the cost is refunded",
        )
        self.assert_verdicts_in(
            facts,
            "not_found",
            "You can have up to three dozen credit hours",
            "Every six months the rates are reviewed",
            "Half of the cost is paid, 40 per cent of the cost is refunded",
            "The permit expires one month after it was issued",
        )

    def test_the_order_of_before_and_after_counts(self):
        order = source(9, "o.md", "You should use your accrued comp time before using annual leave.")
        self.assert_verdicts_in(order, "supported", "Use annual leave after your accrued comp time")
        self.assert_verdicts_in(order, "not_found", "Use annual leave before your accrued comp time")

    def test_an_opposite_word_is_not_supported(self):
        fares = source(9, "f.md", "These fares are nonrefundable. The recovery starts automatically.")
        self.assert_verdicts_in(fares, "supported", "These fares cannot be refunded")
        self.assert_verdicts_in(
            fares, "not_found", "These fares are refundable", "The recovery starts manually"
        )

    def test_a_statement_in_the_other_language_is_never_called_another_subject(self):
        (found,) = verify("Every year you have at least 24 days of holiday [c.md]", (URLAUB,))
        self.assertTrue(found.verdict == "supported" or found.unclear)

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

    def test_a_block_quotation_that_cites_at_its_end_is_one_statement(self):
        quotation = "> You can carry over five days of leave until 31 March. The meal allowance is £25."
        answer = f"It says:\n\n{quotation} [a.md#x]\n\n> Nobody knows more.\n\nThat is all we know."
        self.assertEqual(len(self.verdicts(answer)), 3)
        first = verify(answer, (LEAVE, BOATS))[0]
        self.assertEqual(answer[first.start : first.end], quotation.removeprefix("> "))
        self.assertEqual(self.verdicts(answer)[1:], ["uncited", "uncited"])

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

    def test_the_marks_of_a_row_begin_with_the_small_words_of_its_cells(self):
        row = "Length of service: Under 1 year; Full pay: up to 4 weeks"
        table = source(1, "pay.md", row)
        (statement,) = verify(
            "| Service | Full pay |\n|---|---|\n| Under 1 year | up to 4 weeks [pay.md] |", [table]
        )
        marked = [row[start:end] for start, end in statement.proofs[0].marks]
        self.assertEqual(marked, ["Under 1 year", "up to 4 weeks"])

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

    def test_a_row_of_a_pdf_is_read_with_its_header_and_alone(self):
        self.assert_verdicts_in(
            SAFETY,
            "supported",
            "A continuous bell means fire",
            "A Class B vessel carries four life rafts",
            "Fleece jackets are replaced every 24 months",
            "Explosives are not carried on any vessel",
            "Water must never be used on burning oil, fuel or paint",
        )
        self.assert_verdicts_in(
            SAFETY,
            "not_found",
            "A continuous bell means person overboard",
            "A Class A vessel carries four life rafts",
            "Fleece jackets are replaced every 36 months",
            "Water may be used on burning oil, fuel or paint",
        )

    def test_numbers_that_follow_from_the_statement_or_the_source_agree(self):
        code = source(
            8,
            "code.md",
            "Format version numbers start at 1. There are four test harnesses, each maintained separately "
            "from the others. The log was added with version 3.7.0 (2010-07-21). The source code is over 35% "
            "comment. The page size may be changed in journal mode only.",
        )
        self.assert_verdicts_in(
            code,
            "supported",
            "To change the page size, switch to journal mode first",
            "Each of the four test harnesses is maintained separately from the other three",
            "The log was added in July 2010",
            "More than 33 % of the source code is comment",
        )
        self.assert_verdicts_in(
            code,
            "not_found",
            "More than 50 % of the source code is comment",
            "Each of the five test harnesses is maintained separately from the other four",
            "The log was added in July 2012",
        )

    def test_numbers_that_stand_beside_letters_in_order_belong_to_them(self):
        self.assert_verdicts_in(SAFETY, "supported", "On Class B everyone is counted within ten minutes")
        self.assert_verdicts_in(SAFETY, "not_found", "On Class B everyone is counted within 15 minutes")

    def test_a_number_of_a_sentence_that_says_less_of_the_statement_is_another_one(self):
        self.assert_verdicts_in(SAFETY, "supported", "The office will answer you on extension 3100")
        self.assert_verdicts_in(SAFETY, "not_found", "Extension 2200 answers for the office")

    def test_synonyms_and_other_forms_are_the_same_words(self):
        self.assert_verdicts_in(
            SAFETY, "supported", "Seafarers back after more than 28 days require a new medical examination"
        )
        self.assert_verdicts_in(
            FRIST,
            "supported",
            "Den vollen Anspruch erwirbt man, wenn das Arbeitsverhältnis sechs Monate bestanden hat",
            "Der Arbeitgeber muss eine Bescheinigung aushändigen",
        )
        self.assert_verdicts_in(
            FRIST, "not_found", "Den vollen Anspruch erwirbt man nach drei Monaten im Arbeitsverhältnis"
        )

    def test_bounds_and_units_may_be_put_in_other_words(self):
        self.assert_verdicts_in(
            SAFETY,
            "supported",
            "Phone your manager at least one hour before your shift begins",
            "A waterproof coat is replaced after three years",
            "A day at sea lasts no longer than 12 hours",
        )
        self.assert_verdicts_in(
            SAFETY,
            "not_found",
            "Phone your manager at most one hour before your shift begins",
            "A day at sea may exceed 12 hours",
        )

    def test_what_is_left_out_is_excluded(self):
        self.assert_verdicts_in(SAFETY, "supported", "Overtime and sea bonus do not count towards full pay")
        self.assert_verdicts_in(SAFETY, "not_found", "Overtime and sea bonus are included in full pay")

    def test_the_year_of_a_date_is_no_rival_of_an_edition(self):
        self.assert_verdicts_in(
            SAFETY, "supported", "The manual takes effect on 1 January 2026 and is edition 2026.1"
        )

    def test_a_verb_is_not_its_homonym_that_has_an_opposite(self):
        self.assert_verdicts_in(SAFETY, "supported", "This course lasts 6 weeks")

    def test_capitals_of_headings_make_no_names(self):
        found = source(7, "u.md", "Staff Uniforms\n\nThey are issued free of charge at the clothing store.")
        self.assert_verdicts_in(found, "supported", "Uniforms are free of charge at the clothing store")

    def test_a_text_in_capitals_is_compared_like_any_other(self):
        found = source(7, "l.txt", "USING THIS FORM DOES NOT CREATE AN EMPLOYMENT CONTRACT OF ANY KIND.")
        self.assert_verdicts_in(
            found, "supported", "The use of this form does not create an employment contract"
        )
        self.assert_verdicts_in(found, "not_found", "Using this form creates an employment contract")

    def test_a_denial_may_be_at_another_place_of_the_sentence(self):
        found = source(7, "l.txt", "No trademark or patent rights held by the owner are waived by this form.")
        self.assert_verdicts_in(
            found, "supported", "The form does not waive patents or trademark rights of the owner"
        )
        plan = source(7, "p.txt", "Auf dem Kai sind Fahrräder nicht erlaubt. Roller sind dort erlaubt.")
        self.assert_verdicts_in(plan, "supported", "Auf dem Kai sind keine Fahrräder zulässig")

    def test_a_name_may_be_part_of_a_compound(self):
        found = source(7, "t.txt", "p7zip is the command-line tools of 7-Zip, ported to POSIX-like systems.")
        self.assert_verdicts_in(
            found, "supported", "p7zip brings the command-line tools of 7-Zip to systems like POSIX"
        )

    def test_a_condition_keeps_its_negation(self):
        found = source(8, "o.md", "Nobody enters if the meter shows less than 20.6 per cent oxygen.")
        self.assert_verdicts_in(
            found, "supported", "Nobody may go in when the meter shows less than 20.6 % oxygen"
        )
        self.assert_verdicts_in(
            found, "not_found", "Anybody enters if the meter shows less than 20.6 per cent oxygen"
        )

    def test_many_comparisons_in_one_sentence_end(self):
        text = "nobody may take more of 3 " * 3_000
        self.assertEqual(len(tokens(text)), 4 * 3_000)

    def test_a_noun_that_the_source_does_not_have_is_not_found(self):
        self.assert_verdicts_in(
            FAIRS,
            "not_found",
            "Refunds are paid within seven days by registered courier",
            "Refunds are paid within seven days, and the company sends flowers",
            "The travel desk approves up to 30 per cent more with the signature of a lawyer",
        )
        self.assert_verdicts_in(
            FRIST, "not_found", "Der Arbeitgeber muss dem Betriebsrat eine Bescheinigung aushändigen"
        )

    def test_other_words_alone_mark_nothing_but_contradict_together(self):
        self.assert_verdicts_in(
            FAIRS,
            "supported",
            "If a trade fair breaks the price limit, the travel desk can allow 30 per cent more on request",
        )
        self.assert_verdicts_in(
            FAIRS,
            "not_found",
            "The Head of People appoints an investigator with a law degree from abroad",
            "On form HR-07 an investigator is appointed by the travel desk",
        )

    def test_a_difference_may_be_worked_out(self):
        self.assert_verdicts_in(
            FARES, "supported", "An adult pays £28 in summer, 6 more than the 22 in winter"
        )
        self.assert_verdicts_in(
            FARES, "not_found", "An adult pays £28 in summer, 9 more than the 22 in winter"
        )

    def test_thousands_may_be_shortened(self):
        site = source(9, "i.md", "Any site with fewer than 100K hits per day should work fine.")
        self.assert_verdicts_in(site, "supported", "Sites with fewer than 100,000 hits per day work fine")
        self.assert_verdicts_in(site, "not_found", "Sites with fewer than 10,000 hits per day work fine")

    def test_a_time_may_be_put_in_another_unit(self):
        self.assert_verdicts_in(
            FAIRS,
            "supported",
            "You get your refund within a week",
            "Stays of half a year need a permit",
            "Rosters are published four weeks ahead",
        )
        self.assert_verdicts_in(
            FAIRS, "not_found", "Stays of half an hour need a permit", "You get your refund within a month"
        )

    def test_a_condition_denies_nothing_of_what_follows(self):
        self.assert_verdicts_in(
            FAIRS, "supported", "During trade fairs the travel desk approves 30 per cent more"
        )

    def test_a_cell_belongs_to_its_label_and_to_the_first_cell_of_its_row(self):
        self.assert_verdicts_in(
            FARES,
            "supported",
            "In summer, an adult pays £28",
            "The night allowance is approved by the Duty Manager",
        )
        self.assert_verdicts_in(
            FARES,
            "not_found",
            "In winter, an adult pays £28",
            "In summer, a child pays £28",
            "The night allowance is approved by the Technical Director",
        )

    def test_the_items_of_a_denied_list_are_denied(self):
        self.assert_verdicts_in(FAIRS, "not_found", "The policy must require personal information")
        self.assert_verdicts_in(
            FAIRS, "supported", "The policy must never require personal information from anyone"
        )

    def test_a_role_has_no_synonyms(self):
        self.assert_verdicts_in(FAIRS, "not_found", "The investigator is appointed by the Managing Director")
        self.assert_verdicts_in(FAIRS, "supported", "The investigator is appointed by the Head of People")

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
        unclear = "1 statement in other words: compare it with its source"
        self.assertEqual(tally(["quoted", "not_found"], unclear=1).summary, unclear)
        both = tally(["quoted", "not_found", "not_found"], unclear=1)
        self.assertEqual(both.summary, f"1 of 3 statements was not found in its source; {unclear}")
        self.assertEqual((both.found, both.missing, both.cited), (1, 1, 3))

    def test_places_move_with_what_is_left_out_and_added_before_them(self):
        place = after_edits([(5, 10, 0), (12, 12, 3)])
        self.assertEqual([place(old) for old in (0, 5, 7, 10, 12, 13)], [0, 5, 5, 5, 7, 11])
