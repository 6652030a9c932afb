"""The sentences that answer a question, and whether they do."""

import uuid

from django.test import SimpleTestCase

from chat.quoting import confidence, sentence_selection
from chat.quoting.questions.answer_types import QuotedText
from chat.quoting.questions.question import Question
from ingestion.search.retrieval import FoundPassage
from ingestion.search.rough_stems import matching_words


def best_sentences(question, passages, count=2, **asked):
    return sentence_selection.best_sentences(Question(question, **asked), passages, count)


def best_sentences_per_passage(question, passages):
    return sentence_selection.best_sentences_per_passage(Question(question), passages)


def answers(question, texts, **asked):
    return confidence.answers(QuotedText(Question(question, **asked), tuple(texts)))


def found(content, *, title="", heading="", score=1.0):
    return FoundPassage(
        passage_id=1,
        document_id=1,
        public_id=uuid.UUID(int=1),
        document_version=1,
        label="a.txt",
        sourcefile="a.txt",
        title=title,
        folder="",
        category="",
        heading=heading,
        page=None,
        content=content,
        language="english",
        score=score,
        text_score=None,
        vector_score=None,
        found_by="both",
    )


class BestSentencesTests(SimpleTestCase):
    def test_the_sentence_that_answers_comes_first(self):
        passage = found(
            "Annual leave is good. You have 27 days of annual leave a year. Unused days end on 31 March."
        )
        best = best_sentences(
            "How many days of annual leave do I have?", [found("Dogs need a muzzle."), passage]
        )
        self.assertEqual((best[0].passage, best[0].text), (1, "You have 27 days of annual leave a year."))
        self.assertEqual(passage.content[best[0].start : best[0].end], best[0].text)

    def test_a_sentence_about_the_case_that_the_question_names_comes_first(self):
        shared = found(
            "You and your friends may add, change or delete any files in a library on your computers."
        )
        effects = "- The links to it end.\n- Your computer keeps its files."
        deleted = found(
            f"After a library is deleted, this happens:\n\n{effects}", heading="Deleting a library"
        )
        question = "What happens to the files on my computer if I delete a library?"
        self.assertIn("After", best_sentences(question, [shared, deleted])[0].text)

    def test_a_row_of_a_table_is_found(self):
        rows = "\n".join(
            f"Grade: {letter}; Salary: {40 + number},000" for number, letter in enumerate("ABCDEFG")
        )
        best = best_sentences("What is the salary of grade F?", [found(rows, heading="Salary bands")], 1)
        self.assertEqual([sentence.text for sentence in best], ["Grade: F; Salary: 45,000"])

    def test_a_line_that_repeats_the_title_or_heading_is_not_a_sentence(self):
        names = found("Reorganisation 2027: Project Halyard", title="Reorganisation 2027: Project Halyard")
        text = found(
            "The depot at Brannock Road is to be closed.", heading="Project Halyard › What is planned"
        )
        best = best_sentences("What is Project Halyard?", [names, text])
        self.assertEqual([sentence.text for sentence in best], [text.content])

    def test_another_word_for_one_of_the_question_counts_for_less(self):
        content = "Lockers are cleaned in June. Full-time staff have 27 days of annual leave."
        synonyms = {"vacation": ("leave", "annual")}
        question = "How many vacation days do I get?"
        plain = best_sentences(question, [found(content)], 1)
        best = best_sentences(question, [found(content)], 1, synonyms=synonyms)
        exact = best_sentences("How many annual leave days do I get?", [found(content)], 1)
        self.assertIn("27 days", best[0].text)
        self.assertLess(plain[0].score if plain else 0.0, best[0].score)
        self.assertLess(best[0].score, exact[0].score)
        self.assertFalse(answers("vacation", [content]))
        self.assertTrue(answers("vacation", [content], synonyms=synonyms))

    def test_an_answer_has_both_of_two_things_and_all_words_of_a_phrase_for_one(self):
        laptops = "Take the company laptop only. Public networks are not permitted."
        question = "Can I take my laptop on the train?"
        trains = {"train": ("public transport", "railway")}
        self.assertFalse(answers(question, [laptops], synonyms=trains))
        self.assertTrue(
            answers(question, [f"{laptops} It may be used on public transport."], synonyms=trains)
        )
        self.assertFalse(answers("What do I get if my ferry is late?", ["A ferry has 300 seats."]))

    def test_a_count_must_be_of_the_thing_that_the_question_names(self):
        question = "How many days of parental leave do fathers get?"
        working = "You can work up to ten days without ending your leave."
        self.assertFalse(answers(question, [working]))
        self.assertTrue(answers(question, ["Parental leave is for both. Fathers get 20 days."]))

    def test_a_number_beside_another_thing_is_not_an_answer(self):
        swap = "You may swap a shift. It is signed 48 hours before it. Swaps that break a rest limit fail."
        rest = "Engineers are called out. They have 11 hours of rest before the next shift."
        hours = {"rest": ["hours of rest"]}
        self.assertFalse(answers("How much rest between shifts?", [swap], synonyms=hours))
        self.assertTrue(answers("How much rest before the next shift?", [rest], synonyms=hours))

    def test_a_sentence_that_says_where_the_answer_is_comes_after_it(self):
        pointer = found("How long sick pay is paid is set out on the next page.", heading="Sickness")
        answer = found("Company sick pay depends on the length of service.", heading="Sick pay")
        best = best_sentences("How long is sick pay paid?", [pointer, answer], 1)
        self.assertEqual(best[0].text, answer.content)

    def test_a_number_of_the_whole_counted_thing_is_preferred(self):
        rows = "Days worked a week: 3 days; Annual leave in hours: 121.5; Public holidays in hours: 36"
        prose = "Full-time shore staff have 27 days of annual leave."
        best = best_sentences("How many days of annual leave are there?", [found(rows), found(prose)], 1)
        self.assertEqual(best[0].text, prose)

    def test_compounds_that_begin_alike_are_different_words(self):
        passages = [
            found("Bei einer Arbeitszeit von acht Stunden sind mindestens 45 Minuten frei."),
            found("Ein Arbeitsspeicher von mindestens zwei Gigabyte wird empfohlen."),
        ]
        (first, *_) = best_sentences("Wie viel Arbeitsspeicher wird mindestens gebraucht?", passages)
        self.assertEqual(first.passage, 1)
        self.assertFalse(answers("Wie viel Arbeitsspeicher ist nötig?", ["Die Arbeitszeit ist 8 Stunden."]))
        self.assertTrue(answers("Welche Kündigung gilt?", ["Die Kündigungsfrist gilt."]))

    def test_irregular_forms_and_plurals_are_the_same_word(self):
        for question, text in (
            ("When is my salary paid?", "Salaries: we pay on the 25th."),
            ("Was darf ich heben?", "Nichts wird gehoben."),
            ("Who is off because of sickness?", "Two are sick."),
        ):
            with self.subTest(question=question):
                self.assertTrue(matching_words(question, text))

    def test_the_opposite_direction_is_not_an_answer(self):
        rows = [
            "From: Port Ellery; Depart: 21:50; To: Carrow Quay",
            "From: Carrow Quay; Depart: 18:35; To: Port Ellery",
        ]
        question = "When is the last departure from Carrow Quay?"
        self.assertEqual(best_sentences(question, [found("\n".join(rows))], 1)[0].text, rows[1])
        self.assertFalse(answers(question, [f"Last departure: {rows[0]}"]))
        self.assertTrue(answers(question, [f"Last departure: {rows[1]}"]))

        question = "When does the last boat leave Port Ellery for Carrow Quay?"
        self.assertEqual(best_sentences(question, [found("\n".join(rows))], 1)[0].text, rows[0])

    def test_the_rule_comes_before_a_case_that_was_not_asked_about(self):
        aboard = "If you become ill on board, report sick to the master."
        rule = "Telephone your manager an hour before your shift starts."
        section = found(f"{rule}\n\n{aboard}", heading="Sickness absence › Reporting sick")
        self.assertEqual(best_sentences("How do I report sick?", [section], 1)[0].text, rule)
        question = "How do I report sick when I fall ill on board?"
        self.assertEqual(best_sentences(question, [section], 1)[0].text, aboard)

    def test_a_requested_place_or_person_must_occur(self):
        guide = "There is a Leeds office guide for those who would like to work from this space."
        self.assertFalse(answers("Where is the Leeds office?", [guide]))
        self.assertTrue(answers("Where is the Leeds office?", ["The Leeds office is at 4 Canal Street."]))
        other = "No one other than the director has the authority to sign."
        self.assertFalse(answers("Who is the director?", [other]))
        self.assertTrue(answers("Who is the director?", ["Ann Lee is the director."]))

    def test_words_of_only_similar_meaning_do_not_answer(self):
        rest = ["Rest of a crew: at least six hours."]
        self.assertFalse(answers("How long is my lunch break?", rest, synonyms={"lunch break": ["rest"]}))
        pay = ["Pay day is the 25th of each month."]
        self.assertTrue(answers("When is payday each month?", pay, synonyms={"payday": ["pay day"]}))

    def test_the_first_noun_of_a_question_must_occur(self):
        hours = ["The port manager begins at 8:00."]
        self.assertFalse(answers("When does the pay of a port manager begin?", hours))
        self.assertTrue(answers("When does the shift of a port manager begin?", [f"Shifts: {hours[0]}"]))

    def test_a_superlative_is_answered_by_a_comparison_or_by_rows_with_numbers(self):
        question = "Which ship carries the most cars?"
        self.assertFalse(answers(question, ["A ship with tankers carries 25 drivers of cars, 4 at most."]))
        self.assertTrue(answers(question, ["The Aurora carries the most cars of all ships."]))
        self.assertTrue(answers(question, ["Ship: Aurora, which carries lorries; Cars: 160"]))

    def test_a_question_for_a_permission_is_answered_by_a_text_that_names_the_action(self):
        fire = {"smoke": ["fire"]}
        self.assertFalse(answers("Can I smoke on board?", ["Report a fire on board."], synonyms=fire))
        self.assertFalse(answers("Can I smoke on board?", ["On board, smoke-filled rooms are closed."]))
        self.assertTrue(answers("Can I smoke on board?", ["Smoking is not allowed on board."]))

    def test_a_negated_condition_is_not_answered_by_the_affirmative_one(self):
        question = "Was tun, wenn ein Gast nicht kommt?"
        self.assertFalse(answers(question, ["Wenn ein Gast kommt, beginnt die Behandlung."]))
        self.assertTrue(answers(question, ["Kommt ein Gast nicht, rufen wir ihn an."]))

    def test_the_words_of_a_phrase_must_be_near_each_other(self):
        other, question = {"second job": ["second employment"]}, "Can I have a second job?"
        shares = "Employees may get shares, and begin to do so on their second anniversary."
        self.assertFalse(answers(question, [shares], synonyms=other))
        self.assertTrue(answers(question, ["A second employment is allowed."], synonyms=other))

    def test_a_follow_up_keeps_to_passages_with_something_of_its_subject(self):
        passages = [
            found("Notice what changed, and give notice of it."),
            found("Give notice 4 weeks ahead.", heading="Sabbatical"),
        ]
        earlier = "When can I take a sabbatical?"
        best = best_sentences("How much notice?", passages, earlier=earlier, subject=earlier)
        self.assertEqual(best[0].passage, 1)

    def test_a_rule_comes_before_its_exception_unless_the_question_asks_for_it(self):
        rule = "Up to five books may be taken until the next term."
        exception = "In exceptional cases up to ten books in total may be kept."
        passages = [found(f"{rule} {exception}", heading="Keeping books")]
        for question, first in (
            ("How many books may I keep?", rule),
            ("In which exceptional cases may I keep more books?", exception),
        ):
            self.assertEqual(best_sentences(question, passages)[0].text, first, question)

    def test_the_first_sentence_of_the_section_asked_about_leads_if_it_has_the_number(self):
        text = "Salaries arrive on the 25th of each month. Slips for a pay day come on the 22nd day before."
        passage = found(text, heading="Pay day")
        self.assertTrue(best_sentences("When is pay day?", [passage])[0].text.startswith("Salaries"))

    def test_a_requested_telephone_number_or_form_must_occur(self):
        desk = "The Service Desk answers on extension 3500 from Monday to Friday."
        other = "Report the loss of a phone to the Service Desk within 4 hours."
        for question in ("What is the Service Desk's phone number?", "Which number do I ring, Service Desk?"):
            with self.subTest(question=question):
                best = best_sentences(question, [found(other, score=1.0), found(desk, score=0.7)], 1)
                self.assertEqual(best[0].text, desk)
                self.assertFalse(answers(question, [other, "Service Desk"]))
                self.assertTrue(answers(question, [desk, "Service Desk"]))
        question = "Which form do I need to work abroad?"
        self.assertFalse(answers(question, ["You may work abroad for 20 days."]))
        self.assertTrue(answers(question, ["To work abroad, send form PF-27."]))

    def test_a_question_for_a_definition_is_answered_only_by_one(self):
        self.assertTrue(answers("What is Project Halyard?", ["Project Halyard is the merger of two ports."]))
        self.assertTrue(answers("Was ist ein Terminal?", ["Ein Terminal startet ohne Festplatte."]))
        self.assertFalse(
            answers("What is Project Halyard?", ["Confidential. For the steering group.", "Halyard"])
        )

    def test_a_repetition_of_the_question_is_not_an_answer(self):
        self.assertFalse(answers("How do I import a QIF file?", ["Import QIF files", "Account setup"]))
        self.assertTrue(answers("How do I import a QIF file?", ["Import QIF files from the menu", "Setup"]))

    def test_a_line_of_a_table_of_contents_is_not_quoted(self):
        text = "6.1. Window, 6.2. Printing Checks, 6.3. Importing Transactions, 6.4. Deleting a Transaction."
        self.assertEqual(best_sentences("How do I print checks?", [found(text)]), [])

    def test_the_section_about_the_subject_alone_is_preferred(self):
        notice = found("Who: Grades A to D; Notice: 4 weeks", heading="Leaving › Notice")
        other = found("Who: Grades A to D; Notice: 6 weeks", heading="Leaving › Unpaid leave")
        best = best_sentences("How much notice must I give?", [other, notice], 1)
        self.assertEqual(best[0].text, notice.content)

    def test_a_number_of_the_requested_thing_comes_before_other_numbers(self):
        other = "From the 24th week on partners have leave."
        right = (
            "Partners of employees on shore have leave of four weeks at full pay, in one piece or in blocks."
        )
        passages = [found(other), found(right)]
        best = best_sentences("How many weeks of leave do partners have?", passages)
        self.assertEqual(best[0].text, right)

    def test_the_heading_gives_the_subject_of_a_sentence(self):
        content = "## Maternity leave\n\nTake up to 52 weeks.\n\n## Paternity leave\n\nTake up to 4 weeks."
        best = best_sentences("How long is paternity leave?", [found(content)], 1)
        self.assertEqual([sentence.text for sentence in best], ["Take up to 4 weeks."])

    def test_nothing_is_quoted_when_nothing_fits(self):
        self.assertEqual(best_sentences("Which quark is heaviest?", [found("Dogs need a muzzle.")]), [])

    def test_an_empty_text_or_question_gives_no_quotation(self):
        self.assertEqual(best_sentences("Which quark is heaviest?", []), [])
        self.assertEqual(best_sentences("?!", [found("Dogs need a muzzle.")]), [])
        self.assertEqual(best_sentences("the of", [found("The of.")]), [])
        self.assertEqual(best_sentences("dogs", [found("")]), [])

    def test_no_text_is_quoted_twice(self):
        best = best_sentences(
            "Do dogs need a muzzle?", [found("Dogs need a muzzle."), found("Dogs need a muzzle.")]
        )
        self.assertEqual(len(best), 1)


class SentencesOfEachTests(SimpleTestCase):
    def test_every_passage_gives_its_best_sentences_in_the_order_of_its_text(self):
        passages = [
            found("Soup is served at noon. Leave may be carried over. Ask early. Five days of leave count."),
            found("The office opens at eight."),
        ]
        first, second = best_sentences_per_passage("How many days of leave may be carried over?", passages)
        self.assertEqual([item.text for item in first], sorted((item.text for item in first), reverse=True))
        self.assertIn("Leave may be carried over.", [item.text for item in first])
        self.assertLessEqual(len(first), 2)
        self.assertEqual([item.text for item in second], ["The office opens at eight."])

    def test_a_passage_without_sentences_gives_none(self):
        self.assertEqual(best_sentences_per_passage("Leave?", [found(""), found("# Leave")]), [[], []])

    def test_a_question_of_stop_words_causes_no_error(self):
        ((only,),) = best_sentences_per_passage("what is it?", [found("Soup is served at noon.")])
        self.assertEqual(only.text, "Soup is served at noon.")
