"""The page of unanswered questions: the actions that a manager takes on a group, and their results."""

import html
import re
from datetime import timedelta
from unittest.mock import patch

from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from chat.models import DismissedQuestion, VerifiedCitation
from chat.tests.engine.test_verified_answers import CANARY, make_verified
from chat.tests.unanswered_case import FERRY, PAGE, UnansweredCase
from chatsite.accounts.models import AuditEntry
from history.models import Feedback, Message, Source
from history.tally import UNSURE
from ingestion.models import Passage
from ingestion.tests.factories import make_document, make_user


class UnansweredActionsTests(UnansweredCase):
    def test_lists_opened_from_a_group_link_back(self):
        wanted = ["view_houseword", "view_proofquestion"]
        self.manager.user_permissions.add(*Permission.objects.filter(codename__in=wanted))
        for path in ("ingestion/houseword/", "chat/proofquestion/", "chat/verifiedanswer/"):
            self.assertContains(self.client.get(f"/admin/{path}"), f'<a href="{PAGE}">Unanswered</a>')

    def test_a_word_is_added_from_a_group_with_the_words_that_may_be_shown(self):
        rights = Permission.objects.filter(codename__in=["add_houseword", "view_houseword"])
        self.manager.user_permissions.add(*rights)
        for text in (
            "Who pays after a late ferry if I miss the train?",
            "Who pays if I miss the train after a late ferry trip?",
            f"Who pays {CANARY} if I miss the train after a late ferry?",
        ):
            self.ask(text)
        page = self.page().content.decode()
        self.assertNotIn(CANARY, page)
        link = html.unescape(re.search(r'href="([^"]+)">Add a word<', page).group(1))
        form = self.client.get(link).context["adminform"].form
        self.assertEqual(form["kind"].value(), "everyday")
        self.assertIn("ferry", form["term"].value())
        self.manager.user_permissions.remove(*rights)
        self.assertNotContains(self.page(), "Add a word")

    def test_a_new_glossary_word_begins_with_the_most_used_form_and_shows_the_question(self):
        rights = Permission.objects.filter(codename__in=["add_houseword", "view_houseword"])
        self.manager.user_permissions.add(*rights)
        for _ in range(5):
            self.ask("Where may I charge an electric car?")
        for _ in range(3):
            self.ask("Where may I quickly charge an electric car?")
        [group] = self.found().groups
        self.assertIn("quickly", group.words)
        link = html.unescape(re.search(r'href="([^"]+)">Add a word<', self.page().text).group(1))
        page = self.client.get(link)
        self.assertEqual(page.context["adminform"].form["term"].value(), "electric")
        self.assertContains(page, "People asked “Where may I charge an electric car?”.")
        self.assertNotContains(self.client.get(f"{link}&asked=<script>"), "<script>”")

    def test_the_word_that_documents_use_least_is_offered_as_it_was_asked(self):
        rights = Permission.objects.filter(codename__in=["add_houseword", "view_houseword"])
        self.manager.user_permissions.add(*rights)
        make_document("party.md", ["Book the pool or a party at the Christmas desk."], everyone=True)
        for _ in range(3):
            self.ask("Can we book swimming at the pool for the Christmas party?")
        [group] = self.found().groups
        self.assertEqual(group.usual_words, ["book", "Christmas", "party", "pool", "swimming"])
        link = html.unescape(re.search(r'href="([^"]+)">Add a word<', self.page().text).group(1))
        self.assertEqual(self.client.get(link).context["adminform"].form["term"].value(), "swimming")

    def test_documents_shown_to_askers_follow_the_rule_of_wordings(self):
        shown, closed = make_document("ferry.md", everyone=True), make_document("plan.md", owner=make_user())
        passage = Passage.objects.filter(document=shown).get().pk

        def unsure(text, document=shown, **values):
            name = document.name
            said = self.ask(text, answer=f"{UNSURE}\n\n> x [{name}]", citations=[name], **values)
            Source.objects.create(
                message=said, document=document, document_version=1, rank=1, label=name, title=name,
                passage_id=passage, content="x", score=1, found_by="words",
            )  # fmt: skip
            return said

        for _ in range(2):
            unsure(FERRY)
        self.ask(FERRY)
        self.assertNotContains(self.page(), "shown to those who asked")
        unsure(FERRY)
        self.assertRegex(self.page().content.decode(), r"<bdi>Ferry</bdi></a>\s+\(3\)")
        for _ in range(3):
            unsure("When is the canteen open?", closed)
        said = unsure("May I bring a dog?")
        Feedback.objects.create(message=said, rating="bad", shared=True)
        others = ["Cabins", "Decks", "Galley", "Pets"]
        for number, other in enumerate(others, start=2):
            document = make_document(f"{other.lower()}.md", everyone=True)
            Source.objects.create(
                message=said, document=document, document_version=1, rank=number, label=document.name,
                title=other, passage_id=passage, content="x", score=1, found_by="words",
            )  # fmt: skip
        labels = ["ferry.md", *(f"{other.lower()}.md" for other in others)]
        quoted = "\n\n".join(f"> x [{label}]" for label in labels)
        Message.objects.filter(pk=said.pk).update(content=f"{UNSURE}\n\n{quoted}", citations=labels)
        page = self.page()
        for other in others:  # all documents of a single answer
            self.assertContains(page, f"<bdi>{other}</bdi>")
        self.assertNotContains(page, "Plan")
        self.assertRegex(page.content.decode(), r"<bdi>Ferry</bdi></a>\s+\(1\)")

    def test_a_draft_answer_leaves_out_documents_of_an_unsure_search(self):
        safety = make_document("safety.md", everyone=True)
        passage = Passage.objects.filter(document=safety).get().pk

        def shown(beginning):
            said = self.ask(FERRY, answer=f"{beginning} [safety.md]", citations=["safety.md"])
            Feedback.objects.create(message=said, rating="bad")
            Source.objects.create(
                message=said, document=safety, document_version=1, rank=1, label="safety.md", title="Safety",
                passage_id=passage, content="x", score=1, found_by="words",
            )  # fmt: skip

        for _ in range(3):
            shown(f"{UNSURE}\n\n> Ferries.")
        for _ in range(2):
            shown("The ferry pays.")
        page = self.page()
        self.assertRegex(page.content.decode(), r"<bdi>Safety</bdi></a>\s+\(5\)")
        self.assertNotContains(page, f"source={safety.pk}")
        shown("The ferry pays.")
        self.assertContains(self.page(), f"source={safety.pk}")

    def test_shared_feedback_is_linked_if_the_manager_may_see_feedback(self):
        shared, kept = self.ask(FERRY), self.ask(FERRY)
        Feedback.objects.create(message=shared, rating="bad", shared=True, comment="Ask the bursar.")
        Feedback.objects.create(message=kept, rating="bad")
        self.assertNotContains(self.page(), "/admin/history/feedback/")
        self.manager.user_permissions.add(Permission.objects.get(codename="view_feedback"))
        page = self.page()
        self.assertContains(page, f"/admin/history/feedback/{shared.pk}/change/")
        self.assertNotContains(page, str(kept.pk))

    def test_a_draft_answer_has_the_shown_documents_that_the_manager_may_read(self):
        shown, closed = make_document("ferry.md", everyone=True), make_document("plan.md", owner=make_user())
        address = f"/admin/chat/verifiedanswer/add/?source={shown.pk}&source={closed.pk}&source=x&source=999"
        page = self.client.get(address)
        self.assertContains(page, f'<option value="{shown.pk}" selected>Ferry</option>', html=True)
        self.assertNotContains(page, "Plan")
        form = {
            "text": "Employees may carry over five days of leave [1].", "active": "on",
            "owner": self.manager.pk, "valid_until": "2099-01-31",
            "questions-TOTAL_FORMS": "1", "questions-INITIAL_FORMS": "0", "questions-0-text": FERRY,
            "citations-TOTAL_FORMS": "2", "citations-INITIAL_FORMS": "0",
            "citations-0-document": shown.pk, "citations-0-words": "",
        }  # fmt: skip
        self.assertContains(self.client.post(address, form), "needs at least one document")
        other = make_document("leave.md", everyone=True)
        form |= {"citations-1-document": other.pk, "citations-1-words": "carry over five days"}
        self.assertEqual(self.client.post(address, form).status_code, 302)
        self.assertEqual(VerifiedCitation.objects.get().document, other)

    def test_each_view_is_logged_and_requires_the_permission(self):
        self.page()
        self.assertEqual(self.looks, [(AuditEntry.Action.UNANSWERED_LISTED,)])
        self.manager.user_permissions.clear()
        for answer in (self.page(), self.client.post(PAGE)):
            self.assertEqual(answer.status_code, 403)
        self.assertEqual(len(self.looks), 1)

    def test_a_dismissed_group_returns_only_when_asked_again_and_the_reason_is_logged(self):
        for _ in range(3):
            self.ask(FERRY)
        [group] = self.found().groups
        self.client.post(PAGE, {"group": group.key, "reason": "  "})
        self.client.post(PAGE, {"group": "unknown", "reason": "Not ours"})
        self.assertEqual(len(self.found().groups), 1)
        self.client.post(PAGE, {"group": group.key, "reason": "Not ours"})
        self.assertEqual(self.found().groups, [])
        entry = AuditEntry.objects.get(action="unanswered_dismissed")
        self.assertIn("Not ours", entry.subject)
        self.assertNotIn("ferry", DismissedQuestion.objects.get().digest)
        for _ in range(3):
            self.ask(FERRY, at=timezone.now() + timedelta(seconds=1))
        self.assertEqual([group.times for group in self.found().groups], [3])

    def test_after_a_dismissal_the_next_group_is_in_view_on_its_page(self):
        for number, text in enumerate((FERRY, "Where do I park a caravan?", "When is the canteen painted?")):
            for _ in range(5 - number):
                self.ask(text)
        first, second, third = self.found().groups
        with patch("chat.unanswered.unanswered_admin.GROUPS_SHOWN", 1):
            for group, reason, shown in (
                (second, " ", second),
                (second, "Not ours", third),
                (third, "Not ours", first),
            ):
                answer = self.client.post(PAGE, {"group": group.key, "reason": reason})
                address = f"{PAGE}?group={shown.key}#group-{shown.key}"
                self.assertRedirects(answer, address, fetch_redirect_response=False)
                page = self.client.get(address.partition("#")[0])
                self.assertEqual([row.group.key for row in page.context["rows"]], [shown.key])
                self.assertContains(page, f'id="group-{shown.key}"')
        answer = self.client.post(PAGE, {"group": first.key, "reason": "Not ours"})
        self.assertRedirects(answer, PAGE)
        self.assertContains(self.page("?group=nothing"), "No unanswered question was asked")

    def test_saving_a_word_or_a_document_leads_back_to_the_group_it_was_added_for(self):
        for _ in range(3):
            self.ask(FERRY)
        [group] = self.found().groups
        words = Permission.objects.filter(content_type__model="houseword")
        self.manager.user_permissions.add(*words)
        page = self.page()
        address = re.search(r'href="(/admin/ingestion/houseword/add/[^"]+)"', page.content.decode())[1]
        address = html.unescape(address)
        word = {"kind": "everyday", "term": "late ferry", "synonyms": "delay"}
        saved = self.client.post(address, word)
        back = f"{PAGE}?group={group.key}#group-{group.key}"
        self.assertRedirects(saved, back, fetch_redirect_response=False)
        again = self.client.post(address, {**word, "term": "train", "_addanother": "1"})
        self.assertNotIn("unanswered/", again.headers["Location"])
        self.manager.user_permissions.add(Permission.objects.get(codename="add_document"))
        document = f"/admin/ingestion/document/add/?unanswered={group.key}"
        self.assertContains(self.page(), document)
        sent = {"upload": SimpleUploadedFile("ferry.md", b"The ferry pays."), "everyone": "on"}
        self.assertRedirects(self.client.post(document, sent), back, fetch_redirect_response=False)
        elsewhere = self.client.post(
            "/admin/ingestion/houseword/add/?unanswered=//evil.example", {**word, "term": "ship"}
        )
        self.assertRedirects(elsewhere, "/admin/ingestion/houseword/")

    def test_a_draft_answer_has_the_wordings_and_the_group_names_the_finished_answer(self):
        for _ in range(3):
            self.ask(FERRY)
        page = self.page()
        address = "/admin/chat/verifiedanswer/add/?question=Who+pays+if"
        self.assertContains(page, address)
        self.assertContains(self.client.get(f"{address}+I+am+late%3F"), "Who pays if I am late?")
        self.assertNotContains(page, "a verified answer</a>")
        make_verified(make_document(everyone=True), question=FERRY)
        self.assertContains(self.page(), "a verified answer</a>")
