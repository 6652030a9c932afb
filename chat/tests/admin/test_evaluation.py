"""Evaluations: import and export of questions, runs under the rights of a group or one's own, comparisons."""

import csv
import io
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.test import TestCase
from procrastinate.contrib.django.models import ProcrastinateJob

from chat.evaluation import evaluation_questions, run_comparison, running
from chat.evaluation.models import ProofQuestion, ProofResult, ProofRun
from chat.tests.conversations import WORDS, answered
from chat.tests.engine.test_verified_answers import make_verified
from chatsite.accounts.models import AuditEntry, User
from history.models import Feedback
from ingestion.access.lists import Audience, set_audience
from ingestion.documents import delete_document
from ingestion.tests.factories import make_document, make_user

QUESTIONS = "/admin/chat/proofquestion/"
RUNS = "/admin/chat/proofrun/"
LEAVE = "Until when may employees carry over days of leave?"
FERRIES = "Which ferry sails to the Azores on Sundays?"
RIGHTS = [f"{act}_proofquestion" for act in ("add", "change", "delete", "view")]
RIGHTS += [f"{act}_proofrun" for act in ("add", "delete", "view")]


class EvaluationCase(TestCase):
    def setUp(self):
        self.manager = make_user("ines", is_staff=True, groups=["Crew"])
        self.manager.user_permissions.set(Permission.objects.filter(codename__in=[*RIGHTS, "view_document"]))
        self.crew = Group.objects.get(name="Crew")
        self.client.force_login(self.manager)
        self.guide = make_document("guide.md", everyone=True)
        # Inside a test's transaction the entry cannot be committed before the page is rendered.
        self.looks = []
        looked = patch(
            "chat.admin.evaluation_admin.record_before", lambda *values, **named: self.looks.append(values[0])
        )
        looked.start()
        self.addCleanup(looked.stop)

    def question(self, text=LEAVE, document=None, **values):
        values |= {"document": document} if document else {"wants_nothing": True}
        return ProofQuestion.objects.create(text=text, added_by=self.manager, **values)

    def run_all(self, group=None, user=None):
        run = running.start(user or self.manager, group, "")
        running.continue_run(run.pk)
        run.refresh_from_db()
        return run

    def entries(self):
        return list(AuditEntry.objects.filter(actor="ines").values_list("action", flat=True))


class RunTests(EvaluationCase):
    def test_a_run_finds_the_expected_documents_only(self):
        self.question(LEAVE, self.guide)
        self.question(FERRIES)
        run = self.run_all()
        self.assertEqual(run.state, "done")
        found, nothing = run.results.all()
        self.assertEqual((found.outcome, found.rank, found.found), ("answered", 1, [self.guide.pk]))
        self.assertEqual((found.statements, found.supported), (1, 1))
        self.assertIn(nothing.outcome, ("nothing", "unsure"))
        self.assertTrue(found.is_right and nothing.is_right)

    def test_a_run_resumes_after_a_database_fault(self):
        self.question(LEAVE, self.guide)
        run = running.start(self.manager, None, "")
        with (
            patch("chat.evaluation.running.ask", side_effect=OperationalError),
            self.assertRaises(OperationalError),
        ):
            running.continue_run(run.pk)
        self.assertEqual(running.queue_lost(), 0)
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs")
        self.assertEqual(running.queue_lost(), 1)
        running.continue_run(run.pk)
        run.refresh_from_db()
        self.assertEqual(run.state, "done")

    def test_a_run_as_a_group_has_only_the_rights_of_the_group(self):
        secret = make_document("secret.md", [f"{WORDS} Mine."], users=[self.manager])
        self.question(LEAVE, secret)
        set_audience(self.guide, Audience(group_ids=frozenset({self.crew.pk})))
        self.question("How long may days of leave be carried over?", self.guide)
        people = User.objects.count()
        ranks = [result.rank for result in self.run_all(self.crew).results.all()]
        self.assertEqual(ranks, [0, 1])
        self.assertTrue(all(result.rank for result in self.run_all().results.all()))
        self.assertEqual(User.objects.count(), people)

    def test_verified_answers_apply_in_a_run_too(self):
        make_verified(self.guide, question=LEAVE)
        self.question(LEAVE, self.guide)
        [result] = self.run_all().results.all()
        self.assertEqual((result.outcome, result.rank), ("verified", 1))

    def test_a_section_counts_only_in_its_document(self):
        book = make_document("book.md", [("page=1", 1, "", "Boats."), ("page=2", 2, "", "Leave is 30 days.")],
                             everyone=True)  # fmt: skip
        text = "How many days is leave?"
        self.question(text, book, place="page=2")
        self.question(text, book, place="page=1")
        ranks = [result.rank > 0 for result in self.run_all().results.all()]
        self.assertEqual(ranks, [True, False])

    def test_one_run_executes_at_a_time_and_cancelling_stops_it(self):
        self.question()
        run = running.start(self.manager, None, "")
        with self.assertRaisesMessage(running.EvaluationRefused, "in progress"):
            running.start(self.manager, None, "")
        self.client.post(f"{RUNS}{run.pk}/change/")
        running.continue_run(run.pk)
        run.refresh_from_db()
        self.assertEqual((run.state, run.results.get().outcome), ("cancelled", ""))
        running.start(self.manager, None, "")

    def test_a_run_resumes_in_another_job(self):
        for number in range(running.AT_ONCE + 1):
            self.question(f"{FERRIES} {number}")
        run = running.start(self.manager, None, "")
        running.continue_run(run.pk, seconds=0)
        self.assertEqual(run.results.exclude(outcome="").count(), running.AT_ONCE)
        self.assertEqual(ProcrastinateJob.objects.filter(task_name=running.TASK).count(), 2)
        running.continue_run(run.pk)
        run.refresh_from_db()
        self.assertEqual((run.state, run.results.filter(outcome="").count()), ("done", 0))

    def test_a_failure_ends_the_run_and_allows_the_next(self):
        self.question()
        run = running.start(self.manager, None, "")
        with (
            patch("chat.evaluation.running.ask", side_effect=ArithmeticError),
            self.assertLogs("chat.evaluation.running", "ERROR"),
        ):
            running.continue_run(run.pk)
        run.refresh_from_db()
        self.assertEqual(run.state, "failed")

    def test_a_run_needs_questions(self):
        with self.assertRaisesMessage(running.EvaluationRefused, "no question"):
            running.start(self.manager, None, "")


@pytest.mark.slow
class RightsTests(EvaluationCase):
    """A manager learns of a document that they may not read neither from a question nor from a result."""

    def setUp(self):
        super().setUp()
        self.other = make_user("otto", is_staff=True, groups=["Board"])
        self.other.user_permissions.set(Permission.objects.filter(codename__in=RIGHTS))
        self.board = Group.objects.get(name="Board")
        self.closed = make_document(
            "layoffs.md", ["The plant in Krefeld closes in May."], groups=[self.board]
        )
        self.theirs = ProofQuestion.objects.create(text="When does Krefeld close?", document=self.closed)
        self.question(LEAVE, self.guide)

    def test_questions_about_closed_documents_are_shown_to_nobody_else(self):
        run = self.run_all(self.board, self.other)
        for page in (QUESTIONS, f"{QUESTIONS}questions.csv", RUNS):
            self.assertNotContains(self.client.get(page), "Krefeld")
        self.assertEqual(self.client.get(f"{QUESTIONS}{self.theirs.pk}/change/").status_code, 302)
        self.assertEqual(self.client.get(f"{RUNS}{run.pk}/change/").status_code, 404)
        mine = self.run_all()
        self.assertEqual([result.question.text for result in mine.results.all()], [LEAVE])
        address = f"{RUNS}compare/?before={run.pk}&after={mine.pk}"
        self.assertEqual(self.client.get(address).status_code, 404)

    def test_a_shared_run_counts_for_each_manager_what_they_may_see(self):
        self.manager.groups.add(self.board)
        self.question("Does the plant in Krefeld close?", self.closed)
        run = self.run_all(self.board)
        self.assertContains(self.client.get(f"{RUNS}{run.pk}/change/"), "3 of 3 questions")
        set_audience(self.closed, Audience(user_ids=frozenset({self.other.pk})))
        page = self.client.get(f"{RUNS}{run.pk}/change/")
        self.assertContains(page, "1 of 1 question")
        self.assertNotContains(page, "Krefeld")
        self.assertNotContains(page, "layoffs.md")

    def test_running_as_any_group_requires_the_permission_to_search_as_others(self):
        self.assertNotContains(self.client.get(f"{RUNS}add/"), "Board")
        self.client.post(f"{RUNS}add/", {"group": "Board"})
        self.assertFalse(ProofRun.objects.exists())
        self.manager.user_permissions.add(Permission.objects.get(codename="view_as_others"))
        response = self.client.post(f"{RUNS}add/", {"group": "Board", "note": "before the move"})
        self.assertEqual(response.status_code, 302)
        entry = AuditEntry.objects.get(action="proof_started")
        self.assertIn("with the rights of Board: before the move", entry.subject)
        run = ProofRun.objects.get()
        running.continue_run(run.pk)
        page = self.client.get(f"{RUNS}{run.pk}/change/")
        self.assertEqual(self.looks, ["proof_read"])
        self.assertNotContains(page, "Krefeld")

    def test_the_pages_need_their_permissions(self):
        self.manager.user_permissions.set([])
        run = self.run_all()
        paths = [QUESTIONS, f"{QUESTIONS}collect/", f"{QUESTIONS}file/", f"{QUESTIONS}questions.csv", RUNS]
        for path in [*paths, f"{RUNS}add/", f"{RUNS}{run.pk}/change/", f"{RUNS}compare/?before=1&after=1"]:
            self.assertEqual(self.client.get(path).status_code, 403, path)
        self.assertEqual(self.client.post(f"{RUNS}{run.pk}/change/").status_code, 403)


@pytest.mark.slow
class ComparingTests(EvaluationCase):
    def test_a_withdrawn_document_makes_the_proof_worse_and_the_page_says_so(self):
        places = ["Krefeld", "Bremen", "Kassel", "Passau", "Erfurt", "Lindau", "Görlitz"]
        offices = [
            make_document(f"{place}.md", [f"The office in {place} opens at seven."], everyone=True)
            for place in places
        ]
        for place, document in zip(places, offices, strict=True):
            self.question(f"When does the office in {place} open?", document)
        before = self.run_all()
        for document in offices[:3]:
            delete_document(document)
        little = self.run_all()
        page = self.client.get(f"{RUNS}compare/?before={before.pk}&after={little.pk}")
        self.assertContains(page, "a document that was deleted")
        for document in offices[3:]:
            delete_document(document)
        after = self.run_all()
        page = self.client.get(f"{RUNS}compare/?before={before.pk}&after={after.pk}")
        self.assertContains(page, "<strong>Worse.</strong>")
        self.assertContains(page, "0 turned right and")
        self.assertContains(page, "7 turned wrong")
        self.assertContains(page, "7 answered, 0 by verified answers,")
        self.assertContains(page, "−100.0 percentage points (−100.0 to −18.1)")

    def test_equal_results_and_changed_expectations_are_not_differences(self):
        question = self.question(LEAVE, self.guide)
        self.question(FERRIES)
        before, after = self.run_all(), self.run_all()
        address = f"{RUNS}compare/?before={before.pk}&after={after.pk}"
        self.assertContains(self.client.get(address), "<strong>No difference.</strong>")
        question.place = "page=9"
        question.save()
        after = self.run_all()
        page = self.client.get(f"{RUNS}compare/?before={before.pk}&after={after.pk}")
        self.assertContains(page, "Of 1 question that both runs asked")
        self.assertContains(page, "2 questions were in only one of the runs")

    def test_addresses_that_name_no_run_are_refused(self):
        self.assertEqual(self.client.get(f"{RUNS}compare/").status_code, 404)
        for query in (
            "before=9&after=9",
            "before=x&after=1",
            "before=-1&after=1",
            f"before={'9' * 5000}&after=1",
        ):
            self.assertEqual(self.client.get(f"{RUNS}compare/?{query}").status_code, 404, query[:20])
        self.assertEqual(self.client.get(f"{RUNS}abc/change/").status_code, 404)


class QuestionTests(EvaluationCase):
    def upload(self, text):
        file = SimpleUploadedFile("questions.csv", text if isinstance(text, bytes) else text.encode())
        return self.client.post(f"{QUESTIONS}file/", {"upload": file}, follow=True)

    def test_a_question_is_written_by_hand_with_one_expectation(self):
        page = self.client.post(f"{QUESTIONS}add/", {"text": LEAVE, "document": self.guide.pk})
        self.assertEqual(page.status_code, 302)
        self.assertEqual(self.entries(), ["proof_changed"])
        both = {"text": FERRIES, "document": self.guide.pk, "wants_nothing": "on"}
        for values in ({"text": FERRIES}, both):
            self.assertContains(self.client.post(f"{QUESTIONS}add/", values), "Choose the document")
        closed = make_document("closed.md")
        page = self.client.post(f"{QUESTIONS}add/", {"text": FERRIES, "document": closed.pk})
        self.assertContains(page, "not one of the available choices")

    def test_the_form_has_no_buttons_to_change_or_delete_the_document(self):
        self.client.force_login(User.objects.create_superuser("root"))
        page = self.client.get(f"{QUESTIONS}add/")
        self.assertContains(page, 'name="document"')
        self.assertNotContains(page, "related-widget-wrapper-link")

    def test_the_button_that_starts_a_run_has_the_same_name_everywhere(self):
        page = self.client.get(RUNS)
        self.assertContains(page, "Run an evaluation")
        self.assertNotContains(page, "Add evaluation")

    def test_the_form_is_prefilled_with_an_unanswered_question(self):
        address = f"{QUESTIONS}add/?origin=unanswered&text=Who+pays%3F"
        self.assertContains(self.client.get(address), 'value="Who pays?"')
        group = "0a" * 32
        sent = {"text": "Who pays?", "wants_nothing": "on"}
        saved = self.client.post(f"{address}&unanswered={group}", sent)
        self.assertEqual(ProofQuestion.objects.get().origin, "unanswered")
        self.assertTrue(saved.headers["Location"].endswith(f"/unanswered/?group={group}#group-{group}"))

    def test_a_file_saved_by_excel_with_semicolons_or_as_unicode_text_is_accepted(self):
        for separator, encoding in ((";", "utf-8-sig"), ("\t", "utf-16")):
            ProofQuestion.objects.all().delete()
            rows = [["question", "document", "place"], ["Größe, and when; how?", "guide.md", ""]]
            written = io.StringIO()
            csv.writer(written, delimiter=separator).writerows(rows)
            self.assertContains(self.upload(written.getvalue().encode(encoding)), "Added: 1")
            self.assertEqual(ProofQuestion.objects.get().text, rows[1][0])

    def test_an_exported_file_can_be_imported(self):
        self.question(LEAVE, self.guide, place="page=4")
        self.question("=1+1, or not?")
        self.question("'=1 is what?")
        twin = make_document("twin.md", everyone=True)
        make_document("twin.md", folder="b", everyone=True)
        self.question("Which twin?", twin)
        file = self.client.get(f"{QUESTIONS}questions.csv").content.decode("utf-8-sig")
        lines = ["question,document,place", f"{LEAVE},guide.md,page=4", "\"'=1+1, or not?\",nothing,",
                 "''=1 is what?,nothing,", f"Which twin?,{twin.public_id},"]  # fmt: skip
        self.assertEqual(file.splitlines(), lines)
        before = set(ProofQuestion.objects.values_list("text", "document", "place", "wants_nothing"))
        self.assertContains(self.upload(file), "Added: 0.")
        ProofQuestion.objects.all().delete()
        self.assertContains(self.upload(file), "Added: 4.")
        again = set(ProofQuestion.objects.values_list("text", "document", "place", "wants_nothing"))
        self.assertEqual(again, before)

    def test_an_export_leaves_out_questions_whose_document_was_deleted(self):
        gone = make_document("gone.md", everyone=True)
        question = self.question("What was there?", gone)
        ProofQuestion.objects.filter(pk=question.pk).update(added_by=self.manager)
        gone.delete()
        self.question("And now?")
        self.assertContains(self.client.get(QUESTIONS), "What was there?")
        file = self.client.get(f"{QUESTIONS}questions.csv").content.decode("utf-8-sig")
        self.assertEqual(file.splitlines(), ["question,document,place", "And now?,nothing,"])
        self.assertContains(self.upload(file), "Added: 0.")

    def test_a_bad_line_is_named_and_nothing_is_imported(self):
        make_document("closed.md")
        good = f"question,document\n{LEAVE},guide.md\n"
        for line, words in (
            ("Who?,missing.md", "Line 3: you can read no document"),
            ("Who?,closed.md", "Line 3: you can read no document"),
            ("Who?,", "Line 3: name the document"),
            ("Who?", "Line 3: its number of columns is 1"),
            (",guide.md", "Line 3: a question has 1 to 500 characters"),
            (f"{'x' * 501},nothing", "Line 3: a question has 1 to 500 characters"),
            ("Who?,nothing,page=3", "Line 3: “nothing” cannot have a place"),
            ('"Who?,nothing', "Line 3: unexpected end of data"),
            ("Who?\0,nothing", "Line 3: "),
        ):
            page = self.upload(good + line)
            self.assertContains(page, words, msg_prefix=line)
            self.assertContains(page, "Nothing was imported.")
        self.assertContains(self.upload(good.encode() + b"\xff,nothing"), "Line 3: this is not UTF-8")
        self.assertFalse(ProofQuestion.objects.exists())

    def test_a_file_cannot_exceed_the_limit_of_questions(self):
        self.question(LEAVE, self.guide)
        with patch.object(evaluation_questions, "MAX_QUESTIONS", 1):
            page = self.upload(f"{FERRIES},nothing\n")
            self.assertContains(page, "The file has new questions: 1; there is room for 0.")
            with patch.object(
                evaluation_questions, "resolver_for", return_value=None
            ):  # no line after the limit is looked up
                page = self.upload(f"{FERRIES},nothing\nWho?,nothing\nWhat?,missing.md\n")
            self.assertContains(page, "Line 2: a file holds at most 1 questions.")

    def test_questions_are_taken_from_verified_answers_and_good_ones_whose_askers_agreed(self):
        make_verified(self.guide, question="When must carried leave be used?", owner=self.manager)
        closed = make_document("closed.md")
        for text, document, shared in (
            ("May I carry leave over?", self.guide, True),
            ("Is this a secret?", self.guide, False),
            ("What is closed?", closed, True),
        ):
            _, answer = answered(make_user(), document, text)
            Feedback.objects.create(message=answer, rating="good", shared=shared)
        page = self.client.get(f"{QUESTIONS}collect/")
        for words in ("When must carried leave be used?", "May I carry leave over?"):
            self.assertContains(page, words)
        for words in ("secret", "What is closed"):
            self.assertNotContains(page, words)
        keys = [each.key for each in evaluation_questions.proposals(self.manager)]
        self.client.post(f"{QUESTIONS}collect/", {"chosen": keys[1:]})
        added = ProofQuestion.objects.get()
        self.assertEqual((added.text, added.origin), ("May I carry leave over?", "feedback"))
        self.assertEqual(len(evaluation_questions.proposals(self.manager)), 1)
        self.assertEqual(self.entries(), ["proof_changed"])

    def test_deleting_a_question_names_only_it_and_deletes_its_results(self):
        question = self.question()
        self.run_all()
        page = self.client.get(f"{QUESTIONS}{question.pk}/delete/")
        self.assertContains(page, FERRIES if question.text == FERRIES else LEAVE)
        self.client.post(f"{QUESTIONS}{question.pk}/delete/", {"post": "yes"})
        self.assertFalse(ProofResult.objects.exists())


def results(pattern):
    """(before, after), with R for a right answer and W for a wrong one."""
    made = {
        letter: SimpleNamespace(
            wants_nothing=False, outcome="answered", is_right=letter == "R", statements=2,
            supported=2 if letter == "R" else 1,
        )
        for letter in "RW"
    }  # fmt: skip
    return [(made[one], made[two]) for one, two in pattern]


@pytest.mark.parametrize(
    ("better", "worse", "same", "p", "low", "high", "verdict"),
    # p of scipy.stats.binomtest(better, better + worse), interval of its proportion_ci(method="exact").
    [
        (0, 0, 10, 1.0, 0.0, 0.0, "same"),
        (0, 5, 20, 0.0625, -0.2, 0.008728, "chance"),
        (0, 6, 20, 0.03125, -0.230769, -0.018804, "worse"),
        (9, 1, 40, 0.021484, 0.021995, 0.198988, "better"),
        (12, 8, 80, 0.503445, -0.055785, 0.123524, "chance"),
    ],
)
def test_the_significance_of_a_change_equals_that_of_scipy(better, worse, same, p, low, high, verdict):
    change = run_comparison.compare(results(["WR"] * better + ["RW"] * worse + ["RR"] * same))
    assert (change.better, change.worse, change.total) == (better, worse, better + worse + same)
    assert change.p == pytest.approx(p, abs=1e-6)
    assert (change.low, change.high) == pytest.approx((low, high), abs=1e-5)
    assert change.verdict == verdict


def test_shares_have_wilson_intervals():
    share = run_comparison.wilson(8, 10)
    assert (share.low, share.high) == pytest.approx((0.490162, 0.943318), abs=1e-6)
    assert run_comparison.wilson(0, 0).percent == 0
    assert run_comparison.wilson(0, 5).low == 0.0


def test_the_share_of_supported_statements_is_compared_question_by_question():
    interval = run_comparison.compare_support(results(["WR"] * 10 + ["RR"] * 10))
    assert interval.mean == pytest.approx(0.25)
    assert 0.1 < interval.low < 0.25 < interval.high < 0.4
    assert run_comparison.compare_support([]) is None
