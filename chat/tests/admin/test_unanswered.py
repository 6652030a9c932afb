"""What was asked in vain: what counts, what is grouped, and what a content manager never sees."""

import html
import re
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TestCase
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from chat.llm.chat_model import NOTHING_FITS, NOTHING_FOUND
from chat.models import DismissedQuestion, VerifiedCitation
from chat.tests.engine.test_verified_answers import CANARY, make_verified
from chat.unanswered.models import UnansweredQuestion
from chat.unanswered.question_judging import judge_new
from chat.unanswered.question_likeness import alike
from chat.unanswered.unanswered_list import read_texts, unanswered
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from history.models import Conversation, Feedback, Message, Source
from history.tally import UNSURE
from ingestion.models import Passage
from ingestion.tests.factories import make_document, make_user

PAGE = "/admin/chat/verifiedanswer/unanswered/"
FERRY = "Who pays if I miss the train after a late ferry?"


class UnansweredTests(TestCase):
    def setUp(self):
        self.manager = make_user("ines", is_staff=True)
        rights = ["view_unanswered", "add_verifiedanswer", "view_verifiedanswer"]
        rights += ["add_verifiedquestion", "add_verifiedcitation", "view_document"]
        self.manager.user_permissions.set(Permission.objects.filter(codename__in=rights))
        self.client.force_login(self.manager)
        # Inside a test's transaction nothing can be committed before the page is made.
        looked = patch(
            "chat.unanswered.unanswered_admin.record_before",
            lambda *values, **named: self.looks.append(values),
        )
        self.looks = []
        looked.start()
        self.addCleanup(looked.stop)

    def ask(self, text, *, person=None, answer=NOTHING_FITS, at=None, conversation=None, **values):
        """A question with its answer, a day ago if nothing else is said."""
        at = at or timezone.now() - timedelta(days=1)
        conversation = conversation or Conversation.objects.create(owner=person or make_user())
        position = conversation.messages.count()
        for role, content, more in (("user", text, {}), ("assistant", answer, values)):
            said = Message.objects.create(
                conversation=conversation,
                position=position,
                role=role,
                content=content,
                created_at=at,
                **more,
            )
            position += 1
        return said

    def found(self):
        judge_new(everything=True)
        found = unanswered(Principal(self.manager.pk, "session"))
        read_texts(found.groups)
        return found

    def page(self, query=""):
        """The list, once the worker has looked."""
        judge_new(everything=True)
        return self.client.get(f"{PAGE}{query}")

    def test_refused_unsure_and_bad_answers_count_and_good_ones_do_not(self):
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
        self.assertEqual((group.times, group.people), (5, 5))
        self.assertEqual(
            dict(group.reasons), {"not in the documents": 2, "the search was unsure": 2, "marked bad": 1}
        )

    def test_the_same_asked_again_within_two_minutes_counts_and_another_question_does_not(self):
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

    def test_told_situations_are_in_a_second_part_unless_an_answer_was_marked_bad(self):
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
    def test_questions_that_others_only_followed_take_no_place_of_those_in_vain(self):
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

    def test_the_page_says_since_when_if_more_were_asked_in_vain_than_are_listed(self):
        for days in (1, 2, 3, 4):
            self.ask(FERRY, at=timezone.now() - timedelta(days=days))
        self.assertNotContains(self.page(), "more than fit")
        with patch("chat.unanswered.question_judging.MAX_ASKED", 3):
            since = date_format(timezone.localtime() - timedelta(days=3), "j M Y")
            self.assertContains(self.page(), f"those since {since} are listed")

    def test_the_lists_to_which_a_group_leads_lead_back(self):
        wanted = ["view_houseword", "view_proofquestion"]
        self.manager.user_permissions.add(*Permission.objects.filter(codename__in=wanted))
        for path in ("ingestion/houseword/", "chat/proofquestion/", "chat/verifiedanswer/"):
            self.assertContains(self.client.get(f"/admin/{path}"), f'<a href="{PAGE}">Unanswered</a>')

    def test_questions_alike_are_one_group_and_other_numbers_and_nots_are_not(self):
        self.assertTrue(alike("How do I report a lost laptop?", "Where do I report my lost laptop?"))
        self.assertFalse(alike("How do I install Windows 10?", "How do I install Windows 11?"))
        self.assertFalse(alike("Which laptops are insured?", "Which laptops are not insured?"))
        self.assertFalse(alike("How do I report a lost laptop?", "How do I report sick?"))

    def test_what_fewer_than_three_people_asked_is_counted_and_never_shown(self):
        person = make_user()
        for _ in range(5):
            self.ask(f"Why was {CANARY} dismissed?", person=person)
        self.ask(f"Why was {CANARY} dismissed?")
        page = self.page()
        self.assertNotContains(page, CANARY)
        self.assertContains(page, "6 more times")

    def test_the_first_page_counts_open_questions_by_the_rules_of_the_list(self):
        def counted():
            judge_new(everything=True)
            page = self.client.get("/admin/")
            return page, page.context.get("open_questions"), page.context.get("times_asked")

        self.assertContains(self.client.get("/admin/"), "no open questions")
        for person in [make_user() for _ in range(2)]:
            self.ask(FERRY, person=person)
        page, *numbers = counted()
        self.assertEqual(numbers, [0, 0])  # two people are too few
        self.assertContains(page, "no open question asked by 3 people or more")
        self.assertContains(page, "2 more times, something was asked in vain by fewer than 3 people")
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

    def test_guests_and_programs_are_no_people(self):
        self.ask(f"Why was {CANARY} dismissed?")
        later = timezone.now() + timedelta(days=1)
        for values in ({"guest_until": later}, {"guest_until": later}, {"service_for": "Intranet"}):
            person = make_user()
            User.objects.filter(pk=person.pk).update(**values)
            self.ask(f"Why was {CANARY} dismissed?", person=person)
        page = self.page()
        self.assertNotContains(page, CANARY)
        self.assertContains(page, "4 more times")

    def test_of_a_group_only_wordings_of_three_people_are_shown(self):
        for _ in range(3):
            self.ask(FERRY)
        self.ask(f"Who pays {CANARY} if I miss the train after a late ferry?")
        [group] = self.found().groups
        self.assertEqual((group.times, group.wordings), (4, [FERRY]))
        page = self.page()
        self.assertContains(page, FERRY)
        self.assertNotContains(page, CANARY)

    def test_without_a_common_wording_the_words_of_three_people_stand_for_the_group(self):
        self.ask("Who pays after a late ferry if I miss the train?")
        self.ask("Who pays if I miss the train after a late ferry trip?")
        self.ask(f"Who pays {CANARY} if I miss the train after a late ferry?")
        [group] = self.found().groups
        self.assertEqual(group.wordings, [])
        self.assertIn("ferry", group.words)
        page = self.page()
        self.assertContains(page, "About:")
        self.assertNotContains(page, CANARY)

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

    def test_a_word_begins_with_what_most_used_and_its_page_shows_the_question(self):
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

    def test_a_form_of_fewer_than_three_people_is_not_shown(self):
        for text in ("Do trains run late?", "Does the train run late?", "Does the train ever run late?"):
            self.ask(text)
        read_texts([group := self.found().groups[0]])
        self.assertIn("train", group.words)
        self.assertNotIn("trains", group.words)

    def test_what_its_asker_shared_is_shown(self):
        said = self.ask(FERRY, answer="The ferry [a.md].", citations=[])
        Feedback.objects.create(message=said, rating="bad", shared=True)
        self.assertContains(self.page(), FERRY)

    def test_nothing_is_shown_of_a_conversation_that_rests_on_what_the_manager_may_not_read(self):
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

    def test_what_was_withdrawn_since_the_worker_looked_is_not_shown(self):
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
        self.assertContains(page, "3 more times")

    def test_only_what_changed_is_judged_again(self):
        said = self.ask(FERRY)
        judge_new()
        self.assertFalse(UnansweredQuestion.objects.exists())  # no run has ended
        Feedback.objects.create(message=said, rating="bad")
        judge_new()
        self.assertEqual(UnansweredQuestion.objects.get().reasons, ["refused", "bad", "told"])
        Feedback.objects.all().delete()
        judge_new()
        self.assertEqual(UnansweredQuestion.objects.get().reasons, ["refused", "told"])

    def test_documents_that_askers_were_shown_are_named_as_wordings_are(self):
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
        self.assertNotContains(self.page(), "Shown to those who asked")
        unsure(FERRY)
        self.assertRegex(self.page().content.decode(), r"<bdi>Ferry</bdi></a>\s+\(3\)")
        for _ in range(3):
            unsure("When is the canteen open?", closed)
        Feedback.objects.create(message=unsure("May I bring a dog?"), rating="bad", shared=True)
        page = self.page()
        self.assertNotContains(page, "Plan")
        self.assertRegex(page.content.decode(), r"<bdi>Ferry</bdi></a>\s+\(1\)")

    def test_an_answer_starts_without_what_only_an_unsure_search_had_shown(self):
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

    def test_shared_feedback_is_linked_for_those_who_may_see_feedback(self):
        shared, kept = self.ask(FERRY), self.ask(FERRY)
        Feedback.objects.create(message=shared, rating="bad", shared=True, comment="Ask the bursar.")
        Feedback.objects.create(message=kept, rating="bad")
        self.assertNotContains(self.page(), "/admin/history/feedback/")
        self.manager.user_permissions.add(Permission.objects.get(codename="view_feedback"))
        page = self.page()
        self.assertContains(page, f"/admin/history/feedback/{shared.pk}/change/")
        self.assertNotContains(page, str(kept.pk))

    def test_an_answer_starts_with_the_documents_shown_as_far_as_they_may_be_read(self):
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
        self.assertContains(self.client.post(address, form), "rests on at least one document")
        other = make_document("leave.md", everyone=True)
        form |= {"citations-1-document": other.pk, "citations-1-words": "carry over five days"}
        self.assertEqual(self.client.post(address, form).status_code, 302)
        self.assertEqual(VerifiedCitation.objects.get().document, other)

    def test_each_look_is_recorded_and_needs_the_permission(self):
        self.page()
        self.assertEqual(self.looks, [(AuditEntry.Action.UNANSWERED_LISTED,)])
        self.manager.user_permissions.clear()
        for answer in (self.page(), self.client.post(PAGE)):
            self.assertEqual(answer.status_code, 403)
        self.assertEqual(len(self.looks), 1)

    def test_a_dismissed_group_is_gone_until_it_is_asked_again_and_the_reason_is_recorded(self):
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
        self.assertContains(self.page("?group=nothing"), "Nothing was asked in vain")

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

    def test_an_answer_is_begun_with_the_wordings_and_named_once_it_is_there(self):
        for _ in range(3):
            self.ask(FERRY)
        page = self.page()
        address = "/admin/chat/verifiedanswer/add/?question=Who+pays+if"
        self.assertContains(page, address)
        self.assertContains(self.client.get(f"{address}+I+am+late%3F"), "Who pays if I am late?")
        self.assertNotContains(page, "a verified answer</a>")
        make_verified(make_document(everyone=True), question=FERRY)
        self.assertContains(self.page(), "a verified answer</a>")

    @pytest.mark.slow
    def test_a_thousand_questions_are_grouped_quickly(self):
        person = make_user()
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
