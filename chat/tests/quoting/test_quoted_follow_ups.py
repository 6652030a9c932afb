"""Follow-up questions that are answered by quotations, and the questions to ask next."""

import asyncio

from chat.llm.chat_model import Prompt
from chat.quoting.questions.question import Question, has_mark, without_contrasted
from chat.quoting.quoted_answer import ADDED_MISSING
from chat.quoting.quoting_model import QuotingModel, quote, search_query
from chat.requests import EarlierMessage
from chat.tests.quoting_case import QuotingCase
from chat.tests.sources import source
from history.tally import UNSURE, Grade


class FollowUpTests(QuotingCase):
    def test_a_follow_up_without_a_subject_is_answered_too(self):
        rows = "\n".join(f"Port: Town {number}; Phone: {number}77; Opens: 09:30" for number in range(30))
        leave = source(1, "a.md", "Days of leave are carried until 31 March. " * 20, score=0.9)
        sources = [leave, source(2, "b.csv", rows, score=0.8)]
        answer = self.answer("When must carried days be used? And then?", "…" * 2_000, sources=sources)
        self.assertIn("31 March", answer)

    def test_a_follow_up_is_answered_in_its_context(self):
        answer = self.answer("And until when do I use it?", "How much annual leave is there?")
        self.assertIn(
            "> Annual leave is taken between 1 January and 31 December. Boots are cleaned weekly. [", answer
        )

    def test_wishes_about_the_form_of_an_answer_are_not_part_of_the_question(self):
        asked, earlier = "And until when do I use it?", "How much annual leave is there?"
        query = search_query(
            f"{asked} Keep it short.", [EarlierMessage("user", f"{earlier} Answer as JSON.")]
        )
        self.assertEqual(query.text, f"{earlier} {asked}")
        self.assertEqual(
            self.answer(f"{asked} Answer in one sentence.", f"Be brief. {earlier}"),
            self.answer(asked, earlier),
        )

    def test_a_follow_up_depends_on_the_last_self_contained_question(self):
        earlier = [EarlierMessage("user", text) for text in ("How much leave is there?", "And for crews?")]
        query = asyncio.run(QuotingModel().search_query("What if I was ill?", earlier))
        self.assertEqual(query.text, "How much leave is there? What if I was ill?")

    def test_a_question_whether_something_exists_is_self_contained(self):
        earlier = [EarlierMessage("user", "How much leave do I get?")]
        for question, query in (
            ("Is there a company gym?", "Is there a company gym?"),
            ("How do I get there by bus?", "How much leave do I get? How do I get there by bus?"),
        ):
            self.assertEqual(asyncio.run(QuotingModel().search_query(question, earlier)).text, query)

    def test_the_last_question_has_more_weight_than_its_context(self):
        both = [
            source(1, "a.md", "Annual leave is taken in summer."),
            source(2, "b.md", "Boots are cleaned weekly."),
        ]
        answer = self.answer("And the boots?", "When is leave taken?", sources=both)
        self.assertIn("Boots", answer.split("> ")[1])

    def test_suggestions_relate_to_the_question_or_its_chapter(self):
        text = "Refunds are paid within 30 days of the claim to the account. " * 3
        claim = source(1, "a.md", f"Claim expenses within 30 days. {text}", heading="Claiming")
        lost = source(2, "a.md", f"Lost receipts: {text}", heading="Claiming › Lost receipts")
        freight = source(3, "b.md", f"Goal three: {text}", heading="Goal three")
        prompt = Prompt("By when do I claim expenses?", [], [claim, lost, freight], 0.3, fit=6.0)
        asked = asyncio.run(QuotingModel().followups(prompt, "Claim expenses within 30 days. [a.md]"))
        self.assertEqual(len(asked), 1)
        self.assertIn("receipts", asked[0])

    def test_a_follow_up_keeps_the_subject_of_the_previous_question(self):
        notes = source(1, "meetings.md", "Notice what has changed, and give much notice to it.", score=0.9)
        sabbatical = source(2, "sabbatical.md", "Tell your team 4 weeks before a sabbatical.", score=0.9)
        answer = self.answer(
            "how much notice?", "When can I take a sabbatical?", sources=[notes, sabbatical], fit=6.0
        )
        self.assertIn("4 weeks", answer.split("> ")[1])

    def test_a_question_for_a_form_can_follow_one_for_a_time(self):
        text = "Claims for a delay are accepted for two months on form CS-04."
        before = "When are claims for a delay paid?"
        answer = self.answer("Which form is it?", before, sources=[source(1, "a.md", text)], fit=8.0)
        self.assertTrue(answer.startswith(f"> {text}"), answer)

    def test_a_german_follow_up_uses_its_context_in_the_language_of_the_documents(self):
        rates = source(
            1,
            "handbook.md",
            "Overtime on a Saturday is paid at 1.5 times, on a Sunday at 2 times the rate.",
            heading="Overtime",
        )
        rise = source(
            1, "handbook.md", "Staff have 27 days of annual leave. After five years it rises to 30 days."
        )
        abroad = source(
            1, "abroad.md", "You apply on form PF-27, which the manager approves.", heading="Working abroad"
        )
        for before, question, passage, said in (
            ("Wie hoch ist der Zuschlag für Überstunden am Sonntag?", "Und am Samstag?", rates, "1.5 times"),
            ("Wie viele Urlaubstage habe ich?", "Und nach fünf Jahren?", rise, "rises to 30 days"),
            ("Kann ich aus dem Ausland arbeiten?", "Wo muss ich das beantragen?", abroad, "form PF-27"),
        ):
            pay = source(
                2, "pay.md", "Pay day is the 25th, on a Saturday or Sunday the day before.", score=0.5
            )
            answer = self.answer(question, before, sources=[passage, pay], fit=5.0)
            self.assertIn(said, answer.split("> ")[1], answer)

    def test_other_subjects_of_a_cited_page_are_suggested(self):
        page, rule = "handbook.pdf#page=3", "Annual leave is taken between 1 January and 31 December."
        sources = [
            source(1, page, rule, heading="4 Leave › 4.1 The rule"),
            source(
                2, page, 4 * "Sick leave is not annual leave. ", heading="4 Leave › 4.2 Long-term sickness"
            ),
            source(3, page, "It may be carried over.", heading="4 Leave › 4.1 The rule"),
        ]
        prompt = Prompt("When is annual leave taken?", [], sources, 0.3)
        questions = asyncio.run(QuotingModel().followups(prompt, f"> {rule} [{page}]"))
        self.assertEqual(questions, ["What should I know about long-term sickness?"])

    def test_suggestions_relate_to_the_question_and_are_in_its_language(self):
        rule, loss = (
            "Annual leave is 27 days a year.",
            4 * "After the loss of a baby, both parents are away. ",
        )
        other = "00000000-0000-0000-0000-000000000002"
        unpaid = 4 * "Unpaid leave is agreed with the manager. "
        sources = [
            source(1, "a.md", rule, heading="Days"),
            source(2, "b.md", loss, heading="Loss of a baby", document_id=other),
            source(3, "b.md", unpaid, heading="Unpaid leave", document_id=other),
        ]

        def asked_next(question):
            return asyncio.run(
                QuotingModel().followups(Prompt(question, [], sources, 0.3), f"> {rule} [a.md]")
            )

        self.assertEqual(
            asked_next("How much annual leave do I get?"), ["What should I know about unpaid leave?"]
        )
        self.assertEqual(asked_next("Wie viele Urlaubstage habe ich?"), [])


RULE = source(1, "handbook.md", "Carried days of leave must be used by 31 March.", heading="Leave", score=0.9)
ASKED = "When must carried days of leave be used?"


class AddedTermTests(QuotingCase):
    """Follow-up questions that add a term, such as “and for crews?”."""

    def test_the_previous_rule_does_not_answer_for_a_term_that_it_lacks(self):
        for question in ("and for interns?", "What about interns?", "And interns?"):
            answer = self.answer(question, ASKED, sources=[RULE], fit=6.0)
            self.assertTrue(answer.startswith(f"{UNSURE}\n\n{ADDED_MISSING}\n\n"), answer)
            self.assertIn("31 March", answer)

    def test_the_same_applies_to_a_german_question(self):
        answer = self.answer("und für Praktikanten?", ASKED, sources=[RULE], fit=6.0)
        self.assertTrue(answer.startswith(f"{UNSURE}\n\n{ADDED_MISSING}\n\n"), answer)

    def test_the_sentence_about_the_added_term_answers(self):
        interns = source(2, "b.md", "Interns do not carry leave over to the next year.", score=0.85)
        answer = self.answer("and for interns?", ASKED, sources=[RULE, interns], fit=6.0)
        self.assertIn("Interns do not carry", answer.split("> ")[1])
        self.assertNotIn(ADDED_MISSING, answer)
        self.assertFalse(answer.startswith(UNSURE), answer)

    def test_a_passage_that_mentions_the_term_is_not_said_to_lack_it(self):
        interns = source(2, "b.md", "Interns wear a badge on leave days.", score=0.85)
        answer = self.answer("and for interns?", ASKED, sources=[RULE, interns], fit=6.0)
        self.assertNotIn(ADDED_MISSING, answer)
        self.assertFalse(answer.startswith("> Carried days"), answer)

    def test_a_follow_up_with_a_clause_of_its_own_adds_no_term(self):
        for question in ("and if I was ill?", "and when is it paid?", "Which form is it?", "and then?"):
            self.assertEqual(Question(question, ASKED, ASKED).added, frozenset(), question)
        self.assertEqual(Question("and for the staff on board?", ASKED, ASKED).added, {"board"})
        self.assertEqual(Question("and for carried leave?", ASKED, ASKED).added, frozenset())

    def test_a_number_or_letter_of_the_added_term_must_be_in_the_answer(self):
        limits = source(
            1,
            "safety.md",
            "Class: A; Wind limit for departure: 45 knots\nClass: B; Wind limit for departure: 35 knots",
            heading="Wind limits",
            score=0.9,
        )
        asked = "What is the wind limit for departure on Class A?"
        known = self.answer("and for Class B?", asked, sources=[limits], fit=6.0)
        self.assertIn("35 knots", known)
        self.assertFalse(known.startswith(UNSURE), known)
        answer = self.answer("and for Class D?", asked, sources=[limits], fit=6.0)
        self.assertTrue(answer.startswith(UNSURE), answer)

    def test_a_synonym_of_the_added_term_alone_is_no_answer(self):
        fires = source(
            1,
            "safety.md",
            "Type of fire: Oil, fuel, paint; Extinguisher to use: Foam, dry powder; Never: Water",
            heading="Fire",
            score=0.9,
        )
        with_synonym = Prompt(
            "and for a gas fire?",
            [EarlierMessage("user", "Which extinguisher do I use for an electrical fire?")],
            [fires],
            0.3,
            fit=6.0,
            synonyms={"gas": ["fuel"]},
        )
        self.assertEqual(quote(with_synonym).grade, Grade.CLOSEST)

    def test_the_answer_need_not_have_the_word_that_the_term_replaces(self):
        together = source(1, "a.md", "This document explains maternity and paternity leave.", score=0.9)
        own = source(
            2,
            "a.md",
            "Partners have four weeks at full pay after the birth.",
            heading="Paternity and partner leave",
            score=0.85,
        )
        answer = self.answer(
            "and paternity leave?", "How long is maternity leave?", sources=[together, own], fit=8.0
        )
        self.assertFalse(answer.startswith(UNSURE), answer)
        self.assertIn("four weeks", answer.split("> ")[1])

    def test_the_heading_may_name_what_the_rule_is_about(self):
        rule = source(
            1,
            "abroad.md",
            "Shore staff may apply. The arrangement is not open to seagoing staff.",
            heading="Who may work from abroad",
            score=0.9,
        )
        asked = "How many days may I work from abroad?"
        answer = self.answer("what about seagoing staff?", asked, sources=[rule], fit=6.0)
        self.assertFalse(answer.startswith(UNSURE), answer)

    def test_a_rule_about_the_term_and_half_of_the_question_is_only_possible(self):
        leave = source(1, "leave.md", "Crews have 29 days of leave.", heading="Annual leave", score=0.9)
        prompt = Prompt(
            "and for crews?", [EarlierMessage("user", "How long is maternity leave?")], [leave], 0.3, fit=8.0
        )
        self.assertEqual(quote(prompt).grade, Grade.LIKELY)

    def test_a_word_beside_a_repeated_one_replaces_the_earlier_word(self):
        for question, earlier, kept in (
            ("and paternity leave?", "How long is maternity leave?", "How long is leave?"),
            ("And a week ticket?", "How much does a day ticket cost?", "How much does a ticket cost?"),
            ("and the safety helmets?", "How old are safety shoes today?", "How old are safety today?"),
            ("and for crews?", "How much leave is there?", "How much leave is there?"),
            ("and when is it paid?", "How long is maternity leave?", "How long is maternity leave?"),
        ):
            self.assertEqual(without_contrasted(question, earlier), kept)

    def test_numbers_and_letters_may_be_within_a_range(self):
        for mark, text, has in (
            ("C", "Grades A to D: 4 weeks", True),
            ("E", "Grades A to D: 4 weeks", False),
            ("4", "3–5 years: 16 weeks", True),
            ("5", "After five years", True),
            ("7", "3 to 5 years: 16 weeks", False),
        ):
            self.assertEqual(has_mark(mark, text), has, text)
