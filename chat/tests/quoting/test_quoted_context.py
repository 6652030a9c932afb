"""What is quoted with a sentence: its paragraph, list, table or heading."""

from dataclasses import replace

from chat.quoting.quoted_answer import PARTLY
from chat.quoting.rendering import heading_above
from chat.tests.quoting_case import QuotingCase
from chat.tests.sources import source
from chat.verification import verify


class QuotedContextTests(QuotingCase):
    def test_numbered_parts_are_quoted_completely_and_in_order(self):
        parts = [
            source(
                rank,
                "plan.md",
                text,
                title="Development plan",
                heading=f"Your goals › Goal {name}",
                score=score,
            )
            for rank, name, text, score in (
                (1, "three: freight", "You spend six days with the freight office.", 0.99),
                (2, "two: delegation", "You hand over the berth planning.", 0.98),
                (3, "one: certificate", "You complete the certificate.", 0.87),
            )
        ]
        other = source(4, "plan.md", "Your mentor is the superintendent.", heading="Your mentor", score=0.5)
        question = "What are the goals of the development plan?"
        answer = self.answer(question, sources=[*parts, other], fit=6.0)
        self.assertTrue(answer.startswith("**Your goals › Goal one: certificate**"), answer)
        self.assertLess(answer.index("berth planning"), answer.index("six days"))
        for incomplete in (parts, [parts[0], parts[2], other]):
            self.assertTrue(self.answer(question, sources=incomplete, fit=6.0).startswith(PARTLY))
        self.assertNotIn("certificate", self.answer("What is goal three?", sources=[*parts, other], fit=6.0))

    def test_the_notes_of_a_slide_are_quoted_with_the_slide(self):
        text = "Family matters\n\n- Your entitlements are in the guide\n\nNotes: The buddy gets no extra pay."
        slide = source(1, "induction.pptx#slide=4", text, heading="Family matters")
        page = source(1, "induction.md#page=4", text, heading="Family matters")
        question = "Does the buddy get extra pay?"
        self.assertIn("> - Your entitlements", self.answer(question, sources=[slide], fit=6.0))
        self.assertNotIn("Your entitlements", self.answer(question, sources=[page], fit=6.0))

    def test_a_rule_is_quoted_before_its_exception(self):
        rule = (
            "Salaries arrive on the 25th of each month, as all of you know. "
            + "It is paid by bank transfer. " * 9
        )
        page = source(1, "a.md", f"{rule}In December everyone is paid on the 19th. " + "Slips follow. " * 20)
        answer = self.answer("When do I get paid?", sources=[page], fit=6.0)
        self.assertLess(answer.index("25th"), answer.index("19th"))

    def test_a_cell_with_several_sentences_is_quoted_in_its_column(self):
        rows = (
            "Vehicle: Van; Rule: Book it in the portal. Return it with a full tank. Clean it; Contact: Fleet",
            "Vehicle: Bicycle; Rule: Take the key from the rack. Lock it at night; Contact: Reception",
        )
        page = source(1, "vehicles.md", "\n".join(rows), heading="Vehicles")
        answer = self.answer("What is the rule for a van?", sources=[page], fit=6.0)
        self.assertIn("| Vehicle | Rule | Contact |\n", answer)
        self.assertIn("| Van | Book it in the portal. Return it with a full tank. Clean it | Fleet [", answer)
        self.assertNotIn("uncited", {each.verdict for each in verify(answer, [page])})

    def test_a_short_section_is_quoted_whole_if_an_explanation_is_asked_for(self):
        text = (
            "Some people like to print their cards for reviews on paper.\n\n"
            "Printing is handled by the add-on Basic Printing.\n\nIts settings are in the menu Tools."
        )
        page = source(1, "faq.md", text, heading="Printing cards")
        self.assertIn("> Its settings are", self.answer("How do I print my cards?", sources=[page], fit=6.0))
        self.assertNotIn("settings", self.answer("Which add-on handles printing?", sources=[page], fit=6.0))
        rules = "Owners remove what a dog leaves in the park.\n\nThe keeper walks it on a leash."
        page = source(1, "law.md", rules, heading="Dogs in public places")
        answer = self.answer("Must I walk my dog on a lead in the park?", sources=[page], fit=6.0)
        self.assertIn("> The keeper walks it", answer)

    def test_the_clauses_of_an_enumeration_are_quoted_as_a_list_below_their_lead_in(self):
        law = (
            "(1)No person may, without a permit, keep on any land—(a)more than two dogs; and"
            "(b)more than two cats. (2)An application is made on a form."
        )
        page = source(1, "law.html", law, heading="14 Number of dogs and cats")
        answer = self.answer("How many dogs may a person keep?", sources=[page], fit=6.0)
        self.assertIn("keep on any land—\n>\n> - (a)more than two dogs; and\n> - (b)more", answer)
        other = source(
            2, "law.html", "(1)A person must keep a dog on a leash.", heading="19 Dogs in streets", score=1.0
        )
        both = self.answer("How many dogs may a person keep?", sources=[other, page], fit=6.0)
        self.assertIn("more than two dogs", both.split("[law.html]")[0])

    def test_only_the_requested_rows_of_many_are_quoted(self):
        rows = "\n".join(
            f"Grade: {grade}; Notice: {number} weeks" for number, grade in enumerate("KLMNPQR", 2)
        )
        page = source(1, "a.md", rows, heading="Notice of grades")
        answer = self.answer("How many weeks is the notice of grade N?", sources=[page], fit=6.0)
        self.assertIn("| N | 5 weeks [a.md] |", answer)
        self.assertNotIn("| K |", answer)
        self.assertIn("of 7 rows", answer)

    def test_a_table_is_quoted_with_its_heading(self):
        table = "Situation: Ordinary; Days carried: 5\nSituation: Exceptional; Days carried: 10"
        page = source(1, "a.md", table, heading="4 Carry-over of leave › Maternity")
        self.assertIn(
            "**Carry-over of leave**", self.answer("How many days are carried over?", sources=[page])
        )
        page = source(1, "a.md", table, heading="4 Carry-over of leave › Exceptional situations")
        self.assertIn("› Exceptional", self.answer("How many days are carried over?", sources=[page]))

    def test_a_sentence_is_quoted_with_its_paragraph_and_one_citation(self):
        page = source(1, "a.md", "Boots are lent.\n\nLeave is booked early. It is 27 days a year. Ask first.")
        self.assertEqual(
            self.answer("How many days is leave?", sources=[page]),
            "> Leave is booked early. It is 27 days a year. Ask first. [a.md]",
        )

    def test_an_item_is_quoted_with_its_introduction_and_the_other_items(self):
        page = source(
            1, "a.md", "Boots.\n\nOn the first day bring:\n\n- your passport\n- a signed contract\n"
        )
        for question in ("Do I bring my passport?", "What do I bring on the first day?"):
            self.assertEqual(
                self.answer(question, sources=[page]),
                "> On the first day bring:\n>\n> - your passport\n> - a signed contract [a.md]",
            )

    def test_a_paragraph_that_introduces_a_list_is_quoted_with_the_list(self):
        page = source(
            1,
            "a.md",
            "There are kinds of account. They are these two:\n\nKinds\n\n- Asset: owned\n- Debt: owed\n",
        )
        self.assertEqual(
            self.answer("What kinds of account are there?", sources=[page]),
            "> There are kinds of account. They are these two:\n>\n> - Asset: owned\n> - Debt: owed [a.md]",
        )

    def test_a_question_in_a_heading_is_answered_by_the_text_below_it(self):
        items = "- On the open deck.\n- In the rescue boat.\n- On the quay."
        below = "The jacket inflates by itself. It must be worn closed. It is serviced every 12 months."
        heading = "Life jackets › When crew must wear one"
        for more in ("", f"\n\n{'The store has spare parts for all of them. ' * 12}"):
            page = source(1, "safety.pdf#page=5", f"{items}\n\n{below}{more}", heading=heading)
            answer = self.answer("When must I wear a life jacket?", sources=[page], fit=7.0)
            self.assertTrue(answer.startswith(f"**{heading}**\n\n> - On the open deck."), answer)
            self.assertIn("> - On the quay.", answer)
            self.assertEqual(answer.count("every 12 months"), 1, answer)
        other = replace(page, heading="Life jackets › How they work")
        answer = self.answer("When must I wear a life jacket?", sources=[other], fit=7.0)
        self.assertNotIn("On the open deck", answer)

    def test_a_procedure_whose_heading_names_the_task_is_quoted_from_its_first_step(self):
        heading = "Pottery › Glazing a bowl"
        step = "2. Glaze the bowl twice, then put it in the oven."
        first = source(1, "kiln.md#glazing", step, heading=heading, passage_id=8)
        second = source(2, "kiln.md#glazing", "1. Sand it.\n- Wear a mask.", heading=heading, passage_id=7)
        answer = self.answer("How do I glaze a bowl?", sources=[first, second], fit=7.0)
        self.assertTrue(answer.startswith(f"**{heading}**\n\n> 1. Sand it.\n> - Wear a mask."), answer)
        elsewhere = [replace(each, heading="Pottery › Colours") for each in (first, second)]
        answer = self.answer("How do I glaze a bowl?", sources=elsewhere, fit=7.0)
        self.assertIn(f"> {step}", answer.partition("1. Sand")[0])

    def test_an_introduction_is_quoted_with_the_command_below_it(self):
        page = source(1, "a.md", "Downloads are many. To resume a download, type:\n\nwget -c ADDRESS\n")
        self.assertEqual(
            self.answer("How do I resume a download?", sources=[page]),
            "> Downloads are many. To resume a download, type: wget -c ADDRESS [a.md]",
        )

    def test_a_paragraph_is_quoted_with_the_table_below_it(self):
        notice = source(
            label="handbook.pdf#page=16",
            content="Give notice in writing on form PF-60. The periods below apply to both sides.\n"
            "Who: Grades A to D; Notice: 4 weeks\nWho: Grades E to G; Notice: 8 weeks",
        )
        answer = self.answer("On which form do I give notice in writing?", sources=[notice])
        quoted, table = answer.split("\n\n", 1)
        paragraph = notice.content.partition("\n")[0]
        self.assertEqual(quoted, f"> {paragraph} [handbook.pdf#page=16]")
        self.assertIn("| Grades E to G | 8 weeks [handbook.pdf#page=16] |", table)

    def test_a_row_is_quoted_with_its_short_table_and_header(self):
        rows = "Grade: E; Salary: £48,000\nGrade: F; Salary: £52,000\nGrade: G; Salary: £57,000"
        page = source(1, "a.xlsx", rows, heading="Pay › Bands")
        self.assertEqual(
            self.answer("What is the salary of grade F?", sources=[page]),
            "**Pay › Bands**\n\n| Grade | Salary |\n| --- | --- |\n| E | £48,000 [a.xlsx] |\n"
            "| F | £52,000 [a.xlsx] |\n| G | £57,000 [a.xlsx] |",
        )

    def test_neither_a_heading_nor_a_question_nor_a_line_of_contents_is_quoted(self):
        text = (
            "4.2 Sick pay\n\nHow long is sick pay paid?\n\nSick pay . . . . . . . 12\n\n"
            "Sick pay is paid for eight weeks."
        )
        answer = self.answer("How long is sick pay paid?", sources=[source(1, "a.md", text)])
        self.assertEqual(answer, "> Sick pay is paid for eight weeks. [a.md]")

    def test_a_sentence_that_refers_to_its_heading_is_quoted_with_it(self):
        page = source(1, "a.md", "This directory holds the logs.", heading="5 Var › 5.1 /var/log")
        answer = self.answer("Where are the logs?", sources=[page])
        self.assertEqual(answer, "**Var › /var/log**\n\n> This directory holds the logs. [a.md]")

    def test_a_heading_loses_its_chapter_number_and_keeps_that_of_a_rule(self):
        for written, shown in (
            ("2 Fees › 2.1 Who pays", "Fees › Who pays"),
            ("Chapter 3: Boats", "Boats"),
            ("§ 6 Leaving › § 6a Notice", "§ 6 Leaving › § 6a Notice"),
            ("3D printing", "3D printing"),
            ("Section 4", ""),
        ):
            with self.subTest(written):
                self.assertEqual(heading_above(source(1, "a.md", "Text.", heading=written)), shown)

    def test_every_quotation_is_found_in_its_source(self):
        sources = [
            source(
                1,
                "a.md",
                "Leave is booked early. It is 27 days a year.\n\n- Five days may be\n  carried over",
            ),
            source(2, "b.xlsx", "Grade: E; Leave: 25 days\nGrade: F; Leave: 28 days", heading="Leave"),
        ]
        answer = self.answer("How many days of leave are there in grade F?", sources=sources)
        verdicts = [statement.verdict for statement in verify(answer, sources)]
        self.assertTrue(verdicts)
        self.assertLessEqual(set(verdicts), {"quoted", "supported"}, answer)
