"""The kind of amount that a question asks for, and texts with such an amount."""

from django.test import SimpleTestCase

from chat.quoting.questions.amounts import (
    asked_amount,
    durations_in,
    has_number,
    numbers_of,
    stated_durations,
)


def has_amount(question, text):
    amount = asked_amount(question)
    return amount is None or amount.is_in(text)


class AmountTests(SimpleTestCase):
    def test_an_amount_of_another_kind_is_not_an_answer(self):
        for question, right, wrong in (
            ("How long is probation?", "It lasts three months.", "It is on page 9."),
            ("How long is the notice period?", "It is three (3) months.", "It is on page (3)."),
            ("budget for a chair", "Spend up to $200 on it.", "Four chairs can be bought."),
            ("Kündigungsfrist Garten", "Bis zum 15. März.", "Der Garten hat 4 Beete."),
            ("how long is sick pay", "Full pay: 8 weeks", "You get 9 per cent."),
            ("When do I get paid?", "On the 25th of each month.", "You get 9 per cent."),
            ("when do we start", "At 09:00 in the hall.", "All 12 colleagues do."),
            ("When does the office open?", "It opens at seven.", "It has seven rooms."),
            ("bis wann melde ich mich krank", "Spätestens um 9:30 Uhr.", "Auf Seite 3."),
            ("By when do I hand it in?", "Within 24 hours.", "It has 24 pages, one for every week."),
            ("What is the deadline?", "Must be used by: 31 March", "Claims are paid 14 days after receipt."),
            ("Until when can I order?", "Order by Friday's noon.", "Meals are cooked on 4 days."),
            ("Wie lange vorher?", "Eine Frist von zwei Wochen gilt.", "Er lädt mit angemessener Frist ein."),
            ("Wie lange vorher?", "Die Einladungsfrist beträgt 2 Wochen.", "Reisen dauern 14 Tage."),
            ("How far ahead do I ask?", "At least ten days in advance.", "Trips of 14 days are paid."),
            ("How many weeks before do I ask?", "Four weeks beforehand.", "It lasts 14 weeks."),
            ("Mit wie vielen Stimmen?", "Mit zwei Stimmen.", "Mit der Mehrheit."),
            ("Wie lange vorher frage ich?", "Vier Wochen vorher.", "Reisen dauern 14 Tage."),
            ("How much does a bicycle cost?", "It is £4 a crossing.", "At least 3 are carried."),
            ("How much is a child ticket?", "Child; fare: GBP 14", "Ticket office; extension: 5512"),
            ("How much is a car to the island?", "Car; fare (GBP): 86", "To: Island; Depart: 11:45"),
            ("How high are the monthly dues?", "They are £9 a month.", "There are 9 every month."),
            ("How much time do I have to answer?", "Three days", "There are 9 rooms."),
            ("how much is that for two", "Other pets cost £6.", "Two of them are in the hall."),
            ("Wie hoch ist der Jahresbeitrag?", "Er beträgt 40 Euro.", "Er ist nach 3 Monaten zu zahlen."),
            ("was kostet ein Fahrrad", "Es kostet 4 Euro.", "Es sind 3."),
        ):
            with self.subTest(question=question):
                self.assertTrue(has_amount(question, right))
                self.assertFalse(has_amount(question, wrong))

    def test_other_questions_accept_any_number_or_text(self):
        self.assertTrue(has_amount("How many ships are there?", "There are nine vessels."))
        self.assertFalse(has_amount("How many ships are there?", "There are vessels."))
        self.assertTrue(has_amount("How many votes does it take?", "At least thirty do."))
        self.assertTrue(has_amount("Wie viele Stimmen braucht es?", "Eine Zweidrittelmehrheit."))
        self.assertFalse(has_amount("How many ships are there?", "4. Count the ships."))
        self.assertTrue(has_amount("How many votes does it take?", "More than half of the members."))
        self.assertFalse(has_amount("How many days do I get?", "They are rounded to the next half day."))
        self.assertTrue(has_amount("Who is my mentor?", "The superintendent."))

    def test_the_last_of_several_questions_decides_the_kind_of_amount(self):
        self.assertTrue(has_amount("How long is it? How many people come?", "It is for 12 people."))

    def test_a_question_gives_a_duration_that_a_text_may_have_in_other_words(self):
        self.assertEqual(stated_durations("Can I go for a month?"), durations_in("It takes one month."))
        self.assertEqual(stated_durations("May I stay for four weeks?"), durations_in("4 weeks is long."))
        self.assertFalse(stated_durations("Is a month long?"))

    def test_a_time_before_or_after_something_is_not_a_duration(self):
        for text in ("four weeks beforehand", "4 weeks ago", "four weeks' notice", "4 weeks in advance"):
            self.assertFalse(durations_in(text), text)

    def test_german_numbers_in_words_are_numbers(self):
        for text, number in (
            ("binnen vierzehn Tagen", "14"),
            ("Fünfzig Plätze", "50"),
            ("neunzehn Euro", "19"),
        ):
            self.assertTrue(has_number(text), text)
            self.assertEqual(numbers_of(text), {number})

    def test_the_numbers_of_a_text_are_compared_in_digits(self):
        self.assertEqual(numbers_of("Nine vessels; 9:30 on the 25th; sechs Boote"), {"9", "9:30", "25", "6"})
