"""Cached trials of follow-up questions are shared only by people who may read the same documents."""

from unittest import mock

from django.test import TestCase

from chat.engine import trial
from chat.quoting.quoting_model import QuotingModel
from chat.requests import EarlierMessage
from chat.tests.scripted_model import ScriptedModel
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document
from ingestion.tests.documents import make_document, principal_of
from ingestion.tests.factories import make_user

MEALS = "Which meals are paid on a business trip abroad?"
TEXT = "Meals on a business trip abroad are paid up to forty euros a day, breakfast included."
HOTELS = "Which hotels may be booked on a business trip abroad?"


class FollowUpTrialTests(TestCase):
    def setUp(self):
        trial._outcomes.clear()
        self.addCleanup(trial._outcomes.clear)
        self.first, self.second = make_user("first"), make_user("second")
        self.document = make_document("travel.txt", [TEXT])
        tried = mock.patch.object(trial, "answering_passages", wraps=trial.answering_passages)
        self.tried = tried.start()
        self.addCleanup(tried.stop)

    def answerable(
        self, user, *questions, earlier="How do I claim expenses?", scope="", model=None, quoted=()
    ):
        said = [EarlierMessage("user", earlier), EarlierMessage("assistant", "With the form.")]
        return trial.answerable(
            principal_of(user),
            model or QuotingModel(),
            questions or (MEALS, HOTELS),
            said,
            scope=scope,
            readable=1,
            most=3,
            quoted=quoted,
        )

    def test_a_question_is_tried_once_for_all_who_may_read_the_same(self):
        self.assertEqual(self.answerable(self.first), [MEALS])
        self.assertEqual(self.tried.call_count, 2)
        self.assertEqual(self.answerable(self.second), [MEALS])
        self.assertEqual(
            self.answerable(self.first, earlier="Where is the canteen in Harbour Street?"), [MEALS]
        )
        self.assertEqual(self.tried.call_count, 2)

    def test_a_question_that_the_passages_just_read_answer_is_left_out(self):
        passage = self.document.passages.get().pk
        self.assertEqual(self.answerable(self.first, quoted={passage}), [])
        self.assertEqual(self.answerable(self.first, quoted={passage + 1}), [MEALS])
        self.assertEqual(self.tried.call_count, 2)

    def test_a_question_is_tried_again_for_people_with_other_rights(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.first.pk})))
        self.assertEqual(self.answerable(self.first), [MEALS])
        self.assertEqual(self.answerable(self.second), [])
        self.assertEqual(self.tried.call_count, 4)

    def test_a_question_is_tried_again_after_a_change_of_documents(self):
        self.assertEqual(self.answerable(self.first), [MEALS])
        set_audience(self.document, Audience(user_ids=frozenset({self.second.pk})))
        self.assertEqual(self.answerable(self.first), [])
        set_audience(self.document, Audience(everyone=True))
        self.assertEqual(self.answerable(self.first), [MEALS])
        self.document.passages.all().delete()
        Document.objects.filter(pk=self.document.pk).update(version=self.document.version + 1)
        self.assertEqual(self.answerable(self.first), [])
        other = make_document("again.txt", [TEXT])
        self.assertEqual(self.answerable(self.first), [MEALS])
        other.delete()
        self.assertEqual(self.answerable(self.first), [])

    def test_a_question_that_depends_on_its_conversation_is_tried_in_each(self):
        for earlier in ("Which meals are paid abroad?", "Which ferries leave Port Ellery on Sundays?"):
            self.answerable(self.first, "And what about breakfast?", earlier=earlier)
        self.assertEqual(self.tried.call_count, 2)

    def test_results_are_separate_for_each_scope_and_for_private_documents(self):
        Document.objects.filter(pk=self.document.pk).update(owner=self.first)
        self.assertEqual(self.answerable(self.first, scope="own"), [MEALS])
        self.assertEqual(self.answerable(self.second, scope="own"), [])
        self.assertEqual(self.answerable(self.second), [MEALS])

    def test_results_expire_and_are_limited_in_number(self):
        self.answerable(self.first, MEALS)
        with mock.patch.object(trial, "KEPT_SECONDS", 0):
            self.answerable(self.first, MEALS)
        self.assertEqual(self.tried.call_count, 2)
        with mock.patch.object(trial, "MAX_KEPT", 2):
            self.answerable(self.first, HOTELS, "Who pays for the ferry to the other office?")
        self.assertEqual(len(trial._outcomes), 2)
        self.answerable(self.first, MEALS)
        self.assertEqual(self.tried.call_count, 5)

    def test_with_a_language_model_nothing_is_tried(self):
        with self.assertNumQueries(0):
            self.assertEqual(self.answerable(self.first, model=ScriptedModel()), [MEALS, HOTELS])
