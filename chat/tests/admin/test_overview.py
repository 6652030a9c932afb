"""The figures on the first page of the admin: what the worker counts, and which figures a manager sees."""

import csv
import re
from datetime import timedelta
from io import StringIO
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import TestCase, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from procrastinate.contrib.django import app

from chat.llm.chat_model import MAX_TOKENS, NOTHING_FITS
from chat.models import Run
from chat.overview import first_word
from chat.overview.charts import stacked
from chat.overview.counting import count_ended_runs
from chat.overview.models import Asker, CountedUntil, DayFigures, DocumentUse
from chat.persons.erasure import erase
from chat.tests.conversations import answered
from chatsite.accounts.models import User
from history.models import Conversation, Feedback, Message
from history.tally import UNSURE
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user


def run_of(person, document, *, days_ago=0, first_word_ms=1_200, **values):
    """Create a question of that day with its answer and its finished run, and return the answer."""
    conversation, answer = answered(person, document, **values)
    moment = timezone.now() - timedelta(days=days_ago, minutes=5)
    run = Run.objects.create(
        owner=person,
        conversation=conversation,
        question=conversation.messages.get(position=0),
        answer=answer,
        body_digest="d",
        created_at=moment,
        finished_at=moment + timedelta(seconds=10),
        first_word_ms=first_word_ms,
    )
    conversation.messages.update(run_id=run.pk, created_at=moment)
    return answer


def sums(group=None):
    rows = DayFigures.objects.filter(group=group)
    names = ("questions", "answered", "unsure", "refused", "failed", "stopped", "prompt_tokens")
    return {name: sum(getattr(row, name) for row in rows) for name in names}


class CountingTests(TestCase):
    def setUp(self):
        self.document = make_document(everyone=True)
        self.crew = Group.objects.create(name="Crew")
        self.ada = make_user("ada", groups=["Crew"])
        self.ben = make_user("ben")

    def test_each_answer_is_counted_by_how_it_ended(self):
        run_of(self.ada, self.document, usage={"prompt": 100, "completion": 20})
        run_of(self.ada, self.document, text=NOTHING_FITS, citations=[])
        run_of(self.ben, self.document, text="Perhaps.", citations=[])
        run_of(self.ben, self.document, text="", state="failed", citations=[], first_word_ms=None)
        run_of(self.ben, self.document, text="Fi", state="stopped", citations=[])
        self.assertEqual(count_ended_runs(), 5)
        everyone = {"questions": 5, "answered": 1, "refused": 1, "unsure": 1, "failed": 1, "stopped": 1}
        self.assertEqual(sums(), everyone | {"prompt_tokens": 100})
        self.assertEqual(sums(self.crew)["questions"], 2)
        self.assertEqual(DayFigures.objects.get(group=None).people, 2)
        self.assertEqual(DayFigures.objects.get(group=self.crew).people, 1)
        self.assertEqual(sum(DayFigures.objects.get(group=None).first_words), 4)

    def test_an_impossible_number_of_tokens_does_not_stop_the_counting(self):
        run_of(self.ada, self.document, usage={"prompt": 10**23, "completion": 20})
        run_of(self.ada, self.document, usage={"prompt": -5, "completion": 20})
        self.assertEqual(count_ended_runs(), 2)
        self.assertEqual(sums()["prompt_tokens"], MAX_TOKENS)

    def test_counting_again_counts_only_what_ended_since(self):
        run_of(self.ada, self.document)
        count_ended_runs()
        before = list(DayFigures.objects.order_by("pk").values())
        self.assertEqual(count_ended_runs(), 0)
        self.assertEqual(list(DayFigures.objects.order_by("pk").values()), before)
        CountedUntil.objects.update(finished_at=timezone.now() - timedelta(hours=1))
        Run.objects.update(finished_at=timezone.now() - timedelta(hours=2))
        run_of(self.ben, self.document)
        self.assertEqual(count_ended_runs(), 1)
        self.assertEqual(sums()["questions"], 2)
        self.assertEqual(DayFigures.objects.get(group=None).people, 2)

    def test_a_worker_catches_up_day_by_day_after_an_outage(self):
        for days_ago in (40, 3, 3, 0):
            run_of(self.ada, self.document, days_ago=days_ago)
        with patch("chat.overview.counting.RUNS_AT_ONCE", 1):
            self.assertEqual(count_ended_runs(), 4)
        self.assertEqual(
            list(DayFigures.objects.filter(group=None).order_by("day").values_list("questions", flat=True)),
            [1, 2, 1],
        )

    def test_an_answer_that_just_ended_is_counted_after_its_transaction_must_have_ended(self):
        run_of(self.ada, self.document)
        Run.objects.update(finished_at=timezone.now())
        self.assertEqual(count_ended_runs(), 0)

    def test_figures_are_counted_as_often_as_unanswered_questions(self):
        times = {each.task.name: each.cron for each in app.periodic_registry.periodic_tasks.values()}
        self.assertEqual(times["chat.count_ended_runs"], times["chat.judge_questions"])

    def test_documents_are_counted_by_answers_that_found_and_cited_them(self):
        other = make_document("other.md", everyone=True)
        run_of(self.ada, self.document)
        run_of(self.ada, self.document)
        run_of(self.ada, other, text="Perhaps.", citations=[])
        count_ended_runs()
        used = {use.document_id: (use.found, use.cited) for use in DocumentUse.objects.all()}
        self.assertEqual(used, {self.document.pk: (2, 2), other.pk: (1, 0)})

    def test_figures_remain_when_conversations_and_people_are_deleted(self):
        run_of(self.ada, self.document)
        run_of(self.ben, self.document)
        count_ended_runs()
        Conversation.objects.filter(owner=self.ben).delete()
        erase(self.ada, actor=None)
        self.assertEqual(count_ended_runs(), 0)
        self.assertEqual(sums()["questions"], 2)
        self.assertEqual(DayFigures.objects.get(group=None).people, 2)
        self.assertEqual(list(Asker.objects.values_list("person", flat=True)), [self.ben.pk])

    def test_times_to_the_first_word_are_shown_in_steps(self):
        counts = []
        for milliseconds in (90, 1_300, 1_350, 1_390, 40_000):
            first_word.add(counts, milliseconds)
        self.assertTrue(1.0 <= first_word.quantile(counts, 0.5) <= 1.4)
        self.assertEqual(first_word.quantile(counts, 1), 30.0)
        self.assertIsNone(first_word.quantile([], 0.5))

    def test_columns_of_the_chart_are_proportional_to_their_figures(self):
        chart = stacked([("1 Nov", [30, 0, 10]), ("2 Nov", []), ("3 Nov", [60])])
        heights = [bar.height for bar in chart.bars]
        self.assertAlmostEqual(heights[0], 3 * heights[1], delta=0.2)
        self.assertAlmostEqual(heights[2], 2 * heights[0], delta=0.2)
        self.assertEqual([label.text for label in chart.scale], ["0", "20", "40", "60"])
        self.assertEqual(stacked([]).bars, [])


@pytest.mark.slow
class PageTests(TestCase):
    def setUp(self):
        self.manager = make_user("manager", is_staff=True)
        self.manager.user_permissions.add(Permission.objects.get(codename="view_figures"))
        self.client.force_login(self.manager)
        self.open = make_document("open.md", title="Open guide", everyone=True)
        self.closed = make_document("closed.md", title="Closed plans")
        self.crew = [make_user(f"crew{number}", groups=["Crew"]) for number in range(3)]
        self.pair = [make_user(f"pair{number}", groups=["Pair"]) for number in range(2)]

    def lines(self, part, query=""):
        answer = self.client.get(f"/admin/figures/{part}.csv{query}")
        self.assertEqual(answer.headers["Content-Type"], "text/csv; charset=utf-8")
        return list(csv.DictReader(StringIO(answer.content.decode())))

    def test_coordinates_of_the_chart_have_points_in_every_language(self):
        run_of(self.crew[0], self.open)
        count_ended_runs()
        page = self.client.get("/admin/", headers={"accept-language": "de"}).content.decode()
        chart = page.partition('<svg class="chart"')[2].partition("</svg>")[0]
        self.assertIn("<rect", chart)
        self.assertEqual(re.findall(r' (?:x|y|width|height|d)="[^"]*,[^"]*"', chart), [])

    def test_closest_passages_have_a_share_beside_the_answered_questions(self):
        for person, content in zip(
            self.crew,
            ("Five days [open.md-1].", f"{UNSURE}\n\nFive days [open.md-1].", NOTHING_FITS),
            strict=True,
        ):
            answer = run_of(person, self.open)
            Message.objects.filter(pk=answer.pk).update(content=content)
        count_ended_runs()
        totals = self.client.get("/admin/").context["figures"].totals
        shares = (totals.share_answered, totals.share_unsure, totals.share_refused)
        self.assertEqual([round(share) for share in shares], [33, 33, 33])
        self.assertContains(self.client.get("/admin/"), "closest passages, or no source: 33 %")

    def test_the_first_page_shows_what_was_counted(self):
        for person in (*self.crew, *self.pair):
            run_of(person, self.open)
        Feedback.objects.create(
            message=Message.objects.filter(role="assistant").first(), rating="bad", reasons=["outdated"]
        )
        count_ended_runs()
        page = self.client.get("/admin/")
        self.assertContains(page, "100 %")
        self.assertContains(page, "It is out of date 1")
        self.assertContains(page, "Open guide")
        self.assertContains(page, "counted just now")
        self.assertEqual(page.context["figures"].totals.questions, 5)
        self.assertEqual(page.context["figures"].people, 5)
        today = self.lines("days")[-1]
        self.assertEqual((today["day"], today["questions"]), (str(timezone.localdate()), "5"))

    def test_the_queue_has_its_name_on_the_page(self):
        self.client.force_login(User.objects.create_superuser("root"))
        page = self.client.get("/admin/")
        self.assertNotContains(page, "Procrastinate")
        self.assertContains(page, "Background jobs")
        self.assertContains(
            self.client.get("/admin/procrastinate/procrastinatejob/"), "<h1>Queue</h1>", html=True
        )

    def test_without_the_permission_there_are_no_figures(self):
        clerk = make_user("clerk", is_staff=True)
        self.client.force_login(clerk)
        self.assertNotContains(self.client.get("/admin/"), "Overview")
        self.assertEqual(self.client.get("/admin/figures/days.csv").status_code, 403)

    def test_an_address_with_another_period_or_group_shows_the_default(self):
        for query in ("days=x&group=y", "days=-7", "days=9999999999999999999999", "group=²"):
            page = self.client.get(f"/admin/?{query}")
            self.assertContains(page, "Overview", msg_prefix=query)
            self.assertEqual(self.client.get(f"/admin/figures/days.csv?{query}").status_code, 200, query)

    def test_titles_of_readable_documents_are_shown_and_others_counted(self):
        run_of(self.crew[0], self.closed)
        run_of(self.crew[0], self.open)
        make_document("secret.md", title="Never seen")
        Document.objects.create(
            name="payroll.pdf", access_list=self.closed.access_list, status="failed", size=1, media_type="x"
        )
        count_ended_runs()
        page = self.client.get("/admin/")
        for hidden in ("Closed plans", "Never seen", "payroll.pdf"):
            self.assertNotContains(page, hidden)
        self.assertContains(page, "2 in all, 1 of them documents that you may not read")
        self.assertEqual(page.context["figures"].most_used.closed, 1)
        self.assertEqual(page.context["figures"].failed_files.closed, 1)
        self.assertEqual([row["title"] for row in self.lines("documents")], ["Open guide"])

    def test_no_manager_sees_names_that_only_named_people_may_read(self):
        canaries = ("Divorce of CANARY-1", "Offer of CANARY-2")
        named = make_document("canary-1.md", title=canaries[0], owner=self.crew[0], users=[self.crew[1]])
        make_document("canary-2.md", title=canaries[1], owner=self.crew[0])
        for person in self.crew:
            run_of(person, named)
        count_ended_runs()
        rights = ["view_document", "change_document", "delete_document", "view_auditentry"]
        for codename in ("", *rights):
            self.manager.user_permissions.add(*Permission.objects.filter(codename=codename))
            page = self.client.get("/admin/")
            written = [
                page.content.decode(),
                *(str(self.lines(part)) for part in ("days", "groups", "documents")),
            ]
            self.assertNotIn("canary", "".join(written).lower(), codename)
            self.assertEqual(page.context["figures"].most_used.closed, 1)

    def test_failed_files_are_named_by_the_rule_of_the_list_of_documents(self):
        self.manager.user_permissions.add(Permission.objects.get(codename="view_document"))
        group = Group.objects.get(name="Crew")
        make_document("roster.pdf", owner=self.crew[0], groups=[group])
        make_document("divorce.pdf", owner=self.crew[0])
        Document.objects.filter(name__in=["roster.pdf", "divorce.pdf"]).update(status="failed")
        for page in (self.client.get("/admin/"), self.client.get("/admin/ingestion/document/")):
            self.assertContains(page, "roster.pdf")
            self.assertNotContains(page, "divorce.pdf")
        self.assertContains(self.client.get("/admin/"), "2 in all, 1 of them documents that you may not read")

    def test_groups_of_fewer_than_three_who_asked_are_not_shown(self):
        for person in (*self.crew, *self.pair):
            run_of(person, self.open)
        count_ended_runs()
        self.assertEqual([row["group"] for row in self.lines("groups")], ["Crew"])
        page = self.client.get("/admin/", {"group": Group.objects.get(name="Pair").pk})
        self.assertIsNone(page.context["figures"].scope.group)
        self.assertNotContains(page, "Pair")
        page = self.client.get("/admin/", {"group": Group.objects.get(name="Crew").pk, "days": 7})
        self.assertEqual(page.context["figures"].totals.questions, 3)

    def test_the_ten_largest_groups_are_shown_first(self):
        for number in range(12):
            group = Group.objects.create(name=f"Group {number:02}")
            group.user_set.set(self.crew)
        for person in self.crew:
            run_of(person, self.open)
        count_ended_runs()
        shown, _, folded = self.client.get("/admin/").text.partition("3 more\n")
        self.assertIn("<bdi>Group 08</bdi>", shown)
        self.assertIn("<bdi>Group 11</bdi>", folded)

    def test_the_days_of_a_group_are_added_up(self):
        for days_ago in (0, 1, 2):
            for person in self.crew:
                run_of(person, self.open, days_ago=days_ago)
        count_ended_runs()
        (crew,) = self.lines("groups")
        self.assertEqual((crew["questions"], crew["answered"]), ("9", "9"))

    def test_days_on_which_fewer_than_three_of_a_group_asked_are_left_out(self):
        for person in self.crew:
            run_of(person, self.open)
        run_of(self.crew[0], self.open, days_ago=2)
        count_ended_runs()
        group = Group.objects.get(name="Crew").pk
        page = self.client.get("/admin/", {"group": group})
        self.assertEqual(page.context["figures"].totals.questions, 3)
        self.assertContains(page, "fewer than 3 people")
        days = {row["day"]: row for row in self.lines("days", f"?group={group}")}
        closed = days[str(timezone.localdate() - timedelta(days=2))]
        self.assertEqual((closed["people"], closed["questions"]), ("fewer than 3", ""))
        self.assertEqual(self.lines("groups")[0]["questions"], "3")

    @override_settings(PRICE_PROMPT=2.0, PRICE_COMPLETION=10.0, PRICE_CURRENCY="CHF")
    def test_token_costs_follow_the_settings(self):
        run_of(self.crew[0], self.open, usage={"prompt": 1_000_000, "completion": 300_000})
        count_ended_runs()
        self.assertContains(self.client.get("/admin/"), "5.00 CHF")

    def test_no_cell_of_an_exported_file_is_a_formula(self):
        for person in self.crew:
            person.groups.add(Group.objects.get_or_create(name="=SUM(A1)")[0])
            run_of(person, self.open)
        count_ended_runs()
        self.assertIn("'=SUM(A1)", [row["group"] for row in self.lines("groups")])

    def test_the_number_of_queries_does_not_grow_with_the_days(self):
        for days_ago in range(20):
            run_of(self.crew[days_ago % 3], self.open, days_ago=days_ago)
        count_ended_runs()
        with CaptureQueriesContext(connection) as queries:
            self.client.get("/admin/", {"days": 90})
        self.assertLessEqual(len(queries), 24)
