"""The choice of a page's language, the German catalogue, and untranslated text on pages."""

import asyncio
import gettext as catalogues
import json
import re
from io import BytesIO
from pathlib import Path
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import AsyncSingleThreadContext, async_to_sync
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from django.conf import settings
from django.contrib import admin
from django.core.files.base import ContentFile
from django.test import TestCase, override_settings
from django.utils import timezone, translation
from django.utils.translation import gettext

from chat.llm.chat_model import NOTHING_FITS
from chat.portal.rendering.markdown import Citations, render
from chat.quoting.quoted_answer import UNSURE
from chat.tests.conversations import answered
from chatsite.accounts.models import ApiKey, User
from chatsite.accounts.principal import Principal
from chatsite.admin.model_names import APPS as OWN_APPS
from chatsite.admin.model_names import NAMES, fields
from chatsite.context_processors import SCRIPT_WORDS
from chatsite.db.threads import in_database
from chatsite.tests.pseudo_language import PSEUDO, Words, offering_pseudo
from chatsite.tests.server import BASE
from history import projects, recording, sharing
from history.models import Message
from ingestion.access.lists import Audience
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user

CATALOGUES = sorted((BASE / "locale").glob("*/LC_MESSAGES/django.po"))
PLACE = re.compile(r"%\(\w+\)[sd]|\{\w*\}|<[^>]+>")


def catalogue(path):
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name, charset="utf-8")


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parent.parent.name)
def test_every_message_of_a_catalogue_is_translated_with_the_same_placeholders(path):
    for message in catalogue(path):
        if not message.id:
            continue
        ids = message.id if isinstance(message.id, tuple) else (message.id,)
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        assert all(texts), message.id
        assert not message.fuzzy, message.id
        for text in texts:
            assert sorted(set(PLACE.findall(text))) in [sorted(set(PLACE.findall(words))) for words in ids], (
                text
            )


def messages(file):
    """The messages of a catalogue without its header, which has the time of writing."""
    return {words: text for words, text in catalogues.GNUTranslations(file)._catalog.items() if words}


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parent.parent.name)
def test_the_compiled_catalogue_matches_its_source(path):
    compiled = BytesIO()
    write_mo(compiled, catalogue(path))
    compiled.seek(0)
    expected, found = (messages(file) for file in (compiled, BytesIO(path.with_suffix(".mo").read_bytes())))
    assert found == expected, "run: make messages"


def test_every_language_except_english_has_a_catalogue():
    assert {path.parent.parent.name for path in CATALOGUES} == set(dict(settings.LANGUAGES)) - {"en"}
    assert [Path(settings.FILES_DIR) / "locale"] == settings.LOCALE_PATHS


def test_each_admin_field_has_a_translatable_name():
    pages = admin.site._registry.items()
    every = [model for model, page in pages for model in (model, *(each.model for each in page.inlines))]
    shown = [model for model in every if model._meta.app_label in OWN_APPS]
    unnamed = [field for model in shown for field in fields(model) if field._verbose_name is None]
    assert {field.name.replace("_", " ") for field in unnamed} <= {*NAMES, "id"}


class ChoiceTests(TestCase):
    def setUp(self):
        self.user = make_user("ada")

    def language(self, path="/settings/", **headers):
        response = self.client.get(path, headers=headers)
        return re.search(r'<html lang="([\w-]+)"\s+dir="(\w+)"', response.content.decode()).groups()

    def test_the_language_of_the_person_precedes_that_of_the_browser_and_the_operator(self):
        self.client.force_login(self.user)
        self.assertEqual(self.language(), ("en", "ltr"))
        with override_settings(LANGUAGE_CODE="de"):
            self.assertEqual(self.language(), ("de", "ltr"))
            self.assertEqual(self.language(accept_language="en-GB,en;q=0.8"), ("en", "ltr"))
            self.assertEqual(self.language(accept_language="fr"), ("de", "ltr"))
        User.objects.update(language="de")
        self.assertEqual(self.language(accept_language="en"), ("de", "ltr"))

    def test_a_language_is_chosen_in_the_settings_and_kept_with_the_account(self):
        self.client.force_login(self.user)
        page = self.client.post("/settings/", {"language": "de"}, follow=True).content.decode()
        self.assertIn("Einstellungen gespeichert.", page)
        self.assertEqual(User.objects.get().language, "de")
        self.client.post("/settings/", {"language": "tlh"})
        self.client.post("/settings/", {"theme": "dark"})
        self.assertEqual(User.objects.get().language, "de")
        self.client.post("/settings/", {"language": ""})
        self.assertEqual(self.language(accept_language="en"), ("en", "ltr"))

    def test_the_sign_in_page_and_errors_are_in_the_language_of_the_browser(self):
        self.assertEqual(self.language("/accounts/sign-in/", accept_language="de-AT"), ("de", "ltr"))
        self.assertEqual(self.language("/nothing/", accept_language="de-AT"), ("de", "ltr"))

    def test_a_database_thread_has_the_language_and_time_zone_of_its_caller_and_keeps_neither(self):
        def look():
            return gettext("Settings"), timezone.get_current_timezone_name()

        async def german():
            translation.activate("de")
            timezone.activate(ZoneInfo("Europe/Berlin"))
            return await in_database(look)

        async def several():
            found = [await asyncio.create_task(german())]
            for _ in range(2 * settings.DATABASE_THREADS):
                await in_database(translation.activate, "de")  # as when the owner of a key is found
            return found + [await in_database(look) for _ in range(2 * settings.DATABASE_THREADS)]

        found = async_to_sync(several)()
        self.assertEqual(found[0], ("Einstellungen", "Europe/Berlin"))
        self.assertEqual(set(found[1:]), {("Settings", "UTC")})

    def test_times_are_in_the_time_zone_of_the_browser_and_invalid_ones_are_ignored(self):
        self.client.force_login(self.user)
        conversation, answer = answered(self.user, make_document("qx.md", everyone=True))
        type(answer).objects.update(created_at="2026-07-01T22:30:00Z")
        for zone, shown in {
            "": "1 Jul 2026, 22:30",
            "Europe/Berlin": "2 Jul 2026, 00:30",
            "../../etc/passwd": "1 Jul 2026, 22:30",
            "Mars/Base": "1 Jul 2026, 22:30",
            "x" * 4000: "1 Jul 2026, 22:30",
        }.items():
            self.client.cookies["zone"] = zone
            self.assertContains(self.client.get(f"/c/{conversation.pk}/"), shown)
        self.client.cookies["zone"] = "Europe/Berlin"
        german = self.client.get(f"/c/{conversation.pk}/", headers={"accept-language": "de"})
        self.assertContains(german, "2. Juli 2026, 00:30")


class LanguagesOfTexts(TestCase):
    """Texts of people and documents have a `lang` of their own, independent of the page's language."""

    def setUp(self):
        self.user = make_user("asker")
        self.client.force_login(self.user)

    def test_answers_and_passages_have_a_lang_attribute(self):
        words = "Der Kran hebt im Winter höchstens vier Tonnen, und im Sommer hebt er sechs."
        document = make_document("kran.md", [words], owner=self.user)
        Document.objects.filter(pk=document.pk).update(language="german")
        conversation, answer = answered(self.user, document, text=words)
        answer.sources.update(content=words)
        page = f"/c/{conversation.pk}/"
        self.assertRegex(self.client.get(page).content.decode(), r'class="prose"\s+dir="auto"\s+lang="de"')
        panel = self.client.get(f"{page}?source=1.r1").content.decode()
        self.assertRegex(panel, r'class="passage"\s+dir="auto"\s+lang="de"')
        shown = self.client.get(f"/documents/{document.public_id}/").content.decode()
        self.assertRegex(shown, r'class="found"\s+role="list"\s+lang="de"')


def test_each_word_of_the_scripts_is_in_the_catalogue():
    found = set()
    for script in (BASE / "static").glob("**/*.js"):
        text = script.read_text(encoding="utf-8")
        found |= set(re.findall(r"\bt\(\s*'([^']+)'", text))
    assert found == set(SCRIPT_WORDS)


@override_settings(LANGUAGE_CODE="de")
def test_messages_in_place_of_an_answer_are_shown_in_the_readers_language():
    shown = render(f"{UNSURE}\n\n{NOTHING_FITS}", Citations())
    assert "Keine genaue Antwort gefunden." in shown
    assert "In den Dokumenten, die Sie lesen dürfen" in shown


@pytest.mark.slow
class LeftOutTests(TestCase):
    """Each page in a pseudo-language: text without brackets is not translated."""

    def setUp(self):
        self.user = make_user("qxada")
        self.document = make_document(
            "qxguide.md", title="qxguide", owner=self.user, everyone=True, folder="qx"
        )
        self.conversation, self.answer = answered(self.user, self.document, question="qx?", title="qxtitle")
        ApiKey.objects.issue(self.user, "qxkey")
        principal = Principal(self.user.pk, "command")
        self.project = projects.create(principal, "qxproject", "qx", "folder:qx")
        projects.create(principal, "qxother")
        recording.move(principal, self.conversation.pk, self.project.pk)
        _, self.token = sharing.create(principal, self.conversation.pk, Audience(everyone=True))
        self.client.force_login(self.user)
        self.enterContext(AsyncSingleThreadContext())  # one thread for all requests
        self.enterContext(offering_pseudo())

    def left_out(self, path, client=None):
        response = (client or self.client).get(path, headers={"accept-language": PSEUDO})
        page = response.content.decode()
        assert re.search(r'lang="ar-xb"\s+dir="rtl"', page), path
        return Words(page).left_out

    def test_no_page_has_untranslated_text(self):
        Message.objects.create(
            conversation=self.conversation,
            position=2,
            follows=0,
            role="assistant",
            content="qx",
            chosen=False,
        )
        pages = PAGES + [
            path.format(c=self.conversation.pk, d=self.document.public_id, p=self.project.pk, s=self.token)
            for path in OWN_PAGES
        ]
        found = {path: words for path in pages if (words := self.left_out(path))}
        self.assertEqual(found, {})

    def test_reasons_of_failed_files_are_translated(self):
        for number, reason in enumerate(REASONS):
            made = make_document(f"qx{number}.md", title="qx", owner=self.user)
            Document.objects.filter(pk=made.pk).update(status=Document.Status.FAILED, reason=reason)
        Document.objects.filter(pk=self.document.pk).update(
            left_out=[["qx.exe", "files of this kind cannot be read"], ["qx", "it is larger than 100 MB"]]
        )
        paths = [f"/documents/{each.public_id}/" for each in Document.objects.all()]
        paths += ["/documents/?show=failed", "/documents/add/"]
        found = {path: words for path in paths if (words := self.left_out(path))}
        self.assertEqual(found, {})

    def test_reasons_of_refused_files_are_translated(self):
        for name, text in (("qx.md", ""), ("qx.qx", "qx"), (f"qx/{'qx' * 300}.md", "qx")):
            sent = {"file": ContentFile(text, name), "who": "me", "folder": "qx/" * 300}
            headers = {"accept-language": PSEUDO}
            page = self.client.post("/documents/add/", sent, headers=headers).content.decode()
            self.assertEqual(Words(page).left_out, [])

    def test_steps_of_an_answer_are_translated(self):
        type(self.answer).objects.filter(pk=self.answer.pk).update(thoughts=STEPS)
        path = f"/c/{self.conversation.pk}/"
        for shown in (path, f"{path}?source=1.1&view=thoughts"):
            self.assertEqual(self.left_out(shown), [])

    def test_descriptions_of_demo_accounts_are_translated(self):
        names = ("employee", "hr", "admin")
        for name in names:
            User.objects.create(username=name, password="qx")
        file = mock.Mock()
        file.read_text.return_value = json.dumps({name: {"password": "qx", "hash": "qx"} for name in names})
        kept = mock.patch("chatsite.demo._file", return_value=file)
        with kept, override_settings(DEMO=True, EMBEDDED_DATABASE=True, ALLOWED_HOSTS=["127.0.0.1"]):
            client = self.client_class(HTTP_HOST="127.0.0.1")
            self.assertEqual(self.left_out("/accounts/sign-in/", client), [])
            page = client.get("/accounts/sign-in/")
            self.assertContains(page, "Reads what everyone may read, and documents for HR")

    def test_pages_for_anonymous_visitors_are_translated(self):
        found = {path: words for path in STRANGERS if (words := self.left_out(path, self.client_class()))}
        self.assertEqual(found, {})


PAGES = [
    "/",
    "/search/",
    "/search/?q=qx",
    "/search/?q=qxnothing",
    "/shares/",
    "/shared/",
    "/projects/",
    "/projects/?q=qxnothing",
    "/projects/new",
    "/documents/",
    "/documents/?q=qxnothing",
    "/documents/?show=failed",
    "/documents/add/",
    "/help/",
    "/settings/",
    "/settings/password/",
    "/settings/keys/",
    "/settings/sessions/",
    "/settings/data/",
    "/nothing/",
]
OWN_PAGES = [
    "/c/{c}/",
    "/c/{c}/?source=1.1",
    "/c/{c}/?source=1.1&view=thoughts",
    "/c/{c}/?source=1.1&view=support",
    "/c/{c}/?source=1.1&view=page",
    "/c/{c}/?rating=1",
    "/c/{c}/m/1/compare/2/",
    "/c/{c}/rename",
    "/c/{c}/project",
    "/c/{c}/project?q=qxnothing",
    "/projects/{p}/",
    "/projects/{p}/edit",
    "/projects/{p}/scope",
    "/projects/{p}/members",
    "/projects/{p}/delete",
    "/c/{c}/delete",
    "/c/{c}/share",
    "/s/{s}/",
    "/documents/{d}/",
    "/documents/{d}/changes/",
    "/documents/{d}/delete/",
]
REASONS = [
    "The file is empty.",
    "The file has 1,204 pages; at most 1,000 are read.",
    "The name of the file says Word, but its content is a program.",
    "The new file was not accepted; the former one remains. The file is damaged or incomplete.",
    "None of the 2 files in the archive could be read: qx.exe (files of this kind cannot be read).",
]
STEPS = [
    {"title": "Original user query", "description": "qx?", "props": None},
    {
        "title": "Generated search query",
        "description": "qx",
        "props": {"has_vector": True, "retrieval_mode": "hybrid", "top": 3, "filter": "category is “qx”"},
    },
    {
        "title": "Page images",
        "description": "Images of pages given to the model beside their text: 2.",
        "props": {"gpt4v_input": "both"},
    },
    {"title": "Semantic ranker", "description": "The ranker ordered 3 passages.", "props": {"candidates": 3}},
    {"title": "Overrides without effect", "description": ["qx"], "props": None},
]
STRANGERS = ["/accounts/sign-in/", "/nothing/"]
