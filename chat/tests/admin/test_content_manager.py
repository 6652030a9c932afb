"""A content manager with the rights that docs/knowledge.md lists reaches every page of a day's work."""

import io
import re
from importlib import import_module
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import TestCase, override_settings

from chat.models import VerifiedAnswer
from chatsite.accounts.models import AuditEntry
from ingestion.tests.factories import make_document, make_user

PLAIN = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
PAGES = (
    "",
    "accounts/auditentry/",
    "accounts/user/",
    "auth/group/",
    "chat/proofquestion/",
    "chat/proofquestion/add/",
    "chat/proofquestion/collect/",
    "chat/proofrun/",
    "chat/proofrun/add/",
    "chat/startingquestion/",
    "chat/startingquestion/add/",
    "chat/verifiedanswer/",
    "chat/verifiedanswer/add/",
    "chat/verifiedanswer/unanswered/",
    "figures/days.csv",
    "ingestion/bulkchange/",
    "ingestion/document/",
    "ingestion/document/access/",
    "ingestion/document/add/",
    "ingestion/houseword/",
    "ingestion/houseword/add/",
    "ingestion/houseword/file/",
)


def documented_permissions():
    """The rights in the documentation's table, by their names in the admin."""
    text = (Path(settings.BASE_DIR) / "docs" / "knowledge.md").read_text("utf-8")
    table = text.partition("## The rights of a content manager")[2].partition("\n## ")[0]
    found = []
    for row in re.findall(r"^\|.*\|(.*)\|$", table, re.MULTILINE)[2:]:
        for part in row.split(";"):
            acts, _, named = part.rpartition(":")
            for name in re.findall(r"\*(.+?)\*", named):
                found += (
                    [f"Can {act.strip()} {name}" for act in acts.split(",")] if acts else [f"C{name[1:]}"]
                )
    return found


@pytest.mark.slow
@override_settings(STORAGES={**settings.STORAGES, "staticfiles": PLAIN})
class ContentManagerTests(TestCase):
    def setUp(self):
        names = documented_permissions()
        rights = Permission.objects.filter(name__in=names)
        self.assertEqual(sorted(names), sorted(rights.values_list("name", flat=True)))
        self.manager = make_user("carla")
        call_command("create_content_managers", "carla", stdout=io.StringIO())
        self.manager.refresh_from_db()
        group = Group.objects.get(name="Content managers")
        self.assertEqual(set(group.permissions.all()), set(rights))  # as documented
        self.client.force_login(self.manager)

    def test_no_two_permissions_have_the_same_name(self):
        names = list(Permission.objects.values_list("name", flat=True))
        self.assertEqual(len(names), len(set(names)))

    def test_an_existing_permission_is_renamed(self):
        migration = import_module("chat.migrations.0015_names_of_permissions")
        permissions = Permission.objects.filter(content_type__model="verifiedcitation").order_by("name")
        names = list(permissions.values_list("name", flat=True))
        with connection.cursor() as cursor:
            cursor.execute(migration.RENAME, [migration.NOW, migration.BEFORE])
            self.assertEqual(permissions.first().name, "Can add source")
            cursor.execute(migration.RENAME, [migration.BEFORE, migration.NOW])
        self.assertEqual(list(permissions.values_list("name", flat=True)), names)
        self.assertTrue(Permission.objects.filter(name="Can add source").exists())

    def test_the_command_makes_members_staff_logs_it_and_can_be_repeated(self):
        self.assertTrue(self.manager.is_staff)
        entries = list(AuditEntry.objects.order_by("pk").values_list("action", "person"))
        self.assertEqual(entries, [("group_changed", ""), ("account_changed", "carla")])
        Group.objects.get(name="Content managers").permissions.add(
            Permission.objects.get(codename="add_agent")
        )
        said = io.StringIO()
        call_command("create_content_managers", "carla", stdout=said)
        self.assertIn("Members: 1.", said.getvalue())
        self.assertEqual(AuditEntry.objects.count(), 2)
        self.assertTrue(Group.objects.filter(permissions__codename="add_agent").exists())

    def test_an_impossible_member_is_named_and_nothing_is_created(self):
        make_user("wiki", service_for="Wiki")
        for arguments, words in (
            (("nobody",), "There is no account named nobody."),
            (("carla", "wiki"), "There is no account named wiki."),
            (("--group", " "), "The name of a group must have 1 to 150 characters."),
            (("--group", "x" * 151), "The name of a group must have 1 to 150 characters."),
        ):
            with self.assertRaisesMessage(CommandError, words):
                call_command("create_content_managers", *arguments)
        self.assertEqual(Group.objects.count(), 1)

    def test_every_page_of_a_manager_opens(self):
        for page in PAGES:
            with self.subTest(page):
                self.assertEqual(self.client.get(f"/admin/{page}").status_code, 200)

    def test_the_first_page_links_to_each_task(self):
        page = self.client.get("/admin/")
        for words in (
            "Which questions were not answered?",
            "Why can somebody read a document",
            "Is the site better or worse",
        ):
            self.assertContains(page, words)

    def test_an_answer_is_written_and_documents_are_retired(self):
        document = make_document("parking.md", ["Park on level 2."], everyone=True)
        management = {
            f"{prefix}-{name}": value
            for prefix in ("questions", "citations")
            for name, value in (("TOTAL_FORMS", 1), ("INITIAL_FORMS", 0))
        }
        answer = {
            "text": "On level 2 [1].",
            "active": "on",
            "owner": self.manager.pk,
            "valid_until": "2099-01-01",
        }
        parts = {
            "questions-0-text": "Where do I park?",
            "citations-0-document": document.pk,
            "citations-0-words": "level 2",
        }
        self.client.post("/admin/chat/verifiedanswer/add/", answer | management | parts)
        self.assertEqual(str(VerifiedAnswer.objects.get()), "Where do I park?")
        chosen = {"action": "change_many", "_selected_action": [document.pk]}
        page = self.client.post("/admin/ingestion/document/", chosen, follow=True)
        self.assertContains(page, "To retire documents, give them a day in the past.")
