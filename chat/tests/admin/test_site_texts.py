"""The texts of the site: edited in the admin, applied in every process, and shown to the right people."""

import asyncio
import json
import threading
import time
from datetime import timedelta
from io import BytesIO
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client, TestCase, TransactionTestCase, override_settings
from django.utils import timezone
from PIL import Image

from chat import runs, site_texts
from chat.errors import Refused
from chat.llm import use_model
from chat.llm.chat_model import answer_instructions, instructions
from chat.portal.starters import starts
from chat.requests import RunRequest
from chat.site_texts.models import SiteTexts, StartingQuestion
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey, AuditEntry, User
from chatsite.accounts.principal import Principal
from chatsite.tests.limits import HANG_SECONDS
from history.models import Conversation, Message
from ingestion.tests.factories import make_document, make_user

ADD = "/admin/chat/sitetexts/add/"
LIST = "/admin/chat/sitetexts/"
TRY = "/admin/chat/sitetexts/try/"
WAITING_FOR_A_LOCK = """
    SELECT count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
EVIL = "<script>alert(1)</script>"


def picture(form="PNG", size=(300, 200)):
    target = BytesIO()
    Image.new("RGB", size, "teal").save(target, form)
    return target.getvalue()


class TextsTestCase(TestCase):
    def setUp(self):
        self.addCleanup(site_texts.forget)
        self.ann = make_user("ann", groups=["Crew"])
        self.manager = User.objects.create_superuser("manager")

    def use(self, **values):
        """Store texts, and apply them as another process would."""
        SiteTexts.objects.create(**values)
        site_texts.reload()

    def ask(self, user):
        return runs.begin(Principal(user.pk, "session"), RunRequest("How many days of leave?"))


class FollowingTests(TransactionTestCase):
    def test_a_process_keeps_up_with_what_another_one_changes(self):
        self.addCleanup(site_texts.forget)

        async def run():
            async with asyncio.timeout(HANG_SECONDS):
                with patch.object(site_texts, "REFRESH_SECONDS", 0.05):
                    following = asyncio.create_task(site_texts.follow())
                    for name in ("First", "Second"):
                        await SiteTexts.objects.acreate(name=name)
                        while site_texts.current().name != name:  # noqa: ASYNC110 (it sets no event)
                            await asyncio.sleep(0.01)
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)

        asyncio.run(run())

    def test_concurrent_changes_do_not_overwrite_each_other(self):
        newest = SiteTexts.objects.create(name="Before")
        root = User.objects.create_superuser("root")
        client = Client()
        client.force_login(root)
        ended = []

        def save():
            try:
                page = client.post(ADD, {"name": "Late", "banner_kind": "info", "newest": newest.pk})
                ended.append(page.status_code)
            finally:
                connection.close()

        with transaction.atomic():
            SiteTexts.lock_newest()
            late = threading.Thread(target=save)
            late.start()
            end = time.monotonic() + HANG_SECONDS
            with connection.cursor() as cursor:
                waiting = 0
                while not waiting and time.monotonic() < end:
                    cursor.execute(WAITING_FOR_A_LOCK)
                    (waiting,) = cursor.fetchone()
            SiteTexts.objects.create(name="First")
        late.join(HANG_SECONDS)
        self.assertEqual(ended, [200])
        self.assertEqual(SiteTexts.objects.first().name, "First")


@pytest.mark.slow
class EditingTests(TextsTestCase):
    def setUp(self):
        super().setUp()
        self.client.force_login(self.manager)

    def edit(self, *, version="", files=(), **values):
        """Submit the page's form with some of its values changed."""
        page = self.client.get(f"{ADD}?version={version}")
        shown = {name: field.value() for name, field in form_of(page).items()}
        values = {name: value for name, value in (shown | values).items() if value not in (None, "")}
        with self.captureOnCommitCallbacks(execute=True):
            return self.client.post(ADD, values | dict(files))

    def test_a_change_is_a_version_in_use_at_once_and_logged(self):
        self.assertEqual(self.edit(name="Leave desk", prompt="Be brief.").status_code, 302)
        self.assertEqual(self.edit(name="Leave and pay").status_code, 302)
        self.assertEqual(site_texts.current().name, "Leave and pay")
        self.assertEqual(answer_instructions(), "Be brief.")
        first, second = AuditEntry.objects.filter(action="texts_changed").order_by("pk")
        self.assertTrue(
            first.subject.endswith(": name of the site, instructions for the model"), first.subject
        )
        self.assertTrue(second.subject.endswith(": name of the site"), second.subject)
        self.assertEqual(second.actor, "manager")
        self.assertContains(self.client.get("/"), "Leave and pay")

    def test_the_admin_shows_the_name_of_the_site(self):
        self.use(name="Leave desk")
        page = self.client.get("/admin/accounts/user/", headers={"Accept-Language": "de"})
        self.assertContains(page, '<a href="/admin/">Verwaltung von Leave desk</a>')
        self.assertContains(page, "| Verwaltung von Leave desk</title>")

    def test_versions_can_be_compared_and_restored(self):
        self.edit(prompt="Be brief.\nBe kind.", new_logo=upload(picture()))
        self.edit(prompt="Be brief.\nBe firm.", no_logo="on")
        newest, oldest = SiteTexts.objects.all()
        page = self.client.get(f"{LIST}{newest.pk}/change/")
        self.assertContains(page, "<div>− Be kind.</div><div>+ Be firm.</div>", html=False)
        self.assertContains(self.client.get(LIST), "instructions for the model, logo")
        self.edit(version=oldest.pk)
        self.assertEqual(answer_instructions(), "Be brief.\nBe kind.")
        self.assertEqual(bytes(SiteTexts.objects.first().logo), bytes(oldest.logo))
        self.assertEqual(SiteTexts.objects.count(), 3)

    def test_a_version_is_neither_changed_nor_deleted(self):
        self.edit(name="Leave desk")
        page = f"{LIST}{SiteTexts.objects.get().pk}"
        self.assertEqual(self.client.post(f"{page}/change/", {"name": "Other"}).status_code, 403)
        self.assertEqual(self.client.post(f"{page}/delete/", {"post": "yes"}).status_code, 403)

    def test_a_form_opened_before_another_change_is_refused(self):
        form = {name: field.value() for name, field in form_of(self.client.get(ADD)).items()}
        self.use(name="Meanwhile", changed_by=self.ann)
        values = {name: value for name, value in form.items() if value not in (None, "")}
        page = self.client.post(ADD, values | {"name": "Late"})
        self.assertContains(page, "ann has changed the texts since you opened this page")
        self.assertEqual(SiteTexts.objects.count(), 1)

    def test_invalid_values_are_refused_with_a_message(self):
        moment = {"banner_until_0": "2026-01-01", "banner_until_1": "00:00"}
        moment |= {"banner_from_0": "2026-02-01", "banner_from_1": "00:00"}
        for values, words in (
            ({}, "You have not changed anything."),
            ({"banner": "Hello", **moment}, "The end must be after the beginning."),
            ({"prompt": ">>> More"}, "The text must not begin with"),
            ({"name": "x" * 61}, "at most 60 characters"),
            ({"new_logo": upload(b"<svg onload='alert(1)'/>")}, "This is not a picture"),
            ({"new_logo": upload(picture(size=(4_001, 2)))}, "at most 4000 × 4000 pixels"),
        ):
            with self.subTest(words):
                self.assertContains(self.edit(**values), words)
        self.assertFalse(SiteTexts.objects.exists())

    def test_the_page_requires_its_permission(self):
        self.client.force_login(User.objects.create_user("clerk", is_staff=True))
        for page in (LIST, ADD, TRY):
            self.assertEqual(self.client.get(page).status_code, 403, page)

    def test_a_draft_of_the_instructions_is_tried_with_the_rights_of_the_manager_and_saved_on_demand(self):
        make_document("secret.md", ["The leave of the board is 90 days."], owner=self.ann)
        model = ScriptedModel(["Thirty days."])
        make_document("leave.md", ["Everyone has 30 days of leave."], owner=self.ann, everyone=True)
        with use_model(model):
            page = self.client.post(TRY, {"prompt": "Speak like a pirate.", "question": "days of leave?"})
        self.assertContains(page, "Thirty days.")
        self.assertEqual(model.prompts[0].template, "Speak like a pirate.")
        self.assertEqual({each.title for each in model.prompts[0].sources}, {"Leave"})
        self.assertFalse(SiteTexts.objects.exists() or Conversation.objects.exists())
        self.assertEqual(answer_instructions(), instructions("answer"))
        with self.captureOnCommitCallbacks(execute=True):
            self.client.post(TRY, {"prompt": "Speak like a pirate.", "_keep": "yes"})
        self.assertEqual(answer_instructions(), "Speak like a pirate.")
        self.assertTrue(
            AuditEntry.objects.get(action="texts_changed").subject.endswith(": instructions for the model")
        )


def form_of(page):
    form = page.context["adminform"].form
    return {name: form[name] for name in form.fields}


def upload(content):
    return SimpleUploadedFile("logo.png", content)


class ShownTests(TextsTestCase):
    def test_texts_are_text(self):
        self.use(name=EVIL, welcome=EVIL, banner=EVIL, sign_in_line=EVIL, privacy=EVIL)
        pages = [self.client.get("/accounts/sign-in/"), self.client.get("/privacy/")]
        self.client.force_login(self.ann)
        for page in (*pages, self.client.get("/")):
            self.assertContains(page, "&lt;script&gt;alert(1)")
            self.assertNotContains(page, EVIL)

    def test_german_texts_appear_on_german_pages(self):
        self.use(welcome="Ask away", welcome_de="Frag ruhig", sign_in_line="All of us")
        self.client.force_login(self.ann)
        self.assertContains(self.client.get("/"), "Ask away")
        self.assertContains(self.client.get("/", HTTP_ACCEPT_LANGUAGE="de"), "Frag ruhig")
        self.client.logout()
        page = self.client.get("/accounts/sign-in/", HTTP_ACCEPT_LANGUAGE="de")
        self.assertContains(page, "All of us")

    @override_settings(SITE_NAME="From the environment")
    def test_the_site_name_comes_from_the_environment_until_set_in_the_admin(self):
        self.assertContains(self.client.get("/accounts/sign-in/"), "From the environment")
        self.use(name="From the admin")
        self.assertContains(self.client.get("/accounts/sign-in/"), "From the admin")

    def test_the_mark_is_served_as_a_sandboxed_png(self):
        self.use(logo=picture())
        address = f"/site/logo-{site_texts.current().logo_digest}.png"
        self.assertContains(self.client.get("/accounts/sign-in/"), f'src="{address}"')
        response = self.client.get(address)
        self.assertEqual(response["Content-Type"], "image/png")
        self.assertEqual(response["Content-Security-Policy"], "default-src 'none'; sandbox")
        self.assertEqual(self.client.get("/site/logo-0.png").status_code, 404)

    def test_the_banner_is_shown_between_its_dates(self):
        now = timezone.now()
        hour = timedelta(hours=1)
        for begin, end, is_shown in (
            (None, None, True),
            (now - hour, now + hour, True),
            (now + hour, None, False),
            (None, now - hour, False),
        ):
            self.use(banner="Lunch is ready", banner_from=begin, banner_until=end)
            told = self.client.get("/site/banner").json()
            self.assertEqual(
                told, {"kind": "info", "text": "Lunch is ready"} if is_shown else {"kind": "", "text": ""}
            )
            self.assertEqual("Lunch is ready" in self.client.get("/privacy/").content.decode(), is_shown)

    def test_showing_the_banner_takes_no_query(self):
        self.use(banner="Lunch is ready", banner_de="Mahlzeit")
        german = self.client.get("/site/banner?language=de").json()
        self.assertEqual(german["text"], "Mahlzeit")
        with self.assertNumQueries(0):
            self.client.get("/site/banner")

    def test_the_privacy_note_is_a_page_for_everyone(self):
        self.assertContains(self.client.get("/accounts/sign-in/"), 'href="/privacy/"')
        self.assertContains(self.client.get("/privacy/"), "What is stored")
        self.use(privacy="We keep questions.\n\nFor 90 days.")
        self.assertContains(self.client.get("/privacy/"), "<p>For 90 days.</p>")
        self.client.force_login(self.ann)
        self.assertContains(self.client.get("/help/"), 'href="/privacy/"')


class StartingQuestionTests(TextsTestCase):
    def test_only_members_of_a_group_see_its_questions(self):
        crew = Group.objects.get(name="Crew")
        StartingQuestion.objects.create(text="Where is the canary-4711?", group=crew)
        StartingQuestion.objects.create(text="How many days of leave?", order=1)
        site_texts.reload()
        bob = make_user("bob")
        for user, expected in (
            (self.ann, ["Where is the canary-4711?", "How many days of leave?"]),
            (bob, ["How many days of leave?"]),
        ):
            principal = Principal(user.pk, "session")
            self.assertEqual([start.question for start in starts(principal)], expected)
            self.client.force_login(user)
            page = self.client.get("/").content.decode()
            self.assertEqual("canary-4711" in page, user == self.ann)
        self.ann.groups.clear()
        self.assertEqual(len(starts(Principal(self.ann.pk, "session"))), 1)

    def test_a_question_is_deleted_with_its_group(self):
        crew = Group.objects.get(name="Crew")
        StartingQuestion.objects.create(text="Where is the canary-4711?", group=crew)
        crew.delete()
        self.assertFalse(StartingQuestion.objects.exists())

    def test_each_change_applies_at_once_and_is_logged(self):
        self.client.force_login(self.manager)
        crew = Group.objects.get(name="Crew")
        with self.captureOnCommitCallbacks(execute=True):
            self.client.post(
                "/admin/chat/startingquestion/add/", {"text": "Who?", "group": crew.pk, "order": 0}
            )
        self.assertEqual(site_texts.starting_questions(self.ann.pk), ["Who?"])
        with self.captureOnCommitCallbacks(execute=True):
            self.client.post(
                f"/admin/chat/startingquestion/{StartingQuestion.objects.get().pk}/delete/", {"post": "yes"}
            )
        self.assertEqual(site_texts.starting_questions(self.ann.pk), [])
        self.assertEqual(AuditEntry.objects.filter(action="texts_changed").count(), 2)


class MaintenanceTests(TextsTestCase):
    def begin(self, **values):
        now = timezone.now()
        self.use(
            maintenance_from=now - timedelta(minutes=1),
            maintenance_until=now + timedelta(minutes=10),
            **values,
        )

    def test_questions_are_refused_with_a_message_and_reading_continues(self):
        Conversation.objects.create(owner=self.ann, title="Earlier")
        self.begin(maintenance_words="We move house.")
        with self.assertRaises(Refused) as refused:
            self.ask(self.ann)
        self.assertEqual((refused.exception.status, refused.exception.message), (503, "We move house."))
        self.assertFalse(Message.objects.exists())
        self.client.force_login(self.ann)
        page = self.client.get("/search/")
        self.assertContains(page, "Earlier")
        self.assertContains(page, "We move house.")
        self.assertEqual(self.client.get("/documents/").status_code, 200)

    def test_staff_can_still_ask(self):
        self.begin()
        self.ann.is_staff = True
        self.ann.save()
        self.assertTrue(self.ask(self.ann).is_new)

    def test_maintenance_is_announced_before_and_ends_on_time(self):
        now = timezone.now()
        self.use(maintenance_from=now + timedelta(hours=1), banner="Hello.")
        self.assertTrue(self.ask(self.ann).is_new)
        told = self.client.get("/site/banner").json()
        self.assertEqual(told["kind"], "warning")
        self.assertTrue(told["text"].startswith("Hello. Maintenance from "), told)
        self.use(maintenance_from=now - timedelta(hours=2), maintenance_until=now - timedelta(hours=1))
        self.assertEqual(self.client.get("/site/banner").json()["text"], "")


class ProgramTests(TransactionTestCase):
    def test_programs_get_503_with_retry_after(self):
        self.addCleanup(site_texts.forget)
        now = timezone.now()
        SiteTexts.objects.create(maintenance_from=now, maintenance_until=now + timedelta(minutes=10))
        site_texts.reload()
        _, secret = ApiKey.objects.issue(make_user("ann"), "nightly")
        body = json.dumps({"messages": [{"role": "user", "content": "How many days of leave?"}]})
        for path in ("/chat", "/chat/stream", "/v1/chat/completions", "/ask"):
            response = self.client.post(
                path, body, content_type="application/json", HTTP_AUTHORIZATION=f"Bearer {secret}"
            )
            self.assertEqual(response.status_code, 503, path)
            self.assertGreater(int(response["Retry-After"]), 300)
            self.assertIn("being maintained", response.content.decode())
