"""Verified answers in the admin: what a content manager can write and see, and the audit entries for it."""

from datetime import timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import TestCase
from django.utils import timezone

from chat.engine.verified import matching
from chat.models import VerifiedAnswer
from chat.tests.engine.test_verified_answers import CANARY, QUESTION, make_verified
from chat.verified_answers import Reach, reach_of
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from history.models import Conversation, Message, Source
from history.search_words import search_vector
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document, Passage
from ingestion.tests.factories import make_document, make_user

LIST = "/admin/chat/verifiedanswer/"
RIGHTS = ("add_verifiedanswer", "change_verifiedanswer", "view_verifiedanswer", "delete_verifiedanswer")
INLINES = [
    f"{act}_verified{what}" for act in ("add", "change", "delete") for what in ("question", "citation")
]


def ask(text, person):
    """A recorded question."""
    conversation = Conversation.objects.create(owner=person)
    vector = search_vector(person.pk, text)
    Message.objects.create(conversation=conversation, position=0, role="user", content=text, search=vector)


@pytest.mark.slow
class VerifiedAdminTests(TestCase):
    def setUp(self):
        self.manager = make_user("ines", is_staff=True)
        rights = [*RIGHTS, *INLINES, "view_document", "view_user", "view_group"]
        self.manager.user_permissions.set(Permission.objects.filter(codename__in=rights))
        self.client.force_login(self.manager)
        self.document = make_document(everyone=True)

    def form(self, **values):
        return {
            "text": "Until **31 March** [1].",
            "active": "on",
            "owner": self.manager.pk,
            "team": "",
            "valid_until": "2099-03-31",
            "remind_on": "",
            "questions-TOTAL_FORMS": "1",
            "questions-INITIAL_FORMS": "0",
            "questions-0-text": QUESTION,
            "citations-TOTAL_FORMS": "1",
            "citations-INITIAL_FORMS": "0",
            "citations-0-document": self.document.pk,
            "citations-0-words": "carry over FIVE days",
            **values,
        }

    def test_an_answer_is_written_with_its_passage_and_an_entry_in_the_audit_log(self):
        response = self.client.post(f"{LIST}add/", self.form())
        self.assertEqual(response.status_code, 302, response.content)
        answer = VerifiedAnswer.objects.get()
        citation = answer.citations.get()
        self.assertEqual((citation.sha256, citation.position), (self.document.sha256, 0))
        self.assertEqual(answer.citation_count, 1)
        entry = AuditEntry.objects.get(action="verified_changed")
        self.assertEqual(entry.actor, "ines")
        self.assertIn(QUESTION, entry.subject)
        self.assertIn(str(self.document.public_id), entry.subject)
        self.assertContains(self.client.get(LIST), "Active")

    def test_missing_quotes_and_missing_sources_are_refused_at_their_field(self):
        response = self.client.post(f"{LIST}add/", self.form(**{"citations-0-words": "seven weeks"}))
        self.assertContains(response, "does not contain these words")
        response = self.client.post(
            f"{LIST}add/", self.form(**{"citations-0-document": "", "citations-0-words": ""})
        )
        self.assertContains(response, "needs at least one document")
        self.assertFalse(VerifiedAnswer.objects.exists())

    def test_a_document_closed_to_the_manager_is_neither_offered_nor_accepted(self):
        closed = make_document("secret-plan.md", owner=make_user())
        address = "/admin/autocomplete/?app_label=chat&model_name=verifiedcitation&field_name=document&term="
        self.assertEqual(self.client.get(f"{address}secret").json()["results"], [])
        self.assertEqual(len(self.client.get(f"{address}guide").json()["results"]), 1)
        response = self.client.post(f"{LIST}add/", self.form(**{"citations-0-document": closed.pk}))
        self.assertContains(response, "Select a valid choice")

    def test_answers_from_documents_closed_to_the_manager_are_not_shown(self):
        closed = make_verified(make_document("b.md", owner=make_user()), question=CANARY)
        self.assertNotContains(self.client.get(LIST), CANARY)
        for page in ("change", "try", "history", "delete"):
            response = self.client.get(f"{LIST}{closed.pk}/{page}/", follow=True)
            self.assertNotIn(CANARY, response.content.decode(), page)

    def test_each_reason_why_an_answer_is_not_given_is_shown(self):
        answer = make_verified(self.document, owner=self.manager)
        yesterday = timezone.localdate() - timedelta(days=1)
        Document.objects.update(sha256="0" * 64)
        VerifiedAnswer.objects.update(valid_until=yesterday, active=False)
        page = self.client.get(f"{LIST}{answer.pk}/change/")
        for words in ("it is a draft", "it was valid until", "was changed"):
            self.assertContains(page, words)

    def test_the_list_says_how_many_people_get_an_answer(self):
        mine = make_document("mine.md", owner=self.manager)
        make_verified(self.document, owner=self.manager)
        closed = make_verified(self.document, mine, owner=self.manager)
        page = self.client.get(LIST)
        self.assertContains(page, '<td class="field-people">everyone</td>')
        self.assertContains(page, "Silent: nobody else may read its source", count=1)
        self.assertContains(page, '<td class="field-people">1 person</td>')
        crew, board = Group.objects.create(name="Crew"), Group.objects.create(name="Board")
        make_user(groups=["Crew"])
        both = make_user(groups=["Crew", "Board"])
        set_audience(mine, Audience(group_ids=frozenset({crew.pk})))
        page = self.client.get(LIST)
        self.assertContains(page, '<td class="field-people">3 people</td>')
        self.assertNotContains(page, "Silent")
        closed.groups.add(board)
        self.assertEqual(reach_of([closed]), {closed.pk: Reach(1, 1)})
        both.is_active = False
        both.save()
        page = self.client.get(f"{LIST}{closed.pk}/change/")
        self.assertContains(page, "Silent: nobody else may read its source")

    def test_changing_the_readers_of_a_document_warns_about_its_verified_answers(self):
        self.manager.user_permissions.add(Permission.objects.get(codename="change_document"))
        make_verified(self.document, owner=self.manager)
        crew = Group.objects.create(name="Crew")
        make_user(groups=["Crew"])
        address = f"/admin/ingestion/document/{self.document.pk}/change/"
        page = self.client.post(address, {"groups": [crew.pk]}, follow=True)
        self.assertContains(page, "cites this document. Only 1 person gets it now.")
        page = self.client.post(address, {"users": [self.manager.pk]}, follow=True)
        self.assertContains(page, "Nobody but those who edit verified answers gets it now.")

    def test_an_answer_for_a_deleted_group_is_given_to_nobody(self):
        board = Group.objects.create(name="Board")
        member, other = make_user("member", groups=["Board"]), make_user("other")
        self.client.post(f"{LIST}add/", self.form(groups=[board.pk]))
        answer = VerifiedAnswer.objects.get()

        def gets_it(person):
            return matching(Principal(person.pk, "command"), QUESTION) == answer.pk

        self.assertEqual([gets_it(member), gets_it(other)], [True, False])
        board.delete()
        self.assertEqual([gets_it(member), gets_it(other)], [False, False])
        self.assertContains(self.client.get(f"{LIST}{answer.pk}/change/"), "its groups were deleted")
        rows = {
            f"{name}-0-{field}": value
            for name, row in (("questions", answer.questions.get()), ("citations", answer.citations.get()))
            for field, value in (("id", row.pk), ("answer", answer.pk))
        }
        initial = {"questions-INITIAL_FORMS": "1", "citations-INITIAL_FORMS": "1"}
        saved = self.client.post(
            f"{LIST}{answer.pk}/change/", self.form(team="Payroll", **initial, **rows), follow=True
        )
        self.assertContains(saved, "stays hidden, because its groups were deleted")
        answer.refresh_from_db()
        self.assertEqual((answer.restricted, answer.team), (True, "Payroll"))
        self.assertEqual([gets_it(member), gets_it(other)], [False, False])
        self.client.post(f"{LIST}{answer.pk}/delete/", {"post": "yes"})
        entry = AuditEntry.objects.filter(subject__startswith="Deleted").latest("pk")
        self.assertIn("for nobody", entry.subject)

    def test_an_unsupported_statement_is_reported_before_saving(self):
        denied = self.form(text="Until **30 June** [1].")
        page = self.client.post(f"{LIST}add/", denied)
        self.assertContains(page, "The passages cited do not clearly say: “Until **30 June**")
        self.assertContains(page, 'name="confirmed"')
        self.assertContains(page, "tick “I have checked these statements” at the end of the form")
        self.assertFalse(VerifiedAnswer.objects.exists())
        page = self.client.post(f"{LIST}add/", denied | {"confirmed": "on"}, follow=True)
        self.assertNotContains(page, "do not clearly say")
        self.assertEqual(VerifiedAnswer.objects.get().text, denied["text"])
        entry = AuditEntry.objects.get(action="verified_changed")
        self.assertIn("though its sources do not clearly support 1 of its statements", entry.subject)

    def test_an_answer_that_cannot_be_verified_is_not_saved_without_a_warning(self):
        with (
            patch("chat.verification.verdicts.verify", side_effect=ValueError),
            self.assertLogs("chat.verification", "ERROR"),
        ):
            shown = self.client.post(f"{LIST}add/", self.form())
        self.assertContains(shown, "Nothing has been saved yet.")
        self.assertFalse(VerifiedAnswer.objects.exists())

    def test_a_contradicting_sentence_of_the_source_is_quoted(self):
        other = self.form(text="Employees may carry over ten days of leave until 31 March [1].")
        page = self.client.post(f"{LIST}add/", other)
        self.assertContains(
            page,
            "The passages say something else: “Employees may carry over five days of leave until 31 March”."
            " The answer says: “Employees may carry over ten days of leave until 31 March",
        )
        self.assertFalse(VerifiedAnswer.objects.exists())
        unheard = self.form(text="Penguins of the harbour waddle in silk [1].")
        page = self.client.post(f"{LIST}add/", unheard)
        self.assertContains(page, "The passages cited do not clearly say: “Penguins")

    def test_a_supported_statement_is_saved_at_once(self):
        self.assertNotContains(self.client.get(f"{LIST}add/"), 'name="confirmed"')
        page = self.client.post(f"{LIST}add/", self.form(), follow=True)
        self.assertNotContains(page, "do not clearly say")
        self.assertTrue(VerifiedAnswer.objects.exists())

    def test_an_answer_that_cites_nothing_is_saved_with_a_warning(self):
        for text, warned in (
            ("Until **31 March** [1].", False),
            ("Stationery is ordered from Papyrus Ltd.", True),
            ("Stationery is ordered from Papyrus Ltd [2].", True),
        ):
            with self.subTest(text=text):
                page = self.client.post(f"{LIST}add/", self.form(text=text, confirmed="on"), follow=True)
                self.assertTrue(VerifiedAnswer.objects.filter(text=text).exists())
                self.assertEqual("see this answer without a source" in page.content.decode(), warned)

    def test_the_form_labels_its_fields_and_links_to_no_account(self):
        page = self.client.get(f"{LIST}add/")
        for name in ("Question", "Document"):
            self.assertContains(page, f'aria-label="{name}"')
        self.assertNotContains(page, "delete_id_owner")
        self.assertNotContains(page, "change_id_owner")

    def test_saving_confirms_the_present_text_of_the_sources(self):
        answer = make_verified(self.document, owner=self.manager)
        Document.objects.update(sha256="1" * 64)
        question, citation = answer.questions.get(), answer.citations.get()
        changed = {
            "questions-INITIAL_FORMS": "1",
            "questions-0-id": question.pk,
            "questions-0-answer": answer.pk,
            "citations-INITIAL_FORMS": "1",
            "citations-0-id": citation.pk,
            "citations-0-answer": answer.pk,
        }
        response = self.client.post(f"{LIST}{answer.pk}/change/", self.form(**changed))
        self.assertEqual(response.status_code, 302)
        self.assertEqual(answer.citations.get().sha256, "1" * 64)

    def test_a_text_is_not_saved_without_the_permission_for_its_sources(self):
        answer = make_verified(self.document, owner=self.manager)
        row = {"id": answer.citations.get().pk, "answer": answer.pk}
        values = self.form(
            text="Everybody gets 99 days [1].",
            **{"citations-INITIAL_FORMS": "1"},
            **{f"citations-0-{name}": value for name, value in row.items()},
        )
        rights = ["add_verifiedanswer", "change_verifiedanswer", "view_verifiedanswer", "view_document"]
        for more in ([], ["view_verifiedcitation"], ["add_verifiedcitation"]):
            self.manager.user_permissions.set(Permission.objects.filter(codename__in=rights + more))
            page = f"{LIST}{answer.pk}/change/"
            self.assertEqual(self.client.get(page).status_code, 200)
            self.assertEqual(self.client.post(page, values).status_code, 403, more)
        self.manager.user_permissions.set(Permission.objects.filter(codename__in=rights))
        self.assertEqual(self.client.post(f"{LIST}add/", self.form()).status_code, 403)
        self.assertNotIn("99", VerifiedAnswer.objects.get().text)

    def test_an_owner_is_reminded_of_due_answers(self):
        make_verified(self.document, owner=self.manager, valid_until=timezone.localdate())
        self.assertContains(self.client.get(LIST), "due for review: 1")

    def test_test_questions_count_recorded_ones_without_showing_rare_ones(self):
        answer = make_verified(self.document, owner=self.manager)
        for number, text in enumerate(["By when must carried leave be used?"] * 3 + [QUESTION] * 2):
            ask(text, make_user(f"asker{number}"))
        typed = {"questions": "By when must carried leave be used?\nWhen may carried leave be used?"}
        # Outside a test's transaction, the entry is committed before the page is rendered.
        with patch("chat.admin.verified_admin.record_before", side_effect=AuditEntry) as recorded:
            recorded.side_effect = None
            page = self.client.post(f"{LIST}{answer.pk}/try/", typed)
        self.assertEqual(recorded.call_count, 1)
        self.assertContains(page, "<strong>5</strong>")
        self.assertContains(page, "<li><bdi>by when must carried leave be used</bdi></li>", html=True)
        self.assertNotContains(page, "<li><bdi>when must carried leave be used</bdi></li>", html=True)
        self.assertContains(page, "Yes, as")
        self.assertContains(page, "<td>No</td>", html=True)
        alone = "Who decides about the raise of Smith?"
        answer.questions.create(text=alone)
        ask(alone, make_user("alone"))
        with patch("chat.admin.verified_admin.record_before"):
            self.assertContains(self.client.get(f"{LIST}{answer.pk}/try/"), "<strong>5</strong>")
        for number in range(2):
            guest = make_user(f"guest{number}")
            User.objects.filter(pk=guest.pk).update(guest_until=timezone.now() + timedelta(days=1))
            ask(alone, guest)
        with patch("chat.admin.verified_admin.record_before"):
            self.assertContains(self.client.get(f"{LIST}{answer.pk}/try/"), "<strong>5</strong>")
        Message.objects.filter(content=QUESTION).delete()
        Message.objects.filter(content__startswith="By").first().delete()
        with patch("chat.admin.verified_admin.record_before"):
            self.assertContains(self.client.get(f"{LIST}{answer.pk}/try/"), "fewer than")

    def test_saving_leads_back_to_the_group_of_questions(self):
        group = "0a" * 32
        saved = self.client.post(f"{LIST}add/?unanswered={group}", self.form())
        back = f"{LIST}unanswered/?group={group}#group-{group}"
        self.assertRedirects(saved, back, fetch_redirect_response=False)
        saved = self.client.post(f"{LIST}add/?unanswered=", self.form())
        self.assertRedirects(saved, LIST)

    def test_the_page_says_if_there_are_too_many_questions_to_count(self):
        answer = make_verified(self.document, owner=self.manager)
        for number in range(6):
            asker = make_user(f"asker{number}")
            ask(QUESTION, asker)
            ask("When must carried leave be used?", asker)
            ask(f"When must carried leave of ship {number} be used?", asker)
            ask(f"Another, number {number}?", asker)  # shares no word, so it is not compared
        for most, cut_off in ((8, False), (5, True)):
            with (
                self.subTest(most),
                patch("chat.admin.verified_admin.record_before"),
                patch("chat.verified_answers.MAX_TEXTS", most),
            ):
                page = self.client.get(f"{LIST}{answer.pk}/try/")
            self.assertContains(page, f"<strong>{12}</strong>")
            self.assertEqual("There are more than can be compared" in page.content.decode(), cut_off)

    def test_asked_wordings_that_do_not_match_can_be_added_with_one_click(self):
        answer = make_verified(self.document, owner=self.manager)
        closed = make_document("closed.md", title="Closed")
        near, rare, secret, far = (
            "Until which day do I have to take the leave that I carried over?",
            "By what date must carried days of vacation be taken?",
            "When must days of leave that Halyard carried be used up?",
            "Where is the canteen?",
        )
        for number in range(3):
            asker = make_user(f"asker{number}")
            for text in (QUESTION, near, secret, far, *([rare] if number else [])):
                ask(text, asker)
        for asked in Message.objects.filter(content=secret):
            said = Message.objects.create(
                conversation_id=asked.conversation_id,
                position=1,
                role="assistant",
                content="Yes [closed.md#1].",
                citations=["closed.md#1"],
            )
            passage = Passage.objects.get(document=closed).pk
            source = {
                "document": closed,
                "document_version": 1,
                "passage_id": passage,
                "label": "closed.md#1",
            }
            Source.objects.create(message=said, rank=1, score=1, title="Closed", content="Yes.", **source)
        page = f"{LIST}{answer.pk}/change/"
        with patch("chat.admin.verified_admin.record_before") as recorded:
            shown = self.client.get(page)
        self.assertEqual([(each.text, each.people) for each in shown.context["near"]], [(near, 3)])
        self.assertNotContains(shown, "Halyard")
        self.assertIn("near verified answer", recorded.call_args.kwargs["subject"])
        self.assertRedirects(
            self.client.post(f"{LIST}{answer.pk}/wordings/", {"text": near}),
            page,
            fetch_redirect_response=False,
        )
        self.assertIn(near, answer.questions.values_list("text", flat=True))
        self.assertIn(near, AuditEntry.objects.get(action="verified_changed").subject)
        with patch("chat.admin.verified_admin.record_before") as recorded:
            self.assertNotIn("near", self.client.get(page).context)
        recorded.assert_not_called()
        self.assertEqual(self.client.get(f"{LIST}{answer.pk}/wordings/").status_code, 405)
        self.manager.user_permissions.remove(Permission.objects.get(codename="add_verifiedquestion"))
        self.assertEqual(self.client.post(f"{LIST}{answer.pk}/wordings/", {"text": far}).status_code, 403)

    def test_deleting_is_logged_and_requires_the_permission(self):
        answer = make_verified(self.document, owner=self.manager)
        self.client.post(f"{LIST}{answer.pk}/delete/", {"post": "yes"})
        self.assertFalse(VerifiedAnswer.objects.exists())
        self.assertIn("Deleted", AuditEntry.objects.get(action="verified_changed").subject)
        self.manager.user_permissions.clear()
        for page in (LIST, f"{LIST}add/", f"{LIST}1/try/"):
            self.assertEqual(self.client.get(page).status_code, 403, page)

    def test_a_question_in_the_address_fills_the_form(self):
        self.assertContains(self.client.get(f"{LIST}add/?question=Who+pays%3F"), "Who pays?")
