"""Exporting and deleting one's own data; one's hints and instructions."""

import io
import json
from unittest.mock import patch
from zipfile import ZipFile

import pytest
from django.core.cache import cache
from django.core.exceptions import RequestAborted
from django.test import AsyncClient, Client, TestCase, TransactionTestCase

from chat import runs
from chat.llm import use_model
from chat.llm.chat_model import messages
from chat.requests import RunRequest
from chat.tests.conversations import answered
from chat.tests.golden_exchange import GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey, AuditEntry, User
from chatsite.accounts.principal import Principal
from history import projects, recording
from history.models import Conversation, Feedback, Message, Project, Share
from ingestion.access.lists import Audience, access_list_for
from ingestion.models import Document
from ingestion.storage.files import StorageFault
from ingestion.tests.factories import make_document, make_user

PAGE = "/settings/data/"


@pytest.mark.slow
class OwnDataTests(TestCase):
    def setUp(self):
        self.ann, self.bob = make_user("ann"), make_user("bob")
        self.shared = make_document("shared.md", owner=self.ann, users=[self.bob])
        self.alone = make_document("alone.md", owner=self.ann)
        self.conversation, message = answered(self.ann, self.alone, question="What is mine?")
        Feedback.objects.create(message=message, rating="bad", comment="Mine")
        Share.objects.create(
            conversation=self.conversation,
            up_to=1,
            access_list=access_list_for(Audience(everyone=True), self.ann.pk),
            digest="x",
        )
        ann, bob = (Principal(each.pk, "command") for each in (self.ann, self.bob))
        self.project = projects.create(ann, "My winter", "As a list.", "own")
        recording.move(ann, self.conversation.pk, self.project.pk)
        projects.create(bob, "Bob's winter")
        self.other, _ = answered(self.bob, self.shared, question="What is Bob's?")
        self.client.force_login(self.ann)

    def test_the_page_says_how_much_there_is(self):
        words = "One zip file with 1 conversation, the documents that you added (2)"
        self.assertContains(self.client.get(PAGE), words)

    def test_the_zip_file_has_all_data_of_the_person_and_nothing_of_others(self):
        AuditEntry.objects.create(action="conversation_read", actor="root", person_id=self.ann.pk)
        sent = self.client.post(PAGE, {"export": "1"})
        archive = ZipFile(io.BytesIO(b"".join(sent.streaming_content)))
        names = archive.namelist()
        self.assertEqual(json.loads(archive.read("profile.json"))["username"], "ann")
        self.assertIn("What is mine?", archive.read("conversations/00001.md").decode())
        (project,) = json.loads(archive.read("projects.json"))
        self.assertEqual(
            (project["name"], project["instructions"], project["scope"], project["conversations"]),
            ("My winter", "As a list.", "own", [str(self.conversation.pk)]),
        )
        self.assertEqual(sum(name.startswith("conversations/") for name in names), 2)
        texts = [archive.read(name).decode() for name in names if name.endswith((".md", ".json"))]
        self.assertNotIn("Bob", "".join(texts))
        acts = [entry["action"] for entry in json.loads(archive.read("audit.json"))]
        self.assertEqual(acts, ["person_exported"])

    def test_a_failing_storage_is_reported_and_leaves_no_partial_file(self):
        with (
            patch("chat.persons.person_export.files.open_file", side_effect=StorageFault("away")),
            self.assertLogs("chat.persons.person_export", "ERROR") as logged,
        ):
            refused = self.client.post(PAGE, {"export": "1"})
        self.assertContains(refused, "storage does not respond", status_code=503)
        self.assertIsNone(logged.records[0].exc_info)

    def test_one_export_of_a_person_is_created_at_a_time(self):
        cache.add(f"export:{self.ann.pk}", True)
        self.addCleanup(cache.delete, f"export:{self.ann.pk}")
        refused = self.client.post(PAGE, {"export": "1"})
        self.assertContains(refused, "Your file is already being prepared", status_code=422)

    def test_conversations_are_deleted_permanently_with_all_related_rows(self):
        self.assertRedirects(self.client.post(PAGE, {"delete": "1", "confirmed": "1"}), PAGE)
        self.assertEqual(list(Conversation.objects.all()), [self.other])
        self.assertFalse(Feedback.objects.exists() or Share.objects.exists())
        self.assertEqual([row.owner for row in Project.objects.all()], [self.bob])
        self.assertEqual(Document.objects.count(), 2)
        entry = AuditEntry.objects.get(action="conversation_deleted")
        self.assertEqual((entry.actor, entry.subject), ("ann", "1 conversations of their own"))

    def test_documents_with_other_readers_stay(self):
        self.client.post(PAGE, {"delete": "1", "confirmed": "1", "documents": "1"})
        self.assertEqual(list(Document.objects.all()), [self.shared])

    def test_nothing_is_deleted_without_confirmation_or_under_a_legal_hold(self):
        refused = self.client.post(PAGE, {"delete": "1"})
        self.assertContains(refused, "Tick the box first", status_code=422)
        User.objects.filter(pk=self.ann.pk).update(legal_hold="A-1")
        refused = self.client.post(PAGE, {"delete": "1", "confirmed": "1", "documents": "1"})
        self.assertContains(refused, "under a legal hold", status_code=422)
        self.assertNotContains(refused, "A-1", status_code=422)
        self.assertEqual((Conversation.objects.count(), Document.objects.count()), (2, 2))

    def test_data_under_a_legal_hold_cannot_be_deleted_or_replaced_piecemeal(self):
        project = Project.objects.create(owner=self.ann, name="Plan", instructions="Mine")
        answer = self.conversation.messages.get(role="assistant")
        opinion = f"/api/messages/{answer.pk}/feedback"
        saved = f"/chat-history/{self.conversation.pk}/messages"
        said = {"id": "x1", "role": "user", "content": "Saved", "timestamp": "10:15 AM"}
        key = {"Authorization": f"Bearer {ApiKey.objects.issue(self.ann, 'test')[1]}"}
        api = Client(headers=key)
        self.assertEqual(api.put(saved, {"messages": [said]}, "application/json").status_code, 200)
        Conversation.objects.filter(pk=self.conversation.pk).update(title="Mine")
        User.objects.filter(pk=self.ann.pk).update(legal_hold="A-1")
        changed = {"messages": [said | {"content": "Replaced"}]}
        refused = [
            api.delete(f"/api/projects/{project.pk}"),
            api.patch(f"/api/projects/{project.pk}", {"name": "Other"}, "application/json"),
            self.client.post(f"/c/{self.conversation.pk}/m/1/feedback", {"rating": ""}),
            api.delete(opinion),
            api.put(opinion, {"rating": "bad", "comment": "Other"}, "application/json"),
            api.put(saved, changed, "application/json"),
            self.client.post(f"/c/{self.conversation.pk}/rename", {"title": "Other"}),
            api.patch(f"/chat-history/{self.conversation.pk}", {"title": "Other"}, "application/json"),
        ]
        for response in refused:
            self.assertContains(response, "under a legal hold", status_code=403)
            self.assertNotContains(response, "A-1", status_code=403)
        page = self.client.post(f"/projects/{project.pk}/delete", follow=True)
        self.assertContains(page, "under a legal hold")
        page = self.client.post(
            f"/projects/{project.pk}/edit", {"name": "Plan", "instructions": "Others"}, follow=True
        )
        self.assertContains(page, "under a legal hold")
        unchanged = api.patch(f"/api/projects/{project.pk}", {"name": "Plan"}, "application/json")
        self.assertEqual(unchanged.status_code, 200)
        more = {"messages": [said, said | {"id": "x2", "content": "More"}]}
        self.assertEqual(api.put(saved, more, "application/json").status_code, 200)
        self.assertEqual(Project.objects.get(pk=project.pk).instructions, "Mine")
        self.assertEqual(Feedback.objects.get().comment, "Mine")
        self.assertTrue(Message.objects.filter(content="Saved").exists())

    def test_a_running_answer_is_stopped_first(self):
        run = runs.begin(Principal(self.ann.pk, "session"), RunRequest("Still running?"))
        with patch("chat.persons.erasure.STOP_SECONDS", 0):
            refused = self.client.post(PAGE, {"delete": "1", "confirmed": "1"})
        self.assertContains(refused, "An answer is still being written.", status_code=422)
        self.assertTrue(Conversation.objects.filter(pk=run.conversation_id).exists())


@pytest.mark.slow
class OwnDataTransferTests(TransactionTestCase):
    async def test_the_zip_file_is_sent_in_pieces(self):
        client = AsyncClient()
        await client.aforce_login(await User.objects.acreate(username="ann"))
        with patch("chat.persons.person_export.CHUNK_BYTES", 1_000):
            sent = await client.post(PAGE, {"export": "1"})
            self.assertTrue(sent.is_async)
            pieces = [piece async for piece in sent.streaming_content]
        self.assertGreater(len(pieces), 1)
        self.assertEqual(int(sent["Content-Length"]), sum(map(len, pieces)))
        self.assertIn("profile.json", ZipFile(io.BytesIO(b"".join(pieces))).namelist())

    async def test_sending_ends_when_the_session_ends_meanwhile(self):
        client = AsyncClient()
        await client.aforce_login(await User.objects.acreate(username="ann"))
        sent = await client.post(PAGE, {"export": "1"})
        await client.alogout()
        with self.assertRaises(RequestAborted):
            self.assertEqual([piece async for piece in sent.streaming_content], [])


class HintTests(TestCase):
    def test_hints_are_shown_until_dismissed(self):
        self.client.force_login(make_user("new"))
        page = self.client.get("/")
        self.assertContains(page, "Three things to know")
        self.assertContains(page, 'like <span class="cite">1</span> opens')
        self.assertRedirects(self.client.post("/settings/hints"), "/", fetch_redirect_response=False)
        self.assertNotContains(self.client.get("/"), "Three things to know")


class WishTests(GoldenTestCase):
    async def prompt_of(self, client, **headers):
        model = ScriptedModel()
        body = json.dumps(
            {"messages": [{"role": "user", "content": "What is included in the Northwind Health plan?"}]}
        )
        with use_model(model):
            response = await client.post("/chat", body, content_type="application/json", headers=headers)
        self.assertEqual(response.status_code, 200)
        return messages(model.prompts[0])

    async def test_personal_instructions_apply_only_to_questions_of_the_browser(self):
        await User.objects.filter(pk=self.user.pk).aupdate(wish="As a list.")
        browser = AsyncClient()
        await browser.aforce_login(self.user)
        system, asked = await self.prompt_of(browser)
        self.assertIn("> As a list.", asked["content"])
        self.assertNotIn("As a list.", system["content"])
        _, asked = await self.prompt_of(AsyncClient(), Authorization=f"Bearer {self.secret}")
        self.assertNotIn("As a list.", asked["content"])
