"""The palette finds the caller's conversations, documents and pages, and nobody else's."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client, TestCase, TransactionTestCase, override_settings

from chatsite.accounts.principal import Principal
from history import projects, recording
from history.models import Message
from ingestion.tests.factories import make_document, make_user


class Palette(TestCase):
    def setUp(self):
        self.user, self.other = make_user("asker"), make_user("other")
        self.client.force_login(self.user)
        self.conversation = self.said(self.user, "Glasses", "Who pays for spectacles?")
        self.foreign = self.said(self.other, "Secret glasses", "Who pays for spectacles?")
        self.document = make_document("spectacles.md", everyone=True, owner=self.other)
        self.closed = make_document("spectacles-closed.md", owner=self.other)

    def said(self, user, title, text):
        conversation = recording.open_conversation(Principal(user.pk, "command"))
        recording.rename(Principal(user.pk, "command"), conversation.pk, title)
        recording.append(conversation, Message.Role.USER, text)
        return conversation

    def found(self, query):
        return self.client.get("/search/palette", {"q": query}).content.decode()

    def test_a_word_of_a_message_leads_to_it_with_a_mark(self):
        page = self.found("spectacles")
        self.assertIn(f'href="/c/{self.conversation.pk}/#q-0"', page)
        self.assertIn(f"/documents/{self.document.public_id}/", page)

    def test_titles_with_the_words_come_first_and_all_results_are_an_option(self):
        for number in range(40):  # newer ones, which fill more than a page
            self.said(self.user, f"Lenses {number}", "Who pays for glasses?")
        for page in (self.found("glasses"), self.client.get("/search/?q=glasses").content.decode()):
            found = re.findall(r'href="/c/([^/]+)/', page.partition('class="results"')[2] or page)
            self.assertEqual(found[0], str(self.conversation.pk))
            self.assertEqual(len(found), len(set(found)))
        self.assertIn('href="/search/?q=glasses#found"', self.found("glasses"))
        self.assertNotIn("#found", self.found("xylophone"))
        self.assertNotIn("#found", self.found(""))
        first = self.client.get("/search/?q=glasses")
        second = self.client.get("/search/", {"q": "glasses", "cursor": first.context["older"]})
        shown = [each.conversation.pk for page in (first, second) for each in page.context["results"]]
        self.assertEqual((len(shown), len(set(shown))), (41, 41))

    def test_a_word_of_an_answer_is_found_with_its_context(self):
        """The sidebar, which comes first in the page, also has titles with the word."""
        for text, fragment in (
            ("We pay for new spectacles every year.", "for%20new-,spectacles"),
            ("Spectacles are paid for once a year.", "Spectacles,-are%20paid"),
            ("See also [a.md] well\u2010made spectacles", ""),
        ):
            conversation = self.said(self.user, "Answers", "Who pays?")
            recording.append(conversation, Message.Role.ASSISTANT, text)
            place = f"/c/{conversation.pk}/#m-1"
            self.assertIn(
                f'href="{place}:~:text={fragment}"' if fragment else f'href="{place}"',
                self.found("spectacles"),
            )

    def test_the_text_around_a_hit_has_no_markdown_markup(self):
        self.said(
            self.user,
            "Allowance",
            "> **Ferry crews** get 5 % more.\n\n| Who | How much |\n|---|---|\n| Crews | 5 |",
        )
        page = self.found("ferry")
        self.assertIn("Ferry crews get 5 % more. Who How much Crews 5", page)

    def test_questions_of_others_and_closed_documents_are_not_found(self):
        for query in ("spectacles", "secret", "closed", ""):
            page = self.found(query)
            self.assertNotIn(str(self.foreign.pk), page)
            self.assertNotIn(str(self.closed.public_id), page)

    def test_projects_are_found_by_their_names(self):
        mine = projects.create(Principal(self.user.pk, "command"), "Winter timetable")
        foreign = projects.create(Principal(self.other.pk, "command"), "Winter secrets")
        page = self.found("winter")
        self.assertIn(f'href="/projects/{mine.pk}/"', page)
        self.assertNotIn(str(foreign.pk), page)

    def test_pages_are_found_by_their_names_and_an_empty_result_says_so(self):
        self.assertIn('href="/settings/"', self.found("sett"))
        self.assertIn('href="/projects/new"', self.found("new project"))
        self.assertIn('href="/search/?show=archived"', self.found("archived"))
        nothing = self.found("xylophone")
        self.assertIn("Nothing contains these words.", nothing)
        self.assertInHTML(
            '<div id="palette-list" role="listbox" aria-label="Places to go to" hidden></div>', nothing
        )

    def test_the_palette_requires_a_signed_in_person(self):
        self.client.logout()
        self.assertEqual(self.client.get("/search/palette").status_code, 302)

    def test_hits_in_the_list_of_conversations_lead_to_the_message(self):
        page = self.client.get("/search/?q=spectacles").content.decode()
        self.assertIn(f'href="/c/{self.conversation.pk}/#q-0"', page)

    def test_a_theme_is_found_by_its_name_and_changes_no_other_setting(self):
        page = self.found("dark")
        self.assertIn('data-appearance="dark"', page)
        self.assertNotIn('data-appearance="light"', page)
        self.client.cookies["enter"] = "line"
        reply = self.client.post("/settings/", {"part": "theme", "theme": "dark"})
        self.assertEqual(reply.status_code, 204)
        self.assertEqual((reply.cookies["theme"].value, list(reply.cookies)), ("dark", ["theme"]))
        self.assertEqual(
            self.client.post("/settings/", {"part": "theme", "theme": "?"}).cookies["theme"].value, "auto"
        )

    @pytest.mark.slow
    def test_pages_of_the_admin_are_offered_to_staff_with_the_permission(self):
        self.assertNotIn("/admin/", self.found(""))
        staff = make_user("boss", is_staff=True)
        self.client.force_login(staff)
        page = self.found("")
        self.assertIn('href="/admin/"', page)
        self.assertNotIn('href="/admin/accounts/', page)
        self.assertNotIn('href="/admin/chat/', page)
        staff.user_permissions.add(
            *Permission.objects.filter(codename__in=["view_unanswered", "view_user"]).all()
        )
        page = self.found("")
        for address in re.findall(r'href="(/admin/[^"]*)"', page):
            self.assertEqual(self.client.get(address).status_code, 200, address)
        self.assertIn('href="/admin/chat/verifiedanswer/unanswered/"', page)
        self.assertIn('href="/admin/accounts/user/"', page)
        self.assertNotIn('href="/admin/ingestion/document/"', page)
        self.client.force_login(make_user("root", is_staff=True, is_superuser=True))
        addresses = re.findall(r'href="(/admin/[^"]*)"', self.found(""))
        self.assertEqual(len(addresses), 5)
        for address in addresses:
            self.assertEqual(self.client.get(address).status_code, 200, address)


class PaletteOfGuests(TransactionTestCase):
    @override_settings(LOGIN_REQUIRED=False)
    def test_guests_are_offered_only_pages_that_they_may_open(self):
        client = Client()
        client.get("/")
        page = client.get("/search/palette").content.decode()
        addresses = re.findall(r'href="(/[^"#]*)"', page)
        self.assertEqual(addresses, ["/", "/search/", "/search/?show=archived", "/documents/"])
        for address in addresses:
            self.assertEqual(client.get(address).status_code, 200, address)
