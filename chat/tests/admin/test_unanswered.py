"""Unanswered questions: which ones count, how they are grouped, and what a content manager never sees."""

import html
import re
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from chat.llm.chat_model import NOTHING_FITS, NOTHING_FOUND
from chat.tests.engine.test_verified_answers import CANARY
from chat.tests.unanswered_case import FERRY, PAGE, UnansweredCase
from chat.unanswered.models import UnansweredQuestion
from chat.unanswered.question_judging import judge_new
from chat.unanswered.question_likeness import alike
from chat.unanswered.unanswered_list import read_texts, unanswered
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from history.models import Conversation, Feedback, Message, Source
from history.tally import UNSURE
from ingestion.models import Passage
from ingestion.tests.factories import make_document, make_user


class UnansweredTests(UnansweredCase):
    def test_refused_unsure_and_badly_rated_answers_count_and_good_ones_do_not(self):
        refused = [(each, []) for each in NOTHING_FOUND]
        for answer, cited in (*refused, (f"{UNSURE}\n\n> x [a.md]", ["a.md"]), ("I think so.", [])):
            self.ask(FERRY, answer=answer, citations=cited)
        bad = self.ask(FERRY, answer="The ferry [a.md].", citations=["a.md"])
        Feedback.objects.create(message=bad, rating="bad")
        self.ask(FERRY, answer="The ferry pays [a.md].", citations=["a.md"])
        helped = self.ask(FERRY, answer=f"{UNSURE}\n\n> The ferry [a.md]", citations=["a.md"])
        Feedback.objects.create(message=helped, rating="good")
        self.ask(FERRY, at=timezone.now() - timedelta(days=31))
        [group] = self.found().groups
        self.assertEqual((group.times, group.people), (7, 7))
        self.assertEqual(
            dict(group.reasons), {"nothing found": 4, "the search was unsure": 2, "marked bad": 1}
        )

    def test_only_a_rephrased_question_within_two_minutes_counts(self):
        good = {"answer": "Yes [a.md].", "citations": ["a.md"]}
        at = timezone.now() - timedelta(hours=1)
        for number in range(3):
            person = make_user(f"again{number}")
            self.ask(FERRY, person=person, at=at, **good)
            self.ask("Who pays when I miss my train after a late ferry?", person=person,
                     at=at + timedelta(seconds=100), **good)  # fmt: skip
            other = make_user(f"other{number}")
            self.ask("When is the canteen open?", person=other, at=at, **good)
            self.ask("How do I book a meeting room?", person=other, at=at + timedelta(seconds=60), **good)
        [group] = self.found().groups
        self.assertEqual(group.reasons, [("asked again", 3)])

    def test_situations_are_listed_separately_unless_an_answer_was_rated_bad(self):
        told = "I lost my badge on the tram, who do I ring?"
        for _ in range(4):
            self.ask(told)
        for _ in range(3):
            self.ask("Which form cancels a badge?")
        self.assertEqual([group.may_be_answered for group in self.found().groups], [False, True])
        page = html.unescape(self.page().content.decode())
        places = [page.index(words) for words in ("Which form cancels", "in everyday words", told)]
        self.assertEqual(places, sorted(places))
        self.assertNotIn("Search for it", page)
        self.manager.user_permissions.add(Permission.objects.get(codename="view_as_others"))
        second = html.unescape(self.page("?reason=told").content.decode())
        searched = dict(re.findall(r'name="(person|question)" value="([^"]+)"', second))
        self.assertEqual(searched, {"person": "ines", "question": told})
        self.assertContains(
            self.client.post(reverse("admin:ingestion_document_access"), searched), "ines</bdi> finds"
        )
        self.assertIn(told, second)
        self.assertNotIn("Which form cancels", second)
        Feedback.objects.create(message=self.ask(told), rating="bad")
        self.assertEqual([group.times for group in self.found().groups], [5, 3])
        self.assertNotIn("in everyday words", self.page().content.decode())

    @patch("chat.unanswered.question_judging.MAX_ASKED", 3)
    def test_followed_questions_do_not_displace_unanswered_ones(self):
        for _ in range(3):
            self.ask(FERRY)
        good = {"answer": "Yes [a.md].", "citations": ["a.md"]}
        at = timezone.now() - timedelta(hours=1)
        for number in range(3):
            person = make_user(f"busy{number}")
            self.ask("When is the canteen open?", person=person, at=at, **good)
            self.ask("How do I book a room?", person=person, at=at + timedelta(seconds=60), **good)
        [group] = self.found().groups
        self.assertEqual((group.times, group.wordings), (3, [FERRY]))

    def test_the_page_says_since_when_if_the_list_is_full(self):
        for days in (1, 2, 3, 4):
            self.ask(FERRY, at=timezone.now() - timedelta(days=days))
        self.assertNotContains(self.page(), "more than fit")
        with patch("chat.unanswered.question_judging.MAX_ASKED", 3):
            since = date_format(timezone.localtime() - timedelta(days=3), "j M Y")
            self.assertContains(self.page(), f"those since {since} are listed")

    def test_similar_questions_are_grouped_unless_numbers_or_negations_differ(self):
        self.assertTrue(alike("How do I report a lost laptop?", "Where do I report my lost laptop?"))
        self.assertFalse(alike("How do I install Windows 10?", "How do I install Windows 11?"))
        self.assertFalse(alike("Which laptops are insured?", "Which laptops are not insured?"))
        self.assertFalse(alike("How do I report a lost laptop?", "How do I report sick?"))

    def test_questions_of_fewer_than_three_people_are_counted_and_never_shown(self):
        person = make_user()
        for _ in range(5):
            self.ask(f"Why was {CANARY} dismissed?", person=person)
        self.ask(f"Why was {CANARY} dismissed?")
        page = self.page()
        self.assertNotContains(page, CANARY)
        self.assertContains(page, "<strong>6 times</strong>")

    def test_the_first_page_counts_open_questions_by_the_rules_of_the_list(self):
        def counted():
            judge_new(everything=True)
            page = self.client.get("/admin/")
            return page, page.context.get("open_questions"), page.context.get("times_asked")

        page = self.client.get("/admin/")
        self.assertContains(page, "no open questions")
        self.assertNotContains(page, "Unlike the overview")
        for person in [make_user() for _ in range(2)]:
            self.ask(FERRY, person=person)
        page, *numbers = counted()
        self.assertEqual(numbers, [0, 0])  # asked by only two people
        self.assertContains(page, "no open question from 3 or more people")
        self.assertContains(page, "2 questions from fewer than 3 people")
        self.assertContains(page, "Of everyone in the last 30 days, counted just now.")
        self.assertContains(page, "Unlike the overview, this also counts")
        self.ask(FERRY)
        page, *numbers = counted()
        self.assertEqual(numbers, [1, 3])
        self.assertContains(page, "1 open question, asked 3 times")
        self.assertNotContains(page, "fewer than 3 people")
        self.assertContains(page, PAGE)
        self.assertNotContains(page, "ferry")
        self.manager.user_permissions.remove(Permission.objects.get(codename="view_unanswered"))
        page, *numbers = counted()
        self.assertEqual(numbers, [None, None])
        self.assertNotContains(page, "open question")

    def test_guests_and_programs_do_not_count_as_people(self):
        self.ask(f"Why was {CANARY} dismissed?")
        later = timezone.now() + timedelta(days=1)
        for values in ({"guest_until": later}, {"guest_until": later}, {"service_for": "Intranet"}):
            person = make_user()
            User.objects.filter(pk=person.pk).update(**values)
            self.ask(f"Why was {CANARY} dismissed?", person=person)
        page = self.page()
        self.assertNotContains(page, CANARY)
        self.assertContains(page, "<strong>4 times</strong>")

    def test_only_wordings_of_at_least_three_people_are_shown(self):
        for _ in range(3):
            self.ask(FERRY)
        self.ask(f"Who pays {CANARY} if I miss the train after a late ferry?")
        [group] = self.found().groups
        self.assertEqual((group.times, group.wordings), (4, [FERRY]))
        page = self.page()
        self.assertContains(page, FERRY)
        self.assertNotContains(page, CANARY)

    def test_without_a_common_wording_shared_words_name_the_group(self):
        self.ask("Who pays after a late ferry if I miss the train?")
        self.ask("Who pays if I miss the train after a late ferry trip?")
        self.ask(f"Who pays {CANARY} if I miss the train after a late ferry?")
        [group] = self.found().groups
        self.assertEqual(group.wordings, [])
        self.assertIn("ferry", group.words)
        page = self.page()
        self.assertContains(page, "About:")
        self.assertNotContains(page, CANARY)

    def test_a_word_form_of_fewer_than_three_people_is_not_shown(self):
        for text in ("Do trains run late?", "Does the train run late?", "Does the train ever run late?"):
            self.ask(text)
        read_texts([group := self.found().groups[0]])
        self.assertIn("train", group.words)
        self.assertNotIn("trains", group.words)

    def test_a_question_that_its_asker_shared_is_shown(self):
        said = self.ask(FERRY, answer="The ferry [a.md].", citations=[])
        Feedback.objects.create(message=said, rating="bad", shared=True)
        self.assertContains(self.page(), FERRY)

    def test_conversations_based_on_documents_closed_to_the_manager_are_not_shown(self):
        closed = make_document("plan.md", owner=make_user())
        for _ in range(3):
            first = self.ask("What is planned?", answer="Much [plan.md].", citations=["plan.md"])
            Source.objects.create(
                message=first, document=closed, document_version=1, rank=1, label="plan.md", title="Plan",
                passage_id=Passage.objects.get().pk, content="Much", score=1, found_by="words",
            )  # fmt: skip
            said = self.ask(f"Does {CANARY} close in May?", conversation=first.conversation)
            Feedback.objects.create(message=said, rating="bad", shared=True)
        [group] = self.found().groups
        self.assertEqual((group.times, group.wordings, group.words), (3, [], []))
        page = self.page()
        self.assertNotContains(page, CANARY)
        self.assertContains(page, "never from a conversation with a source that you may not read")
        closed.delete()
        self.assertNotContains(self.page(), CANARY)

    def test_the_list_is_limited_to_one_reason(self):
        for _ in range(3):
            self.ask(FERRY)
            self.ask("When is the canteen open?", answer=f"{UNSURE}\n\n> x [a.md]", citations=[])
        every = self.page()
        self.assertContains(every, ">The search was unsure</a> (1)")
        for reason, shown, not_shown in (
            ("refused", FERRY, "canteen"),
            ("unsure", "canteen", FERRY),
        ):
            page = self.page(f"?reason={reason}")
            self.assertContains(page, shown)
            self.assertNotContains(page, not_shown)
        for unknown in ("bad", "x"):
            self.assertContains(self.page(f"?reason={unknown}"), FERRY)

    def test_greetings_are_not_listed(self):
        for _ in range(3):
            self.ask("Hello!")
        self.assertEqual((self.found().groups, self.found().others), ([], 0))

    def test_questions_withdrawn_since_the_last_job_are_not_shown(self):
        said = self.ask(FERRY)
        feedback = Feedback.objects.create(message=said, rating="bad", shared=True)
        asked = [self.ask("When is the canteen open?") for _ in range(3)]
        self.assertContains(self.page(), FERRY)
        feedback.shared = False
        feedback.save()
        Conversation.objects.filter(pk=asked[0].conversation_id).update(deleted_at=timezone.now())
        page = self.client.get(PAGE)
        self.assertNotContains(page, FERRY)
        self.assertNotContains(page, "canteen")
        self.assertContains(page, "<strong>3 times</strong>")

    def test_only_changed_questions_are_judged_again(self):
        said = self.ask(FERRY)
        judge_new()
        self.assertFalse(UnansweredQuestion.objects.exists())  # because no run has ended
        Feedback.objects.create(message=said, rating="bad")
        judge_new()
        self.assertEqual(UnansweredQuestion.objects.get().reasons, ["refused", "bad", "told"])
        Feedback.objects.all().delete()
        judge_new()
        self.assertEqual(UnansweredQuestion.objects.get().reasons, ["refused", "told"])

    @pytest.mark.slow
    def test_a_thousand_questions_are_grouped_quickly(self):
        person = make_user()
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # the planner expects few questions, as before a large import
        opened = Conversation.objects.bulk_create(Conversation(owner=person) for _ in range(1_000))
        Message.objects.bulk_create(
            Message(conversation=conversation, position=position, role=role, content=content)
            for number, conversation in enumerate(opened)
            for position, role, content in (
                (0, "user", f"How do I order part {number} for ferry {number % 7}?"),
                (1, "assistant", NOTHING_FITS),
            )
        )
        judge_new(everything=True)
        with self.assertNumQueries(2):
            self.assertEqual(unanswered(Principal(self.manager.pk, "session")).others, 1_000)
