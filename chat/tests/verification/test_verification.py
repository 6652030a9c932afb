"""Statements of an answer against the sources that they cite."""

from django.test import SimpleTestCase

from chat.statements import after_edits, from_rows, marks_by_rank, to_api, to_rows
from chat.tests.sources import source
from chat.tests.verdict_case import BOATS, FAIRS, FRIST, LEAVE, SAFETY, URLAUB, VerdictCase
from chat.verification import verify
from chat.verification.answer_statements import MAX_STATEMENTS
from chat.verification.terms.facts import language_of
from history.tally import tally


class VerdictTests(VerdictCase):
    def test_words_of_the_source_are_quoted_regardless_of_gaps(self):
        self.assert_verdict(
            "quoted",
            "Staff may carry over five days until 31 March. [a.md#x]",
            "> Staff may carry **over five** days until 31 March [a.md#x].",
            "Boats sail at nine o'clock daily [b.md]",
        )

    def test_the_number_of_a_list_item_is_not_part_of_its_statement(self):
        answer = "1. Staff may carry over five days [a.md#x]\n2. Boats sail at ten [b.md]\n"
        said = [answer[each.start : each.end] for each in verify(answer, (LEAVE, BOATS))]
        self.assertEqual(said, ["Staff may carry over five days", "Boats sail at ten"])

    def test_yes_or_no_before_a_cited_statement_is_not_a_separate_statement(self):
        cited = "Staff may carry over five days until 31 March [a.md#x]."
        for word in ("Yes", "**Ja**", "nein"):
            (found,) = verify(f"{word}. {cited}", (LEAVE,))
            self.assertEqual(found.verdict, "quoted", word)
        found = verify(f"Yes. Ask Kim. {cited}", (LEAVE,))
        self.assertEqual([each.verdict for each in found], ["uncited", "uncited", "quoted"])

    def test_other_words_for_the_same_are_supported(self):
        self.assert_verdict(
            "supported",
            "You can carry over 5 days of leave until 31 March [a.md#x].",
            "The allowance for meals is 25 pounds [a.md#x].",
            "Tom Hale runs the office in Sennick harbour [b.md].",
            "Der jährliche Urlaub beträgt mindestens 24 Werktage [c.md].",
        )

    def test_other_wording_is_unclear_and_another_subject_is_reported(self):
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

    def test_a_different_fact_contradicts_only_nearly_literal_statements(self):
        (literal,) = verify("The meal allowance is £30 [a.md#x]", (LEAVE,))
        (free,) = verify("Anna Berg plans what people eat on journeys for £30 [a.md#x]", (LEAVE,))
        self.assertEqual((literal.verdict, literal.unclear), ("not_found", False))
        self.assertEqual((free.verdict, free.unclear), ("not_found", True))

    def test_another_subject_is_reported_only_without_common_words(self):
        for statement, unclear in (
            ("The manager of the swimming pool sells melons [a.md#x]", True),
            ("Swimming pools have deep water [a.md#x]", False),
        ):
            with self.subTest(statement):
                (found,) = verify(statement, (LEAVE,))
                self.assertEqual((found.verdict, found.unclear), ("not_found", unclear))

    def test_identifiers_and_options_are_names(self):
        manual = source(
            9,
            "m.md",
            "Set `SKIP_CLAMD=y` to disable the virus scanner. The option --keep prevents that the file is "
            "removed. Files that end in .txz are renamed to .tar.",
        )
        self.assert_verdicts_in(
            manual,
            "supported",
            "You set SKIP_CLAMD=y to disable the virus scanner",
            "With --keep the file is not removed",
        )
        self.assert_verdicts_in(
            manual,
            "not_found",
            "Set SKIP_FTS=y to disable the virus scanner",
            "The option --stdout prevents that the file is removed",
            "Files that end in .txz are renamed to .zip",
        )

    def test_how_often_and_whether_within_must_agree(self):
        calls = source(
            9,
            "c.md",
            "The calls are run quarterly. Staff have 38 days of leave, inclusive of public holidays.",
        )
        self.assert_verdicts_in(calls, "supported", "Calls are always run quarterly")
        self.assert_verdicts_in(
            calls,
            "not_found",
            "The calls are run monthly",
            "Staff have 38 days of leave in addition to public holidays",
        )

    def test_german_cases_determine_the_subject(self):
        law = source(
            9,
            "g.md",
            "Der Arbeitgeber hat die Niederschrift dem Arbeitnehmer auszuhändigen. Beschäftigte sind "
            "verpflichtet, dem Verwalter ihre Verhinderung mitzuteilen. Die Kündigung kann von der Behörde "
            "für zulässig erklärt werden. Die Regierung erlässt dazu mit Zustimmung des Bundesrates "
            "Vorschriften.",
        )
        self.assert_verdicts_in(
            law,
            "supported",
            "Dem Arbeitnehmer hat der Arbeitgeber die Niederschrift auszuhändigen",
            "Eine Kündigung kann von der Behörde für zulässig erklärt werden",
        )
        self.assert_verdicts_in(
            law,
            "not_found",
            "Der Arbeitnehmer hat die Niederschrift dem Arbeitgeber auszuhändigen",
            "Der Verwalter ist verpflichtet, den Beschäftigten ihre Verhinderung mitzuteilen",
            "Die Kündigung kann vom Bundesrat für zulässig erklärt werden",
        )

    def test_a_denial_that_the_source_does_not_have_is_not_supported(self):
        ports = source(
            9,
            "p.md",
            "Service: IMAPS; Protocol: TCP; Port: 993\nService: SMTP; Protocol: TCP; Port: 25\n\n"
            "Claims older than 90 days are refused. The rest between two shifts is uninterrupted.",
        )
        for statement in (
            "Port 993 is not open for IMAPS",
            "Claims more than 90 days old are not turned down",
        ):
            with self.subTest(statement):
                (found,) = verify(f"{statement} [p.md]", (ports,))
                self.assertEqual(found.verdict, "not_found")
        self.assert_verdicts_in(
            ports,
            "supported",
            "Claims more than 90 days old are turned down",
            "Claims more than 90 days old are not accepted",
        )

    def test_an_opposite_that_denies_counts_in_any_sentence(self):
        rest = source(
            9,
            "r.md",
            "After five years staff take a paid sabbatical. The sabbatical is a time of exploration.",
        )
        (found,) = verify("The sabbatical is unpaid [r.md]", (rest,))
        self.assertEqual(found.verdict, "not_found")

    def test_not_until_after_is_before(self):
        board = source(
            9, "b.md", "New members are not included in votes until after onboarding is completed."
        )
        self.assert_verdicts_in(
            board, "supported", "New members are not included in votes before onboarding is completed"
        )

    def test_who_acts_is_not_when_or_how(self):
        board = source(
            9, "b.md", "Requests are reviewed and confirmed in mid October at the start of a week."
        )
        self.assert_verdicts_in(
            board, "supported", "Requests are confirmed by the start of a week in October"
        )

    def test_a_statement_with_words_of_two_sentences_is_unclear(self):
        ports = source(
            9,
            "p.md",
            "The oldest harbour ever built in the north is at Carrow. The past record was held by Sennick.",
        )
        (found,) = verify("Sennick is the oldest harbour ever built in the north [p.md]", (ports,))
        self.assertTrue(found.verdict == "not_found")

    def test_an_exclusion_in_german_is_not_a_permission(self):
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

    def test_what_fell_did_not_rise(self):
        for content, same, opposite in (
            (
                "The fee rose by 15% on 1 March.",
                "On 1 March the fee was increased by 15%",
                "The fee fell by 15% on 1 March",
            ),
            (
                "Die Gebühr stieg am 1. März um 15 %.",
                "Die Gebühr ist am 1. März um 15 % gestiegen",
                "Die Gebühr sank am 1. März um 15 %",
            ),
        ):
            self.assert_verdicts_in(source(1, "f.md", content), "supported", same)
            self.assert_verdicts_in(source(1, "f.md", content), "not_found", opposite)

    def test_a_person_whose_name_is_a_verb_is_no_other_person(self):
        found = source(1, "f.md", "The treasurer of the club is Rose Miller.")
        self.assert_verdicts_in(found, "supported", "Rose Miller is the treasurer of the club")
        self.assert_verdicts_in(found, "not_found", "Lily Miller is the treasurer of the club")

    def test_a_statement_in_the_other_language_is_never_called_another_subject(self):
        (found,) = verify("Every year you have at least 24 days of holiday [c.md]", (URLAUB,))
        self.assertTrue(found.verdict == "supported" or found.unclear)

    def test_another_name_is_not_found(self):
        self.assert_verdict(
            "not_found",
            "Ask your manager, Tom Hale [a.md#x].",
            "Anna Berg runs the office in Sennick [b.md].",
        )

    def test_a_negation_on_one_side_only_is_not_found(self):
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

    def test_no_in_the_cell_of_a_row_denies_nothing_in_the_next_cell(self):
        rooms = source(
            1,
            "rooms.xlsx",
            "Room: R1; Seats: 6; Projector: yes; Floor: 1\nRoom: R3; Seats: 10; Projector: no; Floor: blue\n"
            "Room: R4; Seats: 12; Projector: yes; Floor: 2\nRoom: R6; Seats: 16; Projector: no; Floor: 3",
        )
        head = "| Room | Seats | Projector | Floor |\n|---|---|---|---|\n"
        for row, verdict in (
            ("R3 | 10 | no | blue", "supported"),
            ("R6 | 16 | no | 3", "supported"),
            ("R4 | 12 | no | 2", "not_found"),
            ("R6 | no | 16 | 3", "not_found"),
        ):
            with self.subTest(row=row):
                (statement,) = verify(f"{head}| {row} [rooms.xlsx] |", [rooms])
                self.assertEqual(statement.verdict, verdict)

    def test_the_marks_of_a_row_end_with_the_small_words_of_its_cells(self):
        row = "Case: Public duties (jury service); Days: As long as required, pay made up"
        (statement,) = verify(
            "| Case | Days |\n|---|---|\n| Public duties (jury service) | As long as required, pay made up "
            "[a.md] |",
            [source(1, "a.md", row)],
        )
        marked = [row[start:end] for start, end in statement.proofs[0].marks]
        self.assertEqual(marked, ["Public duties (jury service)", "As long as required, pay made up"])

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

    def test_what_is_left_out_is_excluded(self):
        self.assert_verdicts_in(SAFETY, "supported", "Overtime and sea bonus do not count towards full pay")
        self.assert_verdicts_in(SAFETY, "not_found", "Overtime and sea bonus are included in full pay")

    def test_a_verb_is_not_confused_with_a_homonym_that_has_an_opposite(self):
        self.assert_verdicts_in(SAFETY, "supported", "This course lasts 6 weeks")

    def test_capitals_of_headings_are_not_names(self):
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

    def test_single_other_words_mark_nothing_but_contradict_together(self):
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

    def test_a_negated_condition_does_not_negate_its_consequence(self):
        self.assert_verdicts_in(
            FAIRS, "supported", "During trade fairs the travel desk approves 30 per cent more"
        )

    def test_the_items_of_a_denied_list_are_denied(self):
        self.assert_verdicts_in(FAIRS, "not_found", "The policy must require personal information")
        self.assert_verdicts_in(
            FAIRS, "supported", "The policy must never require personal information from anyone"
        )

    def test_a_role_has_no_synonyms(self):
        self.assert_verdicts_in(FAIRS, "not_found", "The investigator is appointed by the Managing Director")
        self.assert_verdicts_in(FAIRS, "supported", "The investigator is appointed by the Head of People")

    def test_a_fact_belongs_to_its_own_clause(self):
        rules = source(
            10,
            "j.md",
            "The firm pays 60% of the rent and the tenant pays the other 40%. "
            "Pensioners get ten vouchers for the spring market, and four vouchers for the autumn market. "
            "A primary contact answers within eight hours. A secondary contact answers "
            "within two days.",
        )
        self.assert_verdicts_in(rules, "supported", "The firm pays 60% of the rent and the tenant pays 40%")
        self.assert_verdicts_in(
            rules,
            "not_found",
            "The firm pays 40% of the rent and the tenant pays 60%",
            "Pensioners get four vouchers for the spring market",
            "A secondary contact answers within eight hours",
        )

    def test_an_item_of_a_list_does_not_support_another_label(self):
        phases = source(
            11,
            "k.md",
            "There are two phases.\n\n- Trial - New rooms are tested by guests of the house.\n\n"
            "- Closing - Broken lamps are mended and the doors are locked.",
        )
        self.assert_verdicts_in(phases, "supported", "In closing broken lamps are mended")
        self.assert_verdicts_in(phases, "not_found", "In trial broken lamps are mended")

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

    def test_the_citation_of_a_row_belongs_to_all_its_sentences(self):
        answer = "| What | Until |\n|---|---|\n| Carried days lapse. Boats | They sail on 32 March [a.md#x] |"
        self.assertEqual(self.verdicts(answer), ["quoted", "not_found"])

    def test_beyond_the_limit_nothing_is_supported(self):
        answer = "Leave is planned in March [a.md#x]. " * (MAX_STATEMENTS + 5)
        found = self.verdicts(answer)
        self.assertEqual((len(found), found[-2], found[-1]), (MAX_STATEMENTS + 1, "quoted", "not_found"))

    def test_words_whose_clause_is_denied_are_not_quoted(self):
        for content, statement in (
            (
                "Der Arbeitgeber zahlt die Kosten der Brille nicht.",
                "Der Arbeitgeber zahlt die Kosten der Brille",
            ),
            (
                "Der Vertrag verlängert sich\nautomatisch nicht. Er endet.",
                "Der Vertrag verlängert sich automatisch",
            ),
            ("Die Kasse übernimmt die Kosten in keinem Fall.", "Die Kasse übernimmt die Kosten"),
            ("Smoking on the terrace is allowed at no time.", "Smoking on the terrace is allowed"),
            ("Smoking on the terrace is allowed nowhere.", "Smoking on the terrace is allowed"),
            ("It is not the case that overtime is paid on Sundays.", "Overtime is paid on Sundays"),
            ("Die Kasse zahlt die Kosten der Brille nicht mehr.", "Die Kasse zahlt die Kosten der Brille"),
            ("Die Kasse zahlt die Kosten nicht (siehe § 4).", "Die Kasse zahlt die Kosten"),
            ("Die Kasse zahlt die Kosten nicht [2].", "Die Kasse zahlt die Kosten"),
            ("Die Kasse zahlt die Kosten (der Brille) nicht.", "Die Kasse zahlt die Kosten"),
        ):
            self.assert_verdicts_in(source(1, "n.md", content), "not_found", statement)

    def test_a_negation_of_other_words_leaves_the_quoted_ones(self):
        for content, statement in (
            ("The company pays for travel costs, but not for meals.", "The company pays for travel costs"),
            ("The company pays for travel costs. Not for meals.", "The company pays for travel costs."),
            ("Bikes are carried on the ferry at no charge.", "Bikes are carried on the ferry"),
            ("The tenant pays the deposit to nobody but the landlord.", "The tenant pays the deposit"),
            ("Die Gebühr wird erstattet, wenn er nicht besteht.", "Die Gebühr wird erstattet"),
            ("Der Antrag ist zu stellen und muss nicht begründet werden.", "Der Antrag ist zu stellen"),
            ("Refunds are paid to members no later than 14 days after.", "Refunds are paid to members"),
            ("You pay the fee of $120 whether you attend or not.", "You pay the fee of $120"),
            ("Der Beitrag ist fällig, ob man teilnimmt oder nicht.", "Der Beitrag ist fällig"),
            ("The company pays the train (the taxi not).", "The company pays the train"),
            ("The company pays the train – the taxi not.", "The company pays the train"),
            ("Members may use the sauna although guests may not.", "Members may use the sauna"),
        ):
            self.assert_verdicts_in(source(1, "n.md", content), "quoted", statement)

    def test_a_passage_of_page_numbers_alone_supports_nothing(self):
        for content in ("Page 3 of 12", "Seite 3 von 12\n\nSeite 4 von 12", "—", ""):
            for title in ("A", ""):
                found = source(1, "p.pdf#page=3", content, title=title)
                self.assert_verdicts_in(found, "not_found", "The meal allowance rises to 30 euros next year")

    def test_a_sentence_beside_the_number_of_its_page_supports_a_statement(self):
        for content in (
            "Invoice 4711 Page 1 of 1 Total amount due for the boiler 300 EUR by 14 May 2026",
            "Page 1 of 2 · Offer 2026-17 · The total amount for the boiler is 300 euros.",
            "Total amount for the boiler: 300 euros Page 1 of 1",
        ):
            found = source(1, "p.pdf#page=1", content)
            self.assert_verdicts_in(found, "supported", "The amount for the boiler is 300 euros in total")
            self.assert_verdicts_in(found, "not_found", "The amount for the boiler is 301 euros in total")

    def test_the_footer_of_a_page_does_not_name_what_its_lines_are_about(self):
        content = "The slipway at Sennick is closed.\nHandbook of Port Ellery Page 3 of 12\nThe office stays."
        found = source(1, "p.pdf#page=3", content)
        self.assert_verdicts_in(found, "not_found", "The slipway at Port Ellery is closed")


class RowsTests(SimpleTestCase):
    def test_statements_survive_being_stored(self):
        found = verify("Carried days lapse [a.md#x]. Nobody knows. Boats sail [b.md].", (LEAVE, BOATS))
        self.assertEqual(from_rows(to_rows(found)), found)

    def test_counts_are_shown_in_one_line(self):
        for verdicts, summary, rest in (
            (["quoted", "supported"], "All citations found in the text", ""),
            (["quoted", "uncited"], "1 statement found in its source", "1 statement cites no source"),
            (
                ["quoted", "supported", "uncited", "uncited"],
                "2 statements found in their sources",
                "2 statements cite no source",
            ),
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
        signed = tally(["quoted", "uncited"], verified={"by": "Ann"})
        self.assertEqual(
            (signed.summary, signed.rest),
            ("1 statement found in its source", "1 statement without a source, confirmed by Ann"),
        )
        both = tally(["quoted", "not_found", "not_found"], unclear=1)
        self.assertEqual(both.summary, f"1 of 3 statements was not found in its source; {unclear}")
        self.assertEqual((both.found, both.missing, both.cited), (1, 1, 3))

    def test_positions_shift_with_text_removed_and_added_before_them(self):
        place = after_edits([(5, 10, 0), (12, 12, 3)])
        self.assertEqual([place(old) for old in (0, 5, 7, 10, 12, 13)], [0, 5, 5, 5, 7, 11])
