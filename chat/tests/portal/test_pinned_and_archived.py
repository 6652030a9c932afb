"""Pinned and archived conversations: in the sidebar, in lists, by REST, and several at once."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import TestCase

from chat.tests.conversations import answered
from chatsite.accounts.principal import Principal
from history import projects
from history.models import Conversation
from ingestion.tests.factories import make_document, make_user


@pytest.mark.slow
class PinnedAndArchived(TestCase):
    def setUp(self):
        self.user, self.other = make_user("asker"), make_user("other")
        self.client.force_login(self.user)
        now = datetime.now(UTC)
        self.rows = [
            Conversation.objects.create(owner=self.user, title=f"Row {n}", updated_at=now - timedelta(days=n))
            for n in range(4)
        ]
        self.foreign = Conversation.objects.create(owner=self.other, title="Foreign")

    def sidebar(self):
        """The headings and titles of the sidebar, in order."""
        page = self.client.get("/settings/").content.decode()
        history = page[page.index('class="history"') : page.index('class="side-foot"')]
        return re.findall(r"<h2>(.+?)</h2>|<bdi>(.+?)</bdi>", history)

    def names(self):
        return [heading or title for heading, title in self.sidebar()]

    def post(self, row, act, *, on=True):
        return self.client.post(f"/c/{row.pk}/{act}", {"on": ""} if on else {})

    def listed(self, query=""):
        return [row["title"] for row in self.client.get(f"/chat-history{query}").json()]

    def change(self, row, **change):
        return self.client.patch(
            f"/chat-history/{row.pk}",
            change,
            content_type="application/json",
            headers={"Sec-Fetch-Site": "same-origin"},
        )

    def test_pinned_conversations_are_above_the_others_with_the_latest_first(self):
        self.post(self.rows[3], "pin")
        self.post(self.rows[2], "pin")
        self.assertEqual(self.names()[:5], ["Pinned", "Row 2", "Row 3", "Today", "Row 0"])
        self.post(self.rows[2], "pin", on=False)
        self.assertEqual(self.names()[:2], ["Pinned", "Row 3"])

    def test_an_archived_conversation_leaves_the_lists_and_is_found_by_search(self):
        self.post(self.rows[0], "archive")
        self.assertNotIn("Row 0", self.names())
        self.assertNotIn("Row 0", self.client.get("/search/").content.decode().split('class="results"')[1])
        self.assertContains(self.client.get("/"), 'href="/search/?show=archived"')
        self.assertContains(self.client.get("/search/?show=archived"), f"/c/{self.rows[0].pk}/")
        self.assertContains(self.client.get("/search/?q=Row"), f"/c/{self.rows[0].pk}/")
        self.assertContains(self.client.get(f"/c/{self.rows[0].pk}/"), "This conversation is archived.")
        self.post(self.rows[0], "archive", on=False)
        self.assertIn("Row 0", self.names())

    def test_archiving_unpins_and_pinning_restores(self):
        row = self.rows[0]
        self.post(row, "pin")
        self.post(row, "archive")
        row.refresh_from_db()
        self.assertIsNone(row.pinned_at)
        self.post(row, "pin")
        row.refresh_from_db()
        self.assertIsNone(row.archived_at)

    def test_a_new_question_restores_an_archived_conversation(self):
        conversation, _ = answered(self.user, make_document(everyone=True))
        self.post(conversation, "archive")
        self.client.post(f"/c/{conversation.pk}/ask", {"question": "And then?"})
        conversation.refresh_from_db()
        self.assertIsNone(conversation.archived_at)

    def test_programs_pin_archive_and_list(self):
        row = self.rows[1]
        self.assertEqual(self.change(row, archived=True).status_code, 200)
        self.assertEqual(self.listed(), ["Row 0", "Row 2", "Row 3"])
        self.assertEqual(self.listed("?archived=true"), ["Row 1"])
        changed = self.change(row, pinned=True, title="Pinned one").json()
        self.assertIs(changed["pinned"], True)
        self.assertNotIn("archived", changed)
        self.assertEqual(self.names()[:2], ["Pinned", "Pinned one"])

    def test_an_invalid_change_is_refused_with_its_member(self):
        for change, words in (
            ({}, "must have one of “title”, “pinned”, “archived” and “project_id”."),
            ({"titel": "Leave"}, "must have one of “title”, “pinned”, “archived” and “project_id”."),
            ({"title": 7}, "“title” must be text."),
            ({"pinned": "yes"}, "“pinned” must be true or false."),
            ({"archived": None}, "“archived” must be true or false."),
            ({"pinned": True, "archived": True}, "cannot be true together"),
        ):
            response = self.change(self.rows[0], **change)
            self.assertContains(response, words, status_code=400)
        self.assertEqual(self.client.get("/chat-history?archived=1").status_code, 400)

    def test_several_conversations_are_archived_restored_and_deleted_after_confirmation(self):
        ticked = {"conversation": [str(row.pk) for row in self.rows[:2]]}
        said = self.client.post("/search/several", {**ticked, "act": "archive"}, follow=True)
        self.assertContains(said, "2 conversations archived.")
        self.assertEqual(self.listed("?archived=true"), ["Row 0", "Row 1"])
        self.client.post("/search/several", {**ticked, "act": "bring-back"})
        asked = self.client.post("/search/several", {**ticked, "act": "delete"})
        self.assertContains(asked, "Delete these 2 conversations?")
        self.assertEqual(len(self.listed()), 4)
        self.client.post("/search/several", {**ticked, "act": "delete", "confirmed": "1"})
        self.assertEqual(self.listed(), ["Row 2", "Row 3"])

    def test_several_conversations_are_moved_into_a_project_and_out_of_it(self):
        trip = projects.create(Principal(self.user.pk, "session"), "Trip to Oslo")
        ticked = {"conversation": [str(row.pk) for row in self.rows[:2]], "act": "move"}
        places = self.client.post("/search/several", ticked)
        self.assertContains(places, "Trip to Oslo")
        self.assertContains(places, "Row 1")
        found = self.client.post("/search/several", {**ticked, "q": "berlin"})
        self.assertContains(found, "No project has these words in its name.")
        self.assertNotContains(found, f'value="{trip.pk}"')
        said = self.client.post("/search/several", {**ticked, "project": str(trip.pk)}, follow=True)
        self.assertContains(said, "2 conversations moved to “Trip to Oslo”.")
        self.assertEqual(Conversation.objects.filter(project=trip).count(), 2)
        refused = self.client.post("/search/several", {**ticked, "project": "new", "name": " "})
        self.assertContains(refused, "A name needs at least one character.", status_code=422)
        self.client.post("/search/several", {**ticked, "project": "new", "name": "Bergen"})
        self.assertEqual(Conversation.objects.filter(project__name="Bergen").count(), 2)
        said = self.client.post("/search/several", {**ticked, "project": "none"}, follow=True)
        self.assertContains(said, "2 conversations are no longer in a project.")
        self.assertFalse(Conversation.objects.exclude(project=None).exists())

    def test_moves_with_a_foreign_project_or_conversation_are_refused(self):
        theirs = projects.create(Principal(self.other.pk, "session"), "Theirs")
        mine = projects.create(Principal(self.user.pk, "session"), "Mine")
        ticked = {"conversation": [str(self.rows[0].pk)], "act": "move"}
        for place in (theirs.pk, uuid4(), "x"):
            refused = self.client.post("/search/several", {**ticked, "project": str(place)})
            self.assertEqual(refused.status_code, 404)
        ticked["conversation"] = [str(self.foreign.pk)]
        said = self.client.post("/search/several", {**ticked, "project": str(mine.pk)}, follow=True)
        self.assertContains(said, "Tick the conversations first.")
        self.assertFalse(Conversation.objects.exclude(project=None).exists())

    def test_conversations_of_others_stay_unchanged_and_undisclosed(self):
        for act in ("archive", "delete"):
            ticked = {"conversation": [str(self.foreign.pk), "x", ""], "act": act, "confirmed": "1"}
            said = self.client.post("/search/several", ticked, follow=True)
            self.assertContains(said, "Tick the conversations first.")
            self.assertNotContains(said, "Foreign")
        self.assertEqual(self.post(self.foreign, "pin").status_code, 404)
        self.assertEqual(self.change(self.foreign, pinned=True).status_code, 404)
        self.foreign.refresh_from_db()
        self.assertEqual(
            (self.foreign.pinned_at, self.foreign.archived_at, self.foreign.deleted_at), (None,) * 3
        )
