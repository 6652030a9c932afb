"""Two versions of an answer side by side: differences are marked, and the HTML stays safe."""

import re
import time

import pytest
from django.test import SimpleTestCase

from chat import runs
from chat.portal.version_comparison import compared
from chat.tests.runs.test_branches import BranchCase
from history.models import Message, Source
from ingestion.models import Document, Passage
from ingestion.tests.factories import make_user

HIDDEN = re.compile(r'<span class="hidden">[^<]*</span>')
CITE = '<a class="cite" href="?source=1.1" data-source="1.1" aria-label="1: A &gt; B" title="A > B">1</a>'


def bare(html):
    return HIDDEN.sub("", html)


class MarkTests(SimpleTestCase):
    def marked(self, before, after):
        found = compared([before], [after])
        return bare(found.before[0]), bare(found.after[0])

    def test_words_of_only_one_version_are_marked(self):
        found = self.marked(
            "<p>Five days <strong>until 31 March</strong> of each year.</p>",
            "<p>Ten days <strong>until 30 April</strong> of each year.</p>",
        )
        self.assertEqual(
            found,
            (
                "<p><del>Five</del> days <strong>until <del>31 March</del></strong> of each year.</p>",
                "<p><ins>Ten</ins> days <strong>until <ins>30 April</ins></strong> of each year.</p>",
            ),
        )

    def test_marks_are_announced_to_screen_readers(self):
        found = compared(["<p>Five days of leave.</p>"], ["<p>Ten days of leave.</p>"])
        self.assertIn('<del><span class="hidden">removed: </span>Five<span', found.before[0])
        self.assertIn('<ins><span class="hidden">added: </span>Ten<span', found.after[0])
        self.assertEqual((found.removed, found.added), (1, 1))

    def test_citations_buttons_and_formulas_are_neither_words_nor_touched(self):
        for kept in (CITE, '<button type="button">Copy</button>', "<math><mi>x</mi><mo>=</mo></math>"):
            before, after = self.marked(f"<p>Days of leave {kept} end.</p>", "<p>Days of leave end.</p>")
            self.assertEqual(before, f"<p>Days of leave {kept} end.</p>")
            self.assertEqual(after, "<p>Days of leave end.</p>")

    def test_escaped_text_stays_escaped(self):
        before, _ = self.marked(
            "<p>See the &lt;script&gt; and leave.</p>", "<p>See the &lt;b&gt; and leave.</p>"
        )
        self.assertEqual(before, "<p>See the <del>&lt;script&gt;</del> and leave.</p>")

    def test_versions_with_little_in_common_are_not_marked(self):
        found = compared(["<p>Five days of leave.</p>"], ["<p>Nobody knows anything here.</p>"])
        self.assertFalse(found.alike)
        self.assertNotIn("<del>", found.before[0])

    def test_long_answers_are_compared_quickly(self):
        words = [f"w{number % 700}" for number in range(20_000)]
        begun = time.perf_counter()
        compared([f"<p>{' '.join(words)}</p>"], [f"<p>{' '.join(reversed(words))}</p>"])
        self.assertLess(time.perf_counter() - begun, 5)


@pytest.mark.slow
class PageTests(BranchCase):
    def setUp(self):
        super().setUp()
        self.other = self.again(self.first.answer_id, "Ten days.")

    def address(self, position=1, other=4):
        return f"{self.page}m/{position}/compare/{other}/"

    def test_the_answer_leads_to_both_versions_side_by_side(self):
        self.assertContains(self.client.get(self.page), f'href="{self.address()}"')
        page = self.client.get(self.address())
        self.assertContains(page, "Leave?</h2>")
        self.assertEqual(bare(page.content.decode()).count("<del>Five</del>"), 1)
        self.assertEqual(bare(page.content.decode()).count("<ins>Ten</ins>"), 1)
        self.assertContains(page, f'action="{self.page}m/1/choose"')

    def test_each_of_three_versions_can_be_chosen(self):
        self.again(self.first.answer_id, "Ten good days.")
        self.assertContains(self.client.get(self.page), f'href="{self.address(4, 5)}"')
        page = self.client.get(self.address(4, 5))
        self.assertContains(page, f'href="{self.address(1, 5)}"')
        self.assertNotContains(page, f'href="{self.address(5, 5)}"')

    def test_citations_open_their_source_beside_both(self):
        document = Document.objects.get()
        passage = Passage.objects.filter(document=document).first()
        Message.objects.filter(pk=self.other.answer_id).update(
            content="Ten days [guide.md].", citations=["guide.md"], labels=["guide.md"]
        )
        Source.objects.create(
            message_id=self.other.answer_id,
            document=document,
            document_version=document.version,
            passage_id=passage.pk,
            rank=1,
            label="guide.md",
            title="Guide",
            content="Ten days.",
            score=1,
            found_by="words",
        )
        self.assertContains(self.client.get(self.address()), 'href="?source=4.1#marked"')
        panel = self.client.get(f"{self.address()}?source=4.1")
        self.assertContains(panel, 'id="source-title"')
        self.assertContains(panel, 'href="?#m-4"')
        self.assertContains(self.client.get(f"{self.address()}source/4.1/"), 'id="source-title"')
        for missing in ("?source=4.7", "?source=x"):
            self.assertEqual(self.client.get(self.address() + missing).status_code, 404)

    def test_other_answers_and_those_of_other_people_are_not_found(self):
        for position, other in ((1, 1), (4, 1), (1, 3), (0, 2), (1, 77)):
            self.assertEqual(self.client.get(self.address(position, other)).status_code, 404)
        self.client.force_login(make_user("stranger"))
        self.assertEqual(self.client.get(self.address()).status_code, 404)
        self.assertEqual(self.client.get(f"{self.address()}source/4.1/").status_code, 404)

    def test_a_running_answer_is_shown_up_to_its_present_end(self):
        runs.again(self.principal, self.first.answer_id)
        self.assertContains(self.client.get(self.address(4, 5)), "This answer is still being written.")

    def test_an_edited_question_is_shown_beside_the_original_with_both_answers(self):
        self.ask("Sick leave?", "Six days.", instead_of=0)
        self.assertContains(self.client.get(self.page), f'href="{self.address(0, 5)}"')
        page = bare(self.client.get(self.address(0, 5)).content.decode())
        self.assertIn('<p class="question" dir="auto">', page)
        self.assertIn("Sick leave?", page)
        self.assertIn("<del>Ten</del> days", page, "the chosen or the newest version of its answer")
        self.assertIn("<ins>Six</ins> days", page)
        self.assertIn(f'action="{self.page}m/5/choose"', page)
        self.assertIn(f'action="{self.page}m/0/choose"', page)

    def test_differences_of_questions_are_marked_and_stay_text(self):
        self.ask("Leave <b>of five?", "Six days.", instead_of=2)
        self.ask("Leave <b>of ten?", "Six days.", instead_of=2)
        page = bare(self.client.get(self.address(5, 7)).content.decode())
        self.assertIn("Leave &lt;b&gt;of <del>five?</del>", page)
        self.assertIn("Leave &lt;b&gt;of <ins>ten?</ins>", page)

    def test_a_question_and_an_answer_are_not_compared(self):
        self.ask("Sick leave?", "Six days.", instead_of=0)
        for position, other in ((0, 4), (1, 5), (5, 6), (2, 5)):
            self.assertEqual(self.client.get(self.address(position, other)).status_code, 404)
