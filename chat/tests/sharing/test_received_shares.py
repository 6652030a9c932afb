"""“Shared with me”: who finds a share there, under which title, and for how long."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.redaction import shared_titles
from chat.tests.sharing_case import FOLLOWUP, OPEN, OPEN_STATEMENT, OPEN_WORDS, QUESTION, SharingCase
from chatsite.accounts.principal import Principal
from history import recording, sharing
from history.models import Conversation, Message, OpenedShare, Share
from ingestion.access.lists import Audience
from ingestion.models import Document
from ingestion.tests.factories import make_user

pytestmark = pytest.mark.slow

LIST = "/shared/"
TITLE = "The crew office"


class ReceivedSharesTests(SharingCase):
    def named(self, *people, **values):
        return self.share(Audience(user_ids=frozenset(each.pk for each in people)), **values)

    def by_id(self):
        return f"/s/{self.row.pk}/"

    def listed(self, person=None):
        if person:
            self.client.force_login(person)
        response = self.client.get(LIST)
        self.assertEqual(response.status_code, 200)
        return response.content.decode()

    def assert_listed_nowhere(self, person):
        for path in (LIST, "/", "/search/palette", "/search/palette?q=crew", "/c/dots"):
            self.client.force_login(person)
            text = self.client.get(path).content.decode()
            self.assertNotIn(str(self.row.pk), text, path)
            self.assertNotIn(TITLE, text, path)
            self.assertNotIn("1 new", text, path)
        self.assertEqual(sharing.unopened(Principal(person.pk, "command")), 0)

    def test_the_other_people_of_a_long_list_of_readers_are_not_loaded_for_one_of_them(self):
        self.named(self.reader, *(make_user(f"reader-{number}") for number in range(30)))
        with CaptureQueriesContext(connection) as queries:
            self.listed(self.reader)
        loaded = [each["sql"] for each in queries if '"ingestion_accessentry"."id"' in each["sql"]]
        self.assertEqual(len(loaded), 1)
        with connection.cursor() as cursor:
            cursor.execute(loaded[0])
            self.assertEqual(cursor.fetchall(), [])

    def test_a_named_person_and_a_group_find_it_as_new_until_they_open_it(self):
        for share in (lambda: self.named(self.reader), self.share):
            with self.subTest(share):
                share()
                page = self.listed()
                self.assertInHTML(f"<strong><bdi>{TITLE}</bdi></strong>", page)
                self.assertIn(self.by_id(), page)
                self.assertIn("mara", page)
                self.assertIn("1 new", page)
                self.assertEqual(self.client.get("/c/dots").json()["unopened"], 1)
                self.assertEqual(self.client.get(self.by_id()).status_code, 200)
                page = self.listed()
                self.assertIn(self.by_id(), page)
                self.assertNotIn("1 new", page)
                self.assertEqual(self.client.get("/c/dots").json()["unopened"], 0)

    def test_opening_the_link_counts_as_opening_it(self):
        self.named(self.reader)
        self.page()
        self.page()
        self.assertNotIn("1 new", self.listed())
        self.assertEqual(OpenedShare.objects.count(), 1)

    def test_the_list_shows_no_more_than_the_link(self):
        self.named(self.reader)
        self.url = self.by_id()
        for path in ("", "?source=1.2", "source/1.2/", "export.md", "export.md?answer=1"):
            text = self.page(path)
            self.assertIn("eight weeks", text)
            self.assert_clean(text)
        self.assertEqual(self.client.post(self.url + "go-on").status_code, 303)

    def test_other_people_neither_find_nor_open_a_share(self):
        stranger = make_user("stranger")
        staff = make_user("boss", is_staff=True)
        self.named(self.reader)
        for person in (stranger, staff):
            self.assert_listed_nowhere(person)
            self.assert_absent(self.by_id())
            unknown = self.client.get("/s/00000000-0000-4000-8000-000000000000/")
            refused = self.client.get(self.by_id())
            self.assertEqual(refused.status_code, unknown.status_code)
            self.assertEqual(len(refused.content), len(unknown.content))
        self.assertFalse(OpenedShare.objects.exists())

    def test_the_owner_does_not_find_it_among_shares_of_others(self):
        self.named(self.reader)
        page = self.listed(self.owner)
        self.assertNotIn(self.by_id(), page)
        self.assertNotIn("1 new", page)
        self.client.get(self.url)
        self.assertFalse(OpenedShare.objects.exists())

    def test_a_link_for_everyone_is_listed_only_after_opening_it(self):
        self.share(Audience(everyone=True))
        self.assert_listed_nowhere(self.reader)
        self.assert_absent(self.by_id())
        self.page()
        self.assertIn(self.by_id(), self.listed())
        self.assertEqual(self.client.get(self.by_id()).status_code, 200)
        third = make_user("third")
        self.assert_listed_nowhere(third)

    def test_a_new_address_ends_what_was_opened_by_the_old_one(self):
        self.share(Audience(everyone=True))
        self.page()
        sharing.renew(self.principal, self.row.pk)
        self.assert_listed_nowhere(self.reader)
        self.assert_absent(self.by_id())

    def test_named_readers_keep_the_share_after_a_new_address(self):
        self.named(self.reader)
        self.page()
        sharing.renew(self.principal, self.row.pk)
        page = self.listed()
        self.assertIn(self.by_id(), page)
        self.assertNotIn("1 new", page)

    def test_an_ended_share_disappears_at_once(self):
        ends = {
            "revoked": lambda: sharing.revoke(self.principal, self.row.pk),
            "expired": lambda: Share.objects.filter(pk=self.row.pk).update(expires_at=timezone.now()),
            "conversation deleted": lambda: Conversation.objects.filter(pk=self.conversation.pk).update(
                deleted_at=timezone.now()
            ),
            "owner disabled": lambda: (
                type(self.owner).objects.filter(pk=self.owner.pk).update(is_active=False)
            ),
        }
        for opened in (False, True):
            for name, end in ends.items():
                with self.subTest(name, opened=opened):
                    Share.objects.all().delete()
                    Conversation.objects.update(deleted_at=None)
                    type(self.owner).objects.update(is_active=True)
                    self.named(self.reader, expires_at=timezone.now() + timedelta(days=1))
                    if opened:
                        self.page()
                    self.assertIn(self.by_id(), self.listed())
                    end()
                    self.assert_listed_nowhere(self.reader)
                    self.assert_absent(self.by_id())

    def test_a_deleted_owner_shares_nothing(self):
        self.named(self.reader)
        self.page()
        self.owner.delete()
        self.assert_listed_nowhere(self.reader)
        self.assertFalse(OpenedShare.objects.exists())

    def test_former_members_of_the_group_no_longer_find_the_share(self):
        self.share()
        self.page()
        self.reader.groups.clear()
        self.assert_listed_nowhere(self.reader)
        self.assert_absent(self.by_id())

    def test_a_disabled_reader_gets_nothing(self):
        self.named(self.reader)
        type(self.reader).objects.filter(pk=self.reader.pk).update(is_active=False)
        principal = Principal(self.reader.pk, "command")
        self.assertEqual(sharing.unopened(principal), 0)
        self.assertIsNone(sharing.opened(principal, str(self.row.pk)))

    def test_an_answer_is_called_by_its_question(self):
        self.say(OPEN_STATEMENT, "How is it announced?", given=[(self.open, OPEN, OPEN_WORDS)])
        answer = self.conversation.messages.get(position=3)
        self.named(self.reader, answer_id=answer.pk)
        page = self.listed()
        self.assertInHTML("<strong><bdi>How is it announced?</bdi></strong>", page)
        self.assertNotIn(TITLE, page)
        self.assertNotIn(QUESTION, page)

    def test_a_question_that_was_suggested_does_not_name_its_answer(self):
        self.say(OPEN_STATEMENT, FOLLOWUP.upper(), given=[(self.open, OPEN, OPEN_WORDS)])
        answer = self.conversation.messages.get(position=3)
        self.named(self.reader, answer_id=answer.pk)
        page = self.listed()
        self.assertIn("Shared answer", page)
        self.assert_clean(page)

    def test_a_title_made_of_a_question_of_closed_documents_is_not_shown(self):
        Document.objects.filter(pk=self.closed.pk).update(questions={QUESTION: 1})
        self.named(self.reader)
        page = self.listed()
        self.assertIn("Shared conversation", page)
        self.assertNotIn(TITLE, page)

    def test_an_edited_first_question_does_not_have_the_title_of_the_original(self):
        recording.go_back(self.conversation, -1)
        self.say(OPEN_STATEMENT, "Something else?", given=[(self.open, OPEN, OPEN_WORDS)])
        self.named(self.reader)
        for page in (self.listed(), self.page()):
            self.assertNotIn(TITLE, page)
            self.assertIn("Something else", page)
            self.assertNotIn("Shared conversation", page)

    def test_a_share_keeps_the_title_of_its_creation(self):
        self.named(self.reader)
        recording.rename(self.principal, self.conversation.pk, "Another title")
        for page in (self.listed(), self.page()):
            self.assertIn(TITLE, page)
            self.assertNotIn("Another title", page)
        Share.objects.update(title=None)  # created by the version before
        for page in (self.listed(), self.page()):
            self.assertIn("Another title", page)
            self.assertNotIn(TITLE, page)

    def test_a_title_written_after_sharing_names_no_edited_first_question(self):
        recording.go_back(self.conversation, -1)
        self.say(OPEN_STATEMENT, "Something else?", given=[(self.open, OPEN, OPEN_WORDS)])
        self.named(self.reader)
        recording.rename(self.principal, self.conversation.pk, "Another title")
        for page in (self.listed(), self.page()):
            self.assertIn("Something else", page)
            self.assertNotIn("Another title", page)

    def test_an_edited_first_question_that_was_suggested_names_no_conversation(self):
        recording.go_back(self.conversation, -1)
        self.say(OPEN_STATEMENT, FOLLOWUP, given=[(self.open, OPEN, OPEN_WORDS)])
        self.named(self.reader)
        page = self.listed()
        self.assertIn("Shared conversation", page)
        self.assert_clean(page)

    def test_the_list_names_only_groups_of_the_reader(self):
        other = make_user("other", groups=["Secret circle"]).groups.get()
        self.share(Audience(user_ids=frozenset({self.reader.pk}), group_ids=frozenset({other.pk})))
        page = self.listed()
        self.assertIn("with <bdi>you</bdi>", page)
        self.assertNotIn("Secret circle", page)

    def test_the_number_of_queries_does_not_grow_with_shares(self):
        def queries():
            with CaptureQueriesContext(connection) as captured:
                self.client.get(LIST)
            return len(captured)

        self.named(self.reader)
        self.share(answer_id=self.answer.pk)
        queries()
        one = queries()
        for _ in range(5):
            self.named(self.reader)
            self.share(answer_id=self.answer.pk)
        self.assertEqual(queries(), one)

    def test_the_cost_of_the_list_does_not_depend_on_the_length_of_conversations(self):
        def rows():
            with CaptureQueriesContext(connection) as captured:
                self.listed(self.reader)
            messages = [each["sql"] for each in captured if 'FROM "history_message"' in each["sql"]]
            with connection.cursor() as cursor:
                return sum(cursor.execute(sql).rowcount for sql in messages)

        self.named(self.reader)
        self.share(answer_id=self.answer.pk)
        few = rows()
        position = self.conversation.messages.count()
        Message.objects.bulk_create(
            Message(
                conversation=self.conversation,
                position=position + number,
                role="assistant" if number % 2 else "user",
                content=f"Said {number}",
                followups=[f"Asked {number}?"] if number % 2 else [],
            )
            for number in range(1_000)
        )
        last = self.conversation.messages.order_by("position").last()
        self.named(self.reader)
        self.share(answer_id=last.pk)
        self.assertLess(rows(), few + 2 * shared_titles.LOOKED_AT + shared_titles.LOOKED_BACK)
        page = self.listed(self.reader)
        self.assertEqual(page.count(TITLE), 2)
        self.assertNotIn("Said 998", page)  # an earlier message may have suggested it

    def test_an_edited_first_question_that_an_answer_may_have_suggested_names_nothing(self):
        recording.go_back(self.conversation, -1)
        self.say(OPEN_STATEMENT, FOLLOWUP, given=[(self.open, OPEN, OPEN_WORDS)])
        self.named(self.reader)
        self.assert_clean(self.listed())

    def test_an_answer_far_from_its_question_is_called_a_shared_answer(self):
        for _ in range(shared_titles.LOOKED_AT):
            recording.append(self.conversation, "assistant", OPEN_STATEMENT)
        last = self.conversation.messages.order_by("position").last()
        self.share(Audience(user_ids=frozenset({self.reader.pk})), answer_id=last.pk)
        self.assertIn("Shared answer", self.listed(self.reader))

    def test_anonymous_visitors_are_sent_to_sign_in(self):
        self.named(self.reader)
        self.client.logout()
        for path in (LIST, self.by_id()):
            self.assertIn("/accounts/sign-in/", self.client.get(path).headers["Location"])

    def test_the_sharer_is_told_where_readers_find_the_share(self):
        self.client.force_login(self.owner)
        address = f"/c/{self.conversation.pk}/share"
        values = {"days": "7", "answer": ""}
        named = self.client.post(address, values | {"who": "some", "people": "reader"})
        self.assertContains(named, "find it under “Shared with me”")
        everyone = self.client.post(address, values | {"who": "everyone"})
        self.assertNotContains(everyone, "find it under “Shared with me”")
