"""Members of projects: what they see and use, what stays private, and the end of a membership."""

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest
from django.contrib.auth.models import Group
from django.core.files.base import ContentFile
from django.test import TestCase

from chat import runs
from chat.errors import Refused
from chat.persons.erasure import delete_own, erase
from chat.persons.person_export import export
from chat.requests import RunRequest
from chatsite.accounts.models import ApiKey, AuditEntry
from chatsite.accounts.principal import Principal
from history import projects, recording
from history.models import Conversation, Project
from ingestion.access.lists import Audience
from ingestion.documents import upsert
from ingestion.search.scopes import CLOSED
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin


class MembersCase(TestCase):
    def setUp(self):
        self.owner, self.member = make_user("owner"), make_user("member")
        self.stranger = make_user("stranger")
        self.group = Group.objects.create(name="Pursers")
        self.owner.groups.add(self.group)
        self.own, self.theirs = Principal(self.owner.pk, "session"), Principal(self.member.pk, "session")
        make_document("board.md", owner=self.owner, everyone=False, folder="Secret board")
        make_document("routes.md", everyone=True, folder="Routes")
        self.project = Project.objects.create(
            owner=self.owner, name="Winter", instructions="As a table.", scope="folder:Routes"
        )
        self.page = f"/projects/{self.project.pk}/"
        projects.set_members(self.own, self.project.pk, Audience(user_ids=frozenset({self.member.pk})))
        self.client.force_login(self.member)

    def ask(self, principal, conversation=None):
        """Ask a question in the project, or in a conversation, and return its run."""
        place = {"conversation_id": conversation} if conversation else {"project_id": self.project.pk}
        run = runs.begin(principal, RunRequest(question="When does it sail?", **place))
        Conversation.objects.get(pk=run.conversation_id).runs.all().delete()
        return run

    def withdraw(self):
        projects.set_members(self.own, self.project.pk, Audience())

    def rename(self, **values):
        Project.objects.filter(pk=self.project.pk).update(**values)


class Choosing(MembersCase):
    def test_the_owner_adds_and_removes_people_and_groups(self):
        self.client.force_login(self.owner)
        form = {"who": "some", "people": "Stranger (stranger)", "groups": [self.group.pk]}
        page = self.client.post(f"{self.page}members", form, follow=True)
        self.assertRegex(page.content.decode(), r"<bdi>Pursers</bdi>,\s+<bdi>stranger</bdi>")
        self.assertEqual(
            projects.members_of(Project.objects.get(pk=self.project.pk)),
            Audience(user_ids=frozenset({self.stranger.pk}), group_ids=frozenset({self.group.pk})),
        )
        page = self.client.post(f"{self.page}members", {"who": "some"}, follow=True)
        self.assertContains(page, "Only you")
        self.assertIsNone(Project.objects.get(pk=self.project.pk).access_list)

    def test_impossible_members_are_refused(self):
        self.client.force_login(self.owner)
        other = Group.objects.create(name="Not mine")
        for form, words in (
            ({"who": "some", "people": "nobody-of-this-name"}, "There is no account named"),
            ({"who": "some", "groups": [other.pk]}, "You can choose only groups you belong to."),
            ({"who": "everyone"}, "Select a valid choice"),
        ):
            self.assertContains(self.client.post(f"{self.page}members", form), words, status_code=422)
        self.assertEqual(
            projects.members_of(Project.objects.get(pk=self.project.pk)).user_ids, {self.member.pk}
        )

    def test_each_change_is_logged_once_without_the_name_of_the_project(self):
        self.rename(name="A secret plan")
        self.withdraw()
        self.withdraw()
        entries = AuditEntry.objects.filter(action="members_changed").order_by("pk")
        self.assertEqual(
            [(entry.actor, entry.person, entry.subject) for entry in entries],
            [
                ("owner", "owner", f"project {self.project.pk}: Nobody → member, owner"),
                ("owner", "owner", f"project {self.project.pk}: member, owner → Nobody"),
            ],
        )


@pytest.mark.slow
class Seeing(MembersCase):
    def test_a_member_sees_the_project_and_changes_nothing_of_it(self):
        page = self.client.get(self.page)
        self.assertContains(page, "As a table.")
        self.assertContains(page, "Only the folder “Routes”")
        self.assertContains(page, "<bdi>owner</bdi>")
        for change in ("edit", "members", "scope", "delete"):
            self.assertNotContains(page, f'href="{self.page}{change}"')
            self.assertEqual(self.client.get(f"{self.page}{change}").status_code, 404, change)
            sent = {"name": "Mine", "use": "all", "who": "some"}
            self.assertEqual(self.client.post(f"{self.page}{change}", sent).status_code, 404, change)
        self.assertContains(self.client.get("/projects/"), "Winter")
        self.assertContains(self.client.get("/settings/"), "<bdi>Winter</bdi>")

    def test_people_who_are_not_members_see_nothing(self):
        self.client.force_login(self.stranger)
        for action in ("", "ask", "search-in", "leave", "members"):
            self.assertEqual(self.client.get(f"{self.page}{action}").status_code, 404, action)
        self.assertEqual(self.client.post(f"{self.page}ask", {"question": "When?"}).status_code, 404)
        self.assertNotContains(self.client.get("/projects/"), "Winter")

    def test_membership_follows_the_group(self):
        projects.set_members(self.own, self.project.pk, Audience(group_ids=frozenset({self.group.pk})))
        self.assertEqual(self.client.get(self.page).status_code, 404)
        self.member.groups.add(self.group)
        self.assertEqual(self.client.get(self.page).status_code, 200)
        self.assertEqual(self.client.get(f"{self.page}leave").status_code, 404)
        self.member.groups.clear()
        self.assertEqual(self.client.get(self.page).status_code, 404)

    def test_conversations_stay_private_to_each_member(self):
        theirs = self.ask(self.theirs).conversation_id
        own = self.ask(self.own).conversation_id
        used = Project.objects.get(pk=self.project.pk).updated_at
        self.assertContains(self.client.get(self.page), f"/c/{theirs}/")
        self.assertNotContains(self.client.get(self.page), f"/c/{own}/")
        self.assertContains(self.client.get("/projects/"), "1 conversation\n")
        self.client.force_login(self.owner)
        self.assertNotContains(self.client.get(self.page), f"/c/{theirs}/")
        self.assertEqual(self.client.get(f"/c/{theirs}/").status_code, 404)
        self.assertContains(self.client.get("/projects/"), "1 conversation\n")
        # A member's question does not change it either.
        self.ask(self.theirs, theirs)
        self.assertEqual(Project.objects.get(pk=self.project.pk).updated_at, used)


class Asking(MembersCase):
    def test_a_members_question_uses_the_instructions_and_the_scope(self):
        run = self.ask(self.theirs)
        self.assertEqual(run.owner_instructions, "As a table.")
        conversation = Conversation.objects.get(pk=run.conversation_id)
        self.assertEqual((conversation.owner, conversation.scope), (self.member, "folder:Routes"))

    @pytest.mark.slow
    def test_a_scope_closed_to_a_member_finds_nothing_and_reveals_no_name(self):
        for scope in ("folder:Secret board", "category:Secret board"):
            self.rename(scope=scope)
            for address in (self.page, f"{self.page}search-in"):
                page = self.client.get(address)
                self.assertEqual(page.status_code, 200)
                self.assertNotContains(page, "Secret board")
            self.assertContains(self.client.get(self.page), "Only documents that you cannot read")
            self.assertNotIn("Secret", self.client.get(f"/api/projects/{self.project.pk}").content.decode())
            self.assertNotIn("Secret", self.client.get("/api/projects").content.decode())
            begun = self.ask(self.theirs)
            self.assertEqual(begun.request.options.scope, CLOSED)
            self.assertNotContains(self.client.get(f"/c/{begun.conversation_id}/"), "Secret board")
            empty = self.client.post(
                "/chat-history", {"project_id": str(self.project.pk)}, "application/json"
            ).json()
            self.assertEqual(Conversation.objects.get(pk=empty["id"]).scope, CLOSED)
            self.assertEqual(Project.objects.get(pk=self.project.pk).scope, scope)

    def test_only_documents_that_the_member_added_count_as_own(self):
        self.rename(scope="own")
        self.assertContains(self.client.get(self.page), "Only what you added")


@pytest.mark.slow
class ReplacedDocuments(MediaMixin, MembersCase):
    def test_a_document_replaced_for_others_is_not_named(self):
        everyone = Audience(everyone=True)
        document = upsert(ContentFile(b"Old."), "plan-z.md", owner=self.owner, audience=everyone).document
        scope = f"document:{document.public_id}"
        self.rename(scope=scope)
        self.assertContains(self.client.get(self.page), "plan-z")
        self.assertEqual(self.ask(self.theirs).request.options.scope, scope)
        put = upsert(ContentFile(b"New."), "plan-z.md", owner=self.owner, audience=Audience())
        self.assertEqual((put.outcome, put.document.pk), ("replaced", document.pk))
        begun = self.ask(self.theirs)  # the member can read none of the documents in its scope
        for address in (self.page, f"/c/{begun.conversation_id}/", f"{self.page}search-in"):
            self.assertNotContains(self.client.get(address), "plan-z")


class Leaving(MembersCase):
    def test_the_end_of_membership_applies_from_the_next_question(self):
        conversation = self.ask(self.theirs).conversation_id
        page = self.client.get(f"/c/{conversation}/")
        self.assertContains(page, self.page)
        self.assertContains(page, "with instructions of <bdi>owner</bdi>")
        self.withdraw()
        self.assertEqual(self.client.get(self.page).status_code, 404)
        self.assertEqual(self.client.post(f"{self.page}ask", {"question": "When?"}).status_code, 404)
        self.assertEqual(self.ask(self.theirs, conversation).owner_instructions, "")
        page = self.client.get(f"/c/{conversation}/")
        self.assertEqual(page.status_code, 200)
        self.assertNotContains(page, self.page)
        self.assertNotContains(page, "Winter")
        for address in ("/chat-history", f"/chat-history?project_id={self.project.pk}"):
            self.assertNotIn(str(self.project.pk), self.client.get(address).content.decode())
        self.assertNotContains(self.client.get(f"/c/{conversation}/project"), "Winter")

    def test_a_question_from_an_open_page_is_refused_after_membership_ends(self):
        self.withdraw()
        with self.assertRaises(Refused):
            self.ask(self.theirs)
        with self.assertRaises(Project.DoesNotExist):
            recording.open_conversation(self.theirs, project_id=self.project.pk)
        mine = Conversation.objects.create(owner=self.member)
        with self.assertRaises(Project.DoesNotExist):
            recording.move(self.theirs, mine.pk, self.project.pk)

    def test_a_returning_member_finds_their_conversations_in_place(self):
        conversation = self.ask(self.theirs).conversation_id
        self.withdraw()
        projects.set_members(self.own, self.project.pk, Audience(user_ids=frozenset({self.member.pk})))
        self.assertContains(self.client.get(self.page), f"/c/{conversation}/")

    def test_a_member_can_leave(self):
        self.assertContains(self.client.get(f"{self.page}leave"), "Leave this project?")
        self.client.post(f"{self.page}leave")
        self.assertEqual(self.client.get(self.page).status_code, 404)
        entry = AuditEntry.objects.filter(action="members_changed").first()
        self.assertEqual((entry.actor, entry.person), ("member", "owner"))

    def test_the_owner_cannot_leave(self):
        self.client.force_login(self.owner)
        self.assertEqual(self.client.get(f"{self.page}leave").status_code, 404)

    def test_the_project_of_a_disabled_account_is_closed_to_members(self):
        conversation = self.ask(self.theirs).conversation_id
        self.owner.is_active = False
        self.owner.save()
        self.assertEqual(self.client.get(self.page).status_code, 404)
        self.assertEqual(self.ask(self.theirs, conversation).owner_instructions, "")

    def test_members_keep_their_conversations_when_the_project_is_deleted(self):
        conversation = self.ask(self.theirs).conversation_id
        self.client.force_login(self.owner)
        self.assertContains(self.client.get(f"{self.page}delete"), "Its members lose it too")
        self.client.post(f"{self.page}delete")
        self.assertIsNone(Conversation.objects.get(pk=conversation).project)


class Persons(MembersCase):
    def exported(self, person):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "all.zip"
            export(person, path, actor=person)
            return ZipFile(io.BytesIO(path.read_bytes()))

    def test_an_export_names_members_without_their_conversations(self):
        theirs, own = self.ask(self.theirs).conversation_id, self.ask(self.own).conversation_id
        (row,) = json.loads(self.exported(self.owner).read("projects.json"))
        self.assertEqual((row["members"], row["conversations"]), (["member"], [str(own)]))
        exported = self.exported(self.member)
        self.assertEqual(json.loads(exported.read("projects.json")), [])
        texts = [exported.read(name).decode() for name in exported.namelist() if name.endswith(".json")]
        self.assertTrue(any(str(theirs) in text for text in texts))
        self.assertFalse(any(str(own) in text or "As a table." in text for text in texts))

    def test_erasing_the_owner_leaves_members_their_conversations(self):
        conversation = self.ask(self.theirs).conversation_id
        erase(self.owner, actor=None, delete_documents=True)
        self.assertIsNone(Conversation.objects.get(pk=conversation).project)
        self.assertFalse(Project.objects.exists())
        self.assertFalse(AuditEntry.objects.filter(subject__contains="owner").exists())

    def test_deleting_ones_own_data_leaves_members_their_conversations(self):
        conversation = self.ask(self.theirs).conversation_id
        delete_own(self.owner, documents=False)
        self.assertIsNone(Conversation.objects.get(pk=conversation).project)

    def test_erasing_a_member_removes_the_name_and_keeps_the_project(self):
        self.ask(self.theirs)
        self.member.first_name = "Zebulon"
        self.member.save()
        erase(self.member, actor=None, delete_documents=True)
        project = Project.objects.get(pk=self.project.pk)
        self.assertEqual((projects.member_names(project), project.instructions), ([], "As a table."))
        self.assertFalse(AuditEntry.objects.filter(subject__contains="member,").exists())


class ByRest(MembersCase):
    def key(self, person, scopes=("chat",)):
        _, secret = ApiKey.objects.issue(person, "test", scopes=list(scopes))
        return {"headers": {"Authorization": f"Bearer {secret}"}}

    def test_a_key_of_a_member_reads_the_project_and_changes_nothing(self):
        self.client.logout()
        address = f"/api/projects/{self.project.pk}"
        key = self.key(self.member)
        read = self.client.get(address, **key).json()
        self.assertEqual((read["owner"], read["instructions"]), ("owner", "As a table."))
        changed = self.client.patch(address, {"name": "Mine"}, "application/json", **key)
        self.assertEqual(changed.status_code, 404)
        self.assertEqual(self.client.delete(address, **key).status_code, 404)
        begun = self.client.post(
            "/chat-history", {"project_id": str(self.project.pk)}, "application/json", **key
        )
        self.assertEqual(begun.status_code, 201)
        self.assertEqual(self.client.get(address, **self.key(self.stranger)).status_code, 404)
        self.assertEqual(
            self.client.get(address, **self.key(self.member, ("documents:read",))).status_code, 403
        )
        self.withdraw()
        self.assertEqual(self.client.get(address, **key).status_code, 404)
        self.assertEqual(self.client.get("/api/projects", **key).json(), [])


class MembersByRest(MembersCase):
    def setUp(self):
        super().setUp()
        self.path = f"/api/projects/{self.project.pk}/members"
        self.group.name = "Deck & engine"
        self.group.save()

    def call(self, user, method, body=None):
        _, key = ApiKey.objects.issue(user, "test", scopes=("chat",))
        arguments = () if body is None else (json.dumps(body), "application/json")
        headers = {"Authorization": f"Bearer {key}"}
        answer = getattr(self.client, method)(self.path, *arguments, headers=headers)
        return answer.status_code, answer.json() if answer.content else None

    def test_the_owner_reads_and_replaces_the_members(self):
        self.assertEqual(self.call(self.owner, "get"), (200, {"groups": [], "people": ["member"]}))
        wanted = {"groups": ["Deck & engine"], "people": ["member", "stranger"]}
        self.assertEqual(self.call(self.owner, "put", wanted), (200, wanted))
        self.assertEqual(projects.opened(Principal(self.stranger.pk, "key"), self.project.pk), self.project)
        self.assertEqual(self.call(self.owner, "put", {}), (200, {"groups": [], "people": []}))
        with self.assertRaises(Project.DoesNotExist):
            projects.opened(self.theirs, self.project.pk)

    def test_a_group_that_the_owner_has_left_stays_until_removed(self):
        wanted = {"groups": ["Deck & engine"], "people": []}
        self.call(self.owner, "put", wanted)
        self.owner.groups.clear()
        self.assertEqual(self.call(self.owner, "put", wanted), (200, wanted))
        self.call(self.owner, "put", {})
        self.assertEqual(self.call(self.owner, "put", wanted)[0], 400)

    def test_invalid_names_are_refused_and_nothing_changes(self):
        Group.objects.create(name="Board")
        make_user("gone", is_active=False)
        for body in (
            {"groups": ["Board"]},
            {"groups": ["Nothing"]},
            {"people": ["gone"]},
            {"people": ["nobody"]},
            {"people": "member"},
            {"everyone": True},
        ):
            self.assertEqual(self.call(self.owner, "put", body)[0], 400, body)
        self.assertEqual(self.call(self.owner, "get")[1], {"groups": [], "people": ["member"]})

    def test_members_and_strangers_find_nothing_to_read_or_change(self):
        for person in (self.member, self.stranger):
            for method, body in (("get", None), ("put", {"people": [person.username]})):
                self.assertEqual(self.call(person, method, body)[0], 404)
        unknown = self.path.replace(str(self.project.pk), "00000000-0000-4000-8000-000000000000")
        refusal = self.call(self.stranger, "get")
        self.path = unknown
        self.assertEqual(self.call(self.stranger, "get"), refusal)

    def test_only_a_personal_member_can_leave_and_only_once(self):
        for person in (self.owner, self.stranger):
            self.assertEqual(self.call(person, "delete")[0], 404)
        self.assertEqual(self.call(self.member, "delete"), (204, None))
        self.assertEqual(self.call(self.member, "delete")[0], 404)
        self.member.groups.add(self.group)
        projects.set_members(self.own, self.project.pk, Audience(group_ids=frozenset({self.group.pk})))
        self.assertEqual(self.call(self.member, "delete")[0], 404)

    def test_each_change_is_logged(self):
        before = AuditEntry.objects.count()
        self.call(self.owner, "put", {"people": ["stranger"]})
        self.call(self.owner, "put", {"people": ["stranger"]})
        self.assertEqual(AuditEntry.objects.count(), before + 1)
