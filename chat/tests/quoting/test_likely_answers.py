"""Passages that may answer a question without a model: more than the closest, less than the answer."""

from dataclasses import replace

from chat.llm.chat_model import Prompt
from chat.quoting.confidence import is_likely
from chat.quoting.questions.answer_types import QuotedText
from chat.quoting.questions.question import Question
from chat.quoting.quoted_answer import LIKELY, OTHERS, UNSURE
from chat.quoting.quoting_model import quote
from chat.requests import EarlierMessage
from chat.tests.quoting_case import QuotingCase
from chat.tests.sources import source

RECEIPTS = source(
    1,
    "travel.md#lost",
    "You may sign a declaration on form FN-05, no more than three times a year and for no more than £40.",
    heading="Lost receipts",
    score=0.95,
)
ADVANCES = source(
    2, "travel.md#advances", "An advance is settled with the claim.", heading="Advances", score=0.7
)
QUESTION = "I lost the receipt for a taxi, can I still get my money back?"


class LikelyAnswerTests(QuotingCase):
    def quoted(self, question, *sources, fit=1.5):
        return quote(Prompt(question, [], list(sources), 0.3, fit=fit))

    def test_a_passage_that_the_search_prefers_and_whose_heading_is_about_it_may_answer(self):
        answer = self.answer(QUESTION, sources=[RECEIPTS, ADVANCES], fit=1.5)
        self.assertTrue(answer.startswith(f"{LIKELY}\n\n**Lost receipts**\n\n> You may sign"), answer)

    def test_the_other_passages_are_below_a_separate_line(self):
        texts = self.quoted(QUESTION, RECEIPTS, ADVANCES).texts
        self.assertEqual(texts[1], OTHERS)
        self.assertIn("An advance", texts[2])

    def test_a_passage_among_others_that_the_search_ranks_as_high_is_one_of_the_closest(self):
        other = source(2, "b.md", "A taxi is booked by the office.", heading="Taxis", score=0.94)
        self.assertEqual(self.quoted(QUESTION, RECEIPTS, other).notice, UNSURE)

    def test_a_short_section_is_quoted_whole_if_its_passage_is_the_first(self):
        """The rule that answers may be far from the words of the question."""
        rules = [f"Part {number} of the balcony is kept neat and clean at all times." for number in range(18)]
        section = "\n\n".join([*rules, "No open flame is allowed under the overhangs."])
        balconies = source(1, "rules.md#balconies", section, heading="Balconies", score=0.9)
        garages = source(
            2, "rules.md#garages", section.replace("balcony", "garage"), heading="Garages", score=0.8
        )
        first = self.quoted("May I grill on my balcony?", balconies, garages).texts[0]
        self.assertIn("Part 0", first)
        self.assertIn("open flame", first)

    def test_a_passage_with_a_low_search_score_is_only_one_of_the_closest(self):
        quoted = QuotedText(
            Question("Is the director told?"), ("The director is told at once.", "Letters", "")
        )
        self.assertTrue(is_likely(quoted, score=0.9, lead=0.1))
        self.assertFalse(is_likely(quoted, score=0.2, lead=-0.8))

    def test_a_passage_without_the_requested_kind_of_answer_is_only_one_of_the_closest(self):
        for question in (
            "When do I get money back for a lost taxi receipt?",
            "What is the telephone number for lost taxi receipts?",
            "May I do that for a lost taxi receipt of 700 pounds?",
        ):
            self.assertEqual(self.quoted(question, RECEIPTS, ADVANCES).notice, UNSURE, question)

    def test_a_passage_for_other_people_is_only_one_of_the_closest(self):
        refunds = source(
            1,
            "guide.md",
            "Passengers who lost a taxi receipt sign a declaration for their money.",
            heading="Lost receipts of passengers",
            score=0.95,
        )
        self.assertEqual(self.quoted(QUESTION, refunds, ADVANCES, fit=0.5).notice, UNSURE)

    def test_the_word_here_does_not_have_to_be_named_by_a_passage(self):
        berths = source(1, "a.md", "Barges may lie at the quay for two nights.", heading="Berths", score=0.95)
        for question in (
            "How long can I keep my barge boat here?",
            "How long may I keep the barge boat, please?",
        ):
            quoted = self.quoted(question, berths, fit=0.2)
            self.assertEqual(len(quoted.texts), 1, question)

    def test_one_of_two_words_is_not_the_subject(self):
        meals = source(
            1, "a.md", "Everybody who eats on the terrace pays at once.", heading="Eating", score=0.95
        )
        self.assertEqual(self.quoted("What do badgers eat?", meals, ADVANCES, fit=1.5).notice, UNSURE)

    def test_the_verb_of_a_question_for_a_duration_names_nothing(self):
        text = "Ein Kurs geht über sechs Wochen."
        course = source(1, "kurse.md", text, heading="Kurse", score=0.95)
        quoted = self.quoted("Wie lange dauert ein Kurs?", course)
        self.assertTrue(quoted.is_sure or quoted.is_likely)

    def test_a_synonym_of_a_translation_is_not_enough(self):
        access = source(1, "office.md", "Access is given by the desk.", heading="Access", score=0.9)
        other = source(2, "office.md", "The desk is open from eight to four.", heading="Desk", score=0.6)
        for question, may_answer in (("Gibt es Schließfächer?", False), ("Are there lockers?", True)):
            synonyms = {"locker": ["access"], "lockers": ["access"]}
            quoted = quote(Prompt(question, [], [access, other], 0.3, fit=1.5, synonyms=synonyms))
            self.assertEqual(quoted.is_sure or quoted.is_likely, may_answer, question)

    def test_an_answer_whose_place_the_search_does_not_prefer_is_only_likely(self):
        exception = source(1, "law.md#5", "Young people may work in a bakery at night.", heading="§ 5")
        rule = source(2, "law.md#4", "Nobody under 18 may work between 10 pm and 6 am.", heading="§ 4")
        question = "May young people work at night?"
        for score, is_sure in ((0.3, True), (0.87, False)):
            quoted = self.quoted(question, exception, replace(rule, score=score), fit=6.0)
            self.assertEqual((quoted.is_sure, quoted.is_likely), (is_sure, True))
        self.assertEqual(quoted.texts[1], OTHERS)
        self.assertIn("between 10 pm and 6 am", quoted.texts[2])

    def test_a_place_with_fewer_words_of_the_question_does_not_contest_an_answer(self):
        leave = source(1, "handbook.md", "Shore staff have 27 days of annual leave.", heading="Leave")
        limit = source(2, "b.md", "The limit of five days is for carried leave.", heading="Leave", score=0.88)
        question = "How many days of annual leave do I have?"
        self.assertTrue(self.quoted(question, leave, limit, fit=6.0).is_sure)
        crews = replace(limit, content="Crews have 30 days of annual leave.")
        quoted = self.quoted(question, leave, crews, fit=6.0)
        self.assertTrue(quoted.is_several or not quoted.is_sure)

    def test_a_place_that_gives_the_same_number_supports_an_answer(self):
        handbook = source(1, "a.md", "Salaries arrive on the 25th of each month.", heading="Pay day")
        slide = source(2, "b.md", "Salaries arrive on the 25th, before noon.", heading="Money", score=0.89)
        other = replace(slide, content="Salaries arrive on the 28th, before noon.")
        self.assertTrue(self.quoted("When do salaries arrive?", handbook, slide, fit=6.0).is_sure)
        quoted = self.quoted("When do salaries arrive?", handbook, other, fit=6.0)
        self.assertTrue(quoted.is_several or not quoted.is_sure)

    def test_a_likely_passage_is_not_a_sure_answer(self):
        quoted = self.quoted(QUESTION, RECEIPTS, ADVANCES)
        self.assertFalse(quoted.is_sure)
        self.assertTrue(quoted.is_likely)


CATERING = source(
    1,
    "rooms.md#catering",
    "Lunch for meetings is ordered from the kitchen, which needs a day. Tell the caterers about allergies.",
    heading="Rooms",
    score=0.9,
)


class OnlyPassageTests(QuotingCase):
    def notice(self, question, *sources, fit=1.2):
        return quote(Prompt(question, [], list(sources), 0.3, fit=fit)).notice

    def test_the_only_passage_that_was_found_may_answer_if_it_has_most_of_what_is_named(self):
        question = "May meetings with lunch have allergies and vegans?"
        other = source(2, "b.md", "Meetings end at noon.", heading="Noon", score=0.85)
        self.assertEqual(self.notice(question, CATERING), LIKELY)
        self.assertEqual(self.notice(question, CATERING, other), UNSURE)
        self.assertEqual(self.notice(question, CATERING, fit=0.5), UNSURE)

    def test_the_only_passage_needs_the_names_numbers_and_subject_of_the_question(self):
        for question in (
            "Has lunch for meetings in Whitby allergies?",
            "Has lunch for 30 meetings allergies?",
            "How many euros is lunch for meetings?",
        ):
            self.assertEqual(self.notice(question, CATERING), UNSURE, question)

    def test_a_passage_sure_enough_for_an_answer_may_have_adjacent_words_far_from_each_other(self):
        bikes = source(
            1,
            "travel.md#bikes",
            "A mileage is paid for motorcycles to those who have an insurance for such journeys and who have"
            " asked for it beforehand, at the rate of 24p.",
            heading="Cars and bikes",
            score=1.0,
        )
        cars = source(2, "travel.md#cars", "A car is hired.", heading="Hired cars", score=0.8)
        near = replace(cars, score=0.9)
        question = "What is the mileage rate for motorcycles?"
        self.assertEqual(self.notice(question, bikes, cars, fit=4.0), LIKELY)
        self.assertEqual(self.notice(question, bikes, near, fit=4.0), UNSURE)


class ChosenDocumentTests(QuotingCase):
    def test_of_chosen_documents_the_closest_passage_has_the_amount_that_is_asked_for(self):
        rota = source(
            1, "round.md#rota", "Priya cleans in the third week of each year.", heading="Rota", score=1.0
        )
        price = source(2, "round.md#price", "Members give £7.50 each month.", heading="Members", score=0.1)
        asked = Prompt("What does the rota cost me a year?", [], [rota, price], 0.3, fit=1.5)
        self.assertIn("Priya", quote(asked).texts[0])
        chosen = quote(replace(asked, narrowed=True))
        self.assertIn("£7.50", chosen.texts[0])
        self.assertFalse(chosen.is_sure)


class ComparedNumberTests(QuotingCase):
    def quoted(self, question, content, heading="", **values):
        return quote(
            Prompt(question, [], [source(1, "rules.md", content, heading=heading, **values)], 0.3, fit=4.0)
        )

    def test_an_age_between_others_may_be_answered_by_them(self):
        text = "Children under 12 do not travel alone. From 12 to 15 years a parent signs a form."
        for question in ("Can a 13-year-old child travel alone?", "Darf ein 13-jähriges Kind allein reisen?"):
            self.assertTrue(self.quoted(question, text, "Children travelling alone").is_likely, question)

    def test_a_duration_may_be_answered_by_another_one_of_its_unit(self):
        text = "For the first seven calendar days of an illness you need no doctor's note."
        question = "Do I need a doctor's note if I am ill for five days?"
        quoted = self.quoted(question, text, "Illness")
        self.assertEqual((quoted.is_sure, quoted.is_likely), (False, True))

    def test_a_text_without_a_number_of_the_question_is_not_given(self):
        text = (
            "You may work from abroad. The roster of the dry-docking teams is agreed four weeks beforehand."
        )
        self.assertFalse(self.quoted("May I work from abroad for four weeks?", text, "Abroad").is_sure)
        self.assertTrue(self.quoted("May I work from abroad?", text, "Abroad").is_sure)

    def test_a_price_may_lack_the_word_price(self):
        rows = "Item: Electric bicycle; Per week: £165\nItem: Town bicycle; Per week: £70"
        quoted = self.quoted("What does an electric bicycle cost for a whole week?", rows, "Hire", score=0.98)
        self.assertTrue(quoted.is_likely or quoted.is_sure)


class LeadingPassageTests(QuotingCase):
    def test_the_passage_that_the_search_clearly_prefers_is_before_one_in_other_words(self):
        late = source(
            1, "guide.md#late", "A person who comes late loses the place on the next sailing.", score=0.7
        )
        lost = source(
            2, "guide.md#lost", "Passports are taken to the police.", heading="Lost property", score=0.95
        )
        other_words = {"passenger": ["person"], "lost": ["loses"], "ship": ["sailing"]}
        question = "What happens with a passport that a passenger lost on the ship?"
        quoted = quote(Prompt(question, [], [late, lost], 0.3, fit=1.5, synonyms=other_words))
        self.assertEqual(quoted.notice, UNSURE)
        self.assertIn("police", quoted.texts[0])


class NamedRowTests(QuotingCase):
    def test_the_row_named_by_a_question_may_answer(self):
        rows = "\n".join(
            f"Item: {item}; Rate: £{rate}; Remarks: {remark}"
            for item, rate, remark in (
                ("Breakfast", "9.00", "departure before 06:30"),
                ("Lunch", "11.00", "absence above 6 hours"),
                ("Dinner", "24.00", "return after 20:00"),
                ("Hotel", "105.00", "with breakfast"),
                ("Motorcycle", "0.24", "a mile"),
                ("Bicycle", "0.20", "a mile"),
            )
        )
        rates = source(1, "travel.md#rates", rows, heading="Rates", score=1.0)
        earlier = [EarlierMessage("user", "What do I get for breakfast when I leave at 6 in the morning?")]
        for question, may_answer in (("and dinner?", True), ("and a dinner with guests?", False)):
            quoted = quote(Prompt(question, earlier, [rates], 0.3, fit=2.6))
            self.assertEqual(quoted.is_sure or quoted.is_likely, may_answer, question)


class WhomToCallTests(QuotingCase):
    def test_a_passage_that_names_a_contact_is_before_one_that_does_not(self):
        note = source(
            1, "a.md", "The crew sees a doctor after an illness at sea.", heading="Illness", score=0.9
        )
        advice = source(
            2, "b.md", "The officer calls a doctor through the coastguard.", heading="Help at sea", score=0.8
        )
        quoted = quote(
            Prompt("Whom do I call when the crew needs a doctor at sea?", [], [note, advice], 0.3, fit=3.5)
        )
        self.assertIn("coastguard", quoted.texts[0])
