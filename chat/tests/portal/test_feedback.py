"""Feedback on answers: by form and by API, only on one's own answers, and what content managers see of it."""

from django.contrib.auth.models import Permission
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from chat.tests.conversations import LABEL, answered
from chatsite.accounts.models import ApiKey, AuditEntry
from history import recording
from history.models import Conversation, Feedback, Message
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import make_document, make_user


class FeedbackCase(TestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.document = make_document("guide.md", title="Leave guide", everyone=True)
        self.conversation, self.answer = answered(self.user, self.document)
        self.page = f"/c/{self.conversation.pk}/"
        self.form = f"{self.page}m/{self.answer.position}/feedback"
        self.client.force_login(self.user)

    @property
    def given(self):
        return Feedback.objects.get(message=self.answer)

    def withdraw(self):
        set_audience(self.document, Audience(user_ids=frozenset({make_user("somebody").pk})))


class FormTests(FeedbackCase):
    def test_a_button_rates_and_the_form_for_the_reason_opens_below(self):
        response = self.client.post(self.form, {"rating": "bad"}, follow=True)
        self.assertTrue(response.redirect_chain[-1][0].endswith("#feedback-1"))  # scrolls to the form
        self.assertContains(response, 'id="feedback-1"')
        self.assertEqual(self.given.rating, "bad")
        self.assertRegex(response.content.decode(), r'<details class="feedback" open')
        self.assertContains(response, 'value="outdated"')
        self.assertRegex(response.content.decode(), r'name="source"\s+value="1"')

    def test_the_form_replaces_reasons_sources_and_comment(self):
        self.client.post(self.form, {"rating": "bad"})
        said = {"rating": "bad", "reasons_shown": "1", "reason": ["outdated"], "source": ["1", "7"]}
        self.client.post(self.form, {**said, "comment": " Since May\r\n it is 30. ", "shared": "1"})
        self.assertEqual(self.given.reasons, ["outdated", "wrong_source"])
        self.assertEqual(self.given.wrong_sources, [LABEL])
        self.assertEqual(self.given.comment, "Since May\n it is 30.")
        self.assertTrue(self.given.shared)
        self.client.post(self.form, {"rating": "bad", "reasons_shown": "1"})
        self.assertEqual((self.given.reasons, self.given.comment, self.given.shared), ([], "", False))

    def test_a_reported_source_is_added_to_the_feedback(self):
        self.client.post(self.form, {"rating": "bad", "reasons_shown": "1", "comment": "Wrong."})
        self.client.post(self.form, {"rating": "bad", "report": "1"})
        self.assertEqual((self.given.wrong_sources, self.given.comment), ([LABEL], "Wrong."))

    def test_the_other_button_replaces_a_rating_and_the_same_one_withdraws_it(self):
        self.client.post(self.form, {"rating": "bad", "reasons_shown": "1", "reason": "unclear"})
        self.client.post(self.form, {"rating": "good"})
        self.assertEqual((self.given.rating, self.given.reasons), ("good", []))
        page = self.client.get(self.page).content.decode()
        self.assertRegex(page, r'data-rating="good"\s+aria-label="Good answer"\s+aria-pressed="true"')
        self.client.post(self.form, {"rating": ""})
        self.assertFalse(Feedback.objects.exists())

    def test_the_script_gets_the_feedback_below_the_answer(self):
        headers = {"Accept": "application/json"}
        told = self.client.post(self.form, {"rating": "bad"}, headers=headers).json()
        self.assertIn('<details class="feedback" open', told["end"])
        self.assertNotIn("<html", told["end"])

    def test_feedback_that_cannot_be_stored_is_refused_and_the_former_stays(self):
        self.client.post(self.form, {"rating": "good"})
        for said in ({"rating": "great"}, {"rating": "bad", "reasons_shown": "1", "comment": "x" * 2_001}):
            self.assertEqual(self.client.post(self.form, said).status_code, 400)
        self.assertEqual(self.given.rating, "good")

    def test_an_unfinished_answer_cannot_be_rated(self):
        Message.objects.filter(pk=self.answer.pk).update(state="streaming")
        self.assertEqual(self.client.post(self.form, {"rating": "good"}).status_code, 404)

    def test_a_page_with_feedback_needs_no_additional_query(self):
        self.client.get(self.page)  # the first request also writes the session
        with CaptureQueriesContext(connection) as before:
            self.client.get(self.page)
            needed = len(before)
        self.client.post(self.form, {"rating": "bad"})
        with self.assertNumQueries(needed):
            self.client.get(self.page)


class ApiTests(FeedbackCase):
    def setUp(self):
        super().setUp()
        self.url = f"/api/messages/{self.answer.pk}/feedback"
        self.headers = self.key_of(self.user)

    def key_of(self, user):
        return {"Authorization": f"Bearer {ApiKey.objects.issue(user, 'test')[1]}"}

    def call(self, method, body=None, headers=None):
        send = getattr(self.client_class(), method)
        extra = {"data": body, "content_type": "application/json"} if body is not None else {}
        return send(self.url, headers=headers or self.headers, **extra)

    def test_feedback_is_set_read_replaced_and_withdrawn(self):
        self.assertEqual(self.call("get").status_code, 404)
        said = {
            "rating": "bad",
            "reasons": ["outdated", "not_answered"],
            "wrong_sources": [LABEL],
            "comment": "Since May.",
        }
        self.assertEqual(self.call("put", said).status_code, 201)
        told = self.call("get").json()
        self.assertEqual(told["reasons"], ["not_answered", "outdated", "wrong_source"])
        self.assertEqual(told["wrong_sources"], [LABEL])
        self.assertFalse(told["shared"])
        self.assertEqual(self.call("put", {"rating": "good"}).json()["comment"], "")
        self.assertEqual(self.call("delete").status_code, 204)
        self.assertEqual(self.call("get").status_code, 404)

    def test_reasons_of_a_good_rating_are_ignored(self):
        said = {"rating": "good", "reasons": ["outdated"], "wrong_sources": ["other.md"]}
        given = self.call("put", said)
        self.assertEqual(given.status_code, 201)
        self.assertEqual((given.json()["reasons"], given.json()["wrong_sources"]), ([], []))

    def test_refusals_are_problem_details_that_name_the_member(self):
        for body, pointer in (
            ({}, "/rating"),
            ({"rating": "great"}, "/rating"),
            ({"rating": "bad", "reasons": ["because"]}, "/reasons/0"),
            ({"rating": "bad", "wrong_sources": ["other.md"]}, "/wrong_sources"),
            ({"rating": "bad", "comment": "x" * 2_001}, "/comment"),
            ({"rating": "bad", "shared": "maybe"}, "/shared"),
            ({"rating": "bad", "shared": "true"}, "/shared"),
            ({"rating": "bad", "comment": 5}, "/comment"),
            ({"rating": "bad", "wrong_sources": [5]}, "/wrong_sources/0"),
        ):
            refused = self.call("put", body)
            self.assertEqual(refused.status_code, 400, body)
            self.assertEqual(refused.headers["Content-Type"], "application/problem+json")
            self.assertEqual(refused.json()["errors"][0]["pointer"], pointer)
        self.assertFalse(Feedback.objects.exists())

    def test_an_invalid_id_is_refused_like_an_unknown_one(self):
        self.url = "/api/messages/none/feedback"
        for method, body in (("get", None), ("put", {"rating": "bad"}), ("delete", None)):
            refused = self.call(method, body)
            self.assertEqual(refused.status_code, 404, method)
            self.assertEqual(refused.headers["Content-Type"], "application/problem+json")

    def test_options_names_the_methods(self):
        answer = self.call("options")
        self.assertEqual(answer.status_code, 200)
        self.assertEqual(answer.headers["Allow"], "GET, PUT, DELETE, HEAD, OPTIONS")

    def test_a_stranger_finds_nothing_and_changes_nothing(self):
        self.call("put", {"rating": "good"})
        stranger = self.key_of(make_user("stranger"))
        for method, body in (("get", None), ("put", {"rating": "bad"}), ("delete", None)):
            refused = self.call(method, body, stranger)
            self.assertEqual(refused.status_code, 404, method)
            self.assertNotIn("guide", refused.content.decode())
        self.assertEqual(self.given.rating, "good")

    def test_the_name_of_a_withdrawn_source_is_no_longer_sent(self):
        self.call("put", {"rating": "bad", "wrong_sources": [LABEL]})
        self.withdraw()
        self.assertEqual(self.call("get").json()["wrong_sources"], [])
        page = self.client.get(f"{self.page}?rating={self.answer.position}").content.decode()
        self.assertNotIn("Leave guide", page)


class ContentManagerTests(FeedbackCase):
    def setUp(self):
        super().setUp()
        said = {"rating": "bad", "reasons": ["unclear"], "wrong_sources": [LABEL], "comment": "Hard words."}
        Feedback.objects.create(message=self.answer, **said)
        self.staff = make_user("staff", is_staff=True)
        self.staff.user_permissions.set(Permission.objects.filter(codename="view_feedback"))
        self.client.force_login(self.staff)
        self.list = "/admin/history/feedback/"
        self.one = f"{self.list}{self.answer.pk}/change/"

    def test_managers_see_the_rating_the_comment_and_only_the_shared_text(self):
        self.assertContains(self.client.get(self.list), "It is hard to understand")
        page = self.client.get(self.one)
        self.assertContains(page, "Hard words.")
        self.assertContains(page, "Leave guide")
        self.assertNotContains(page, "May I carry leave over?")
        Feedback.objects.update(shared=True)
        page = self.client.get(self.one)
        self.assertContains(page, "May I carry leave over?")
        self.assertContains(page, LABEL)

    def test_an_answer_from_sources_closed_to_managers_stays_hidden(self):
        Feedback.objects.update(shared=True)
        self.withdraw()
        page = self.client.get(self.one)
        self.assertContains(page, "It is based on documents that you may not read.")
        self.assertContains(page, "1 that you may not read")
        self.assertNotContains(page, "Leave guide")
        self.assertNotContains(page, "[guide.md")

    def test_an_answer_after_one_from_closed_sources_and_its_question_stay_hidden(self):
        """Both may repeat words of the earlier answer."""
        Message.objects.filter(pk=self.answer.pk).update(followups=["Which pier?"])
        recording.append(self.conversation, "user", "Which pier?")
        said = recording.append(self.conversation, "assistant", "The pier, in May.", state="complete")
        Feedback.objects.create(message=said, rating="bad", shared=True)
        page = f"{self.list}{said.pk}/change/"
        self.assertContains(self.client.get(page), "The pier, in May.")
        self.withdraw()
        self.assertNotContains(self.client.get(page), "The pier, in May.")
        self.assertNotContains(self.client.get(page), "Which pier?")

    def test_each_view_is_in_the_audit_log(self):
        self.client.get(f"{self.list}?rating__exact=bad")
        self.client.get(self.one)
        looked = AuditEntry.objects.order_by("pk").values_list("action", "actor", "person", "subject")
        self.assertEqual(
            list(looked),
            [
                ("feedback_listed", "staff", "", "rating__exact=bad"),
                ("feedback_read", "staff", "asker", str(self.answer.pk)),
            ],
        )

    def test_without_the_permission_there_is_no_page_and_no_entry(self):
        self.staff.user_permissions.clear()
        for page in (self.list, self.one):
            self.assertEqual(self.client.get(page).status_code, 403)
        self.assertFalse(AuditEntry.objects.exists())

    def test_feedback_on_a_deleted_conversation_is_hidden(self):
        Conversation.objects.update(deleted_at="2026-01-01T00:00:00Z")
        self.assertNotContains(self.client.get(self.list), "It is hard to understand")

    def test_reading_a_conversation_is_always_logged(self):
        needed = ["view_conversation", "read_others"]
        self.staff.user_permissions.set(Permission.objects.filter(codename__in=needed))
        self.client.get("/admin/history/conversation/?q=leave")
        page = f"/admin/history/conversation/{self.conversation.pk}/change/"
        self.client.post(page, {"reason": "ticket 4711"}, follow=True)
        looked = AuditEntry.objects.order_by("pk").values_list("action", "person", "subject")
        self.assertEqual(
            list(looked),
            [
                ("conversations_listed", "", "q=leave"),
                ("conversation_read", "asker", f"{self.conversation.pk}, because: ticket 4711"),
                ("conversation_read", "asker", str(self.conversation.pk)),
            ],
        )
