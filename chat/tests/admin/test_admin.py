"""Runs in the admin: read-only, and deleted with their conversation."""

from django.contrib.auth.models import Permission
from django.test import TestCase
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from chat.models import Lease, Run
from chatsite.accounts.models import User
from history.models import Conversation, Message
from ingestion.queue.queue_admin import WORK


class RunAdminTests(TestCase):
    def setUp(self):
        self.root = User.objects.create_superuser("root", first_name="<script>alert(1)</script>")
        conversation = Conversation.objects.create(owner=self.root, title="<script>alert(1)</script>")
        question, answer = (
            Message.objects.create(conversation=conversation, position=position, role=role)
            for position, role in enumerate(("user", "assistant"))
        )
        self.run_row = Run.objects.create(
            owner=self.root, conversation=conversation, question=question, answer=answer,
            body_digest="0" * 64,
        )  # fmt: skip
        Lease.objects.create(run=self.run_row, until=timezone.now())
        self.list = "/admin/chat/run/"
        self.page = f"{self.list}{self.run_row.pk}/change/"

    def test_nothing_can_be_changed_even_by_a_superuser(self):
        self.client.force_login(self.root)
        for page in (self.list, self.page):
            self.assertNotContains(self.client.get(page), "<script>alert")
        self.assertEqual(self.client.post(self.page, {"stop_requested": "on"}).status_code, 403)
        for action in ("add/", f"{self.run_row.pk}/delete/"):
            self.assertEqual(self.client.get(self.list + action).status_code, 403)

    def test_viewing_requires_the_permission(self):
        staff = User.objects.create_user("bob", is_staff=True)
        self.client.force_login(staff)
        self.assertEqual(self.client.get(self.list).status_code, 403)
        staff.user_permissions.add(Permission.objects.get(codename="view_run"))
        self.assertEqual(self.client.get(self.list).status_code, 200)

    def test_the_permission_to_view_runs_shows_no_text_and_no_search_of_it(self):
        self.run_row.conversation.title = "Redundancies in May"
        self.run_row.conversation.save()
        Run.objects.update(options={"instructions": "PIN 7319"})
        staff = User.objects.create_user("bob", is_staff=True)
        staff.user_permissions.add(Permission.objects.get(codename="view_run"))
        self.client.force_login(staff)
        for page in (self.list, self.page):
            self.assertNotContains(self.client.get(page), "Redundancies")
        for guess in (
            "options__icontains=PIN 7",
            "body_digest__startswith=0",
            "conversation__title__icontains=Red",
        ):
            self.assertEqual(self.client.get(f"{self.list}?{guess}").status_code, 400, guess)

    def test_the_permission_to_view_jobs_does_not_allow_cancelling_them(self):
        staff = User.objects.create_user("bob", is_staff=True)
        staff.user_permissions.add(Permission.objects.get(codename="view_procrastinatejob"))
        self.client.force_login(staff)
        page = self.client.get("/admin/procrastinate/procrastinatejob/")
        self.assertEqual(page.status_code, 200)
        self.assertNotContains(page, 'name="action"')

    def test_the_queue_page_uses_plain_words(self):
        app.configure_task("chat.prove").defer(run_id=1)
        self.client.force_login(self.root)
        page = self.client.get("/admin/procrastinate/procrastinatejob/?status=todo&task=chat.prove")
        for words in ("1 job", "Run an evaluation", "waiting"):
            self.assertContains(page, words)
        self.assertNotContains(page, "rocrastinate job")
        self.assertContains(self.client.get("/admin/procrastinate/procrastinatejob/?status=doing"), "0 jobs")
        job = ProcrastinateJob.objects.get(task_name="chat.prove")
        page = self.client.get(f"/admin/procrastinate/procrastinatejob/{job.pk}/change/")
        self.assertContains(page, "<h1>Job of the queue</h1>", html=True)
        self.assertContains(page, ": queued</li>")
        for words in ("Todo", "Deferred", "Queueing", "Args", "chat.prove["):
            self.assertNotContains(page, words)

    def test_every_task_has_a_name_in_plain_words(self):
        tasks = {name for name in app.tasks if not name.startswith("builtin")}
        self.assertEqual(tasks - set(WORK), set())

    def test_headings_of_the_first_page_differ_from_its_list_names(self):
        self.client.force_login(User.objects.create_superuser("superuser"))
        apps = self.client.get("/admin/").context["app_list"]
        lists = {model["name"] for app in apps for model in app["models"]}
        self.assertIn("Documents", lists)
        self.assertEqual(lists & {app["name"] for app in apps}, set())

    def test_the_filter_by_conversation_does_not_fail(self):
        self.client.force_login(self.root)
        address = "/admin/autocomplete/?app_label=chat&model_name=run&field_name=conversation"
        self.assertIn(self.client.get(address).status_code, (200, 403))

    def test_a_run_is_deleted_with_its_conversation(self):
        self.client.force_login(self.root)
        self.client.post(
            f"/admin/history/conversation/{self.run_row.conversation_id}/delete/", {"post": "yes"}
        )
        self.assertFalse(Run.objects.exists())
