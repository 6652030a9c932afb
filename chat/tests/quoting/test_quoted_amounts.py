"""Questions for amounts are answered only by amounts of what was asked for."""

from chat.tests.quoting_case import QuotingCase
from chat.tests.sources import source
from history.tally import UNSURE


class QuotedAmountTests(QuotingCase):
    def test_an_amount_of_something_else_does_not_answer(self):
        for question, other, own in (
            (
                "How many sick days do I get per year?",
                "Everybody gets 25 vacation days per year. Whoever is sick informs the manager.",
                "Everybody gets ten paid sick days per year.",
            ),
            (
                "How many parental leave days do I get?",
                "Parental leave is announced at least six months in advance.",
                "Parental leave is 90 days.",
            ),
            (
                "How much do I get per kilometre for my own car?",
                "You get tickets for the tram. With a monthly card you pay nothing. Who uses their own "
                "car asks the manager about kilometres.",
                "You get 0.45 pounds per kilometre for your own car.",
            ),
            (
                "Wie viele Mitglieder hat der Vorstand?",
                "Scheidet ein Mitglied aus, so bestimmt der Vorstand drei Wochen später ein neues.",
                "Der Vorstand hat sieben Mitglieder.",
            ),
            (
                "How long is the probationary period?",
                "The bonus is paid once the probationary period ends and a permanent contract begins.",
                "The probationary period is six months.",
            ),
            (
                "When is the next election?",
                "After the election, votes go to the next candidate.",
                "The next election is on 4 May.",
            ),
        ):
            with self.subTest(question):
                answer = self.answer(question, sources=[source(1, "a.md", other)], fit=8.0)
                self.assertTrue(answer.startswith(UNSURE), answer)
                answer = self.answer(question, sources=[source(1, "a.md", own)], fit=8.0)
                self.assertTrue(answer.startswith(f"> {own}"), answer)

    def test_the_price_of_a_thing_comes_before_an_office_with_the_same_word(self):
        office = source(
            1,
            "travel.md",
            "Book through the travel desk. The travel desk may approve up to 30 per cent more than £90.",
            heading="Hotels",
            score=1.0,
        )
        thing = source(
            2, "home.md", "You may spend up to £400 on furniture such as a desk or a chair.", score=0.6
        )
        answer = self.answer("How much can I spend on a desk?", sources=[office, thing], fit=5.0)
        self.assertTrue(answer.split("> ")[1].startswith("You may spend up to £400"), answer)
        alone = self.answer("How much can I spend on a desk?", sources=[office], fit=5.0)
        self.assertTrue(alone.startswith(UNSURE), alone)

    def test_words_that_only_ask_for_a_deadline_need_not_be_in_the_answer(self):
        rule = source(1, "a.md", "Tell the harbour master of a cruise at least 7 weeks beforehand.")
        ahead = source(2, "b.md", "Skip ahead and ask the office about the tickets for a cruise.", score=0.95)
        answer = self.answer("How far ahead do I announce a cruise?", sources=[rule, ahead])
        self.assertLess(answer.find("7 weeks"), answer.find("Skip ahead") % 10_000, answer)

    def test_of_one_document_the_passage_with_the_amount_comes_first(self):
        items = source(
            1, "a.md#items", "Ask which things can be paid from the boat budget.", heading="Items", score=0.95
        )
        much = source(
            2, "a.md#members", "We expect members to spend £90 on a boat.", heading="Members", score=0.7
        )
        answer = self.answer("budget for a boat and some sails for a junior", sources=[items, much])
        self.assertLess(answer.find("£90"), answer.find("for ropes") % 10_000, answer)

    def test_additional_words_of_a_case_do_not_hide_the_closest_passage(self):
        sources = [source(1, "a.md", "Senators attend all meetings, or send somebody.")]
        question = "How many meetings may senators miss before they get kicked out?"
        self.assertTrue(self.answer(question, sources=sources).startswith(UNSURE))

    def test_a_compound_of_a_long_question_finds_the_closest_passage(self):
        rule = source(1, "a.md", "Guests use no tools that need training, such as the laser cutter.")
        question = "I want to bring my niece along on Saturday, is that fine, and can she use the {} cutter?"
        self.assertTrue(self.answer(question.format("laser"), sources=[rule], fit=0.4).startswith(UNSURE))
        self.assertFalse(self.answer(question.format("paper"), sources=[rule], fit=0.4).startswith(UNSURE))

    def test_a_passage_with_the_requested_kind_of_amount_is_the_answer(self):
        for question, text in (
            ("When do we have retrospectives?", "We have retrospectives on the first Monday of each month."),
            ("How long does the daily meeting take?", "The daily meeting is limited to 15 minutes."),
            ("How often is the list of ships checked?", "The list of ships is checked in an annual review."),
            ("What is the budget for desks?", "The budget for desks is $400 for each colleague."),
            ("How many people guard the office?", "Four people guard the office at night."),
        ):
            with self.subTest(question):
                answer = self.answer(question, sources=[source(1, "a.md", text)], fit=8.0)
                self.assertTrue(answer.startswith(f"> {text}"), answer)

    def test_a_paragraph_number_is_not_an_amount(self):
        text = "3. Die Personen im Vorstand werden gewählt; § 15 gilt auch hier."
        answer = self.answer(
            "Wie viele Personen sind im Vorstand?", sources=[source(1, "a.md", text)], fit=8.0
        )
        self.assertTrue(answer.startswith(UNSURE), answer)
