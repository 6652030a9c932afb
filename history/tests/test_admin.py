"""Conversations in the admin: read-only, and only with the permission."""

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.test import TestCase, override_settings
from django.utils import timezone

from chatsite.accounts.models import AuditEntry, Look, User
from history.models import Conversation, Message, Share
from ingestion.access.lists import Audience, access_list_for

EVIL = '<script>alert("1")</script>'


@pytest.mark.slow
class ConversationAdminTests(TestCase):
    def setUp(self):
        self.owner = User.objects.create_user(EVIL)
        self.conversation = Conversation.objects.create(owner=self.owner, title=EVIL)
        Message.objects.create(conversation=self.conversation, position=0, role="user", content=EVIL)
        self.list = "/admin/history/conversation/"
        self.page = f"{self.list}{self.conversation.pk}/change/"
        self.delete = f"{self.list}{self.conversation.pk}/delete/"

    def sign_in(self, *permissions, **values):
        user = User.objects.create_user("root", is_staff=True, **values)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        self.client.force_login(user)

    def test_without_the_permission_staff_see_nothing(self):
        self.sign_in("change_conversation", "view_user")
        for page in (self.list, self.page, self.delete, f"{self.list}add/"):
            self.assertEqual(self.client.get(page).status_code, 403, page)

    def test_texts_are_shown_as_text_and_cannot_be_edited(self):
        self.sign_in("view_conversation", "view_message", "read_others")
        response = self.client.post(self.page, {"reason": "ticket 4711: wrong answer"}, follow=True)
        self.assertContains(response, "&lt;script&gt;alert")
        for page in (self.list, self.page):
            self.assertNotContains(self.client.get(page), "<script>alert")
        self.assertNotContains(response, 'name="title"')
        self.assertNotContains(response, "<textarea")
        self.assertEqual(self.client.post(self.page, {"title": "Changed"}).status_code, 403)

    def test_viewing_messages_requires_a_permission_of_its_own(self):
        self.sign_in("view_conversation", "read_others")
        Message.objects.update(content="my question")
        page = self.client.post(self.page, {"reason": "ticket 4711: wrong answer"}, follow=True)
        self.assertContains(page, "&lt;script&gt;alert")  # its title
        self.assertNotContains(page, "my question")

    def test_conversations_cannot_be_added_and_only_a_superuser_deletes(self):
        self.sign_in("view_conversation", "add_conversation", "delete_conversation")
        self.assertEqual(self.client.get(f"{self.list}add/").status_code, 403)
        self.assertEqual(self.client.post(self.delete, {"post": "yes"}).status_code, 403)
        User.objects.filter(username="root").update(is_superuser=True)
        self.assertEqual(self.client.get(f"{self.list}add/").status_code, 403)
        self.assertNotContains(self.client.get(self.delete), "<script>alert")
        self.client.post(self.delete, {"post": "yes"})
        self.assertFalse(Conversation.objects.exists())

    def test_conversations_of_a_person_under_a_legal_hold_are_not_deleted(self):
        User.objects.filter(pk=self.owner.pk).update(legal_hold="case 17")
        self.sign_in(is_superuser=True)
        free = Conversation.objects.create(owner=User.objects.get(username="root"))
        chosen = {"action": "delete_selected", "_selected_action": [self.conversation.pk, free.pk]}
        for page, act in ((self.delete, {}), (self.list, chosen)):
            self.assertContains(self.client.post(page, {"post": "yes", **act}), "under a legal hold")
        self.assertEqual(Conversation.objects.count(), 2)
        self.assertFalse(AuditEntry.objects.filter(action="conversation_deleted").exists())


@pytest.mark.slow
class LookTests(TestCase):
    def setUp(self):
        self.owner = User.objects.create_user("ann")
        self.conversation = Conversation.objects.create(owner=self.owner, title="zzcanary title")
        Message.objects.create(conversation=self.conversation, position=0, role="user", content="zzcanary")
        self.root = User.objects.create_superuser("root", first_name="Rita", last_name="Root")
        self.client.force_login(self.root)
        self.list = "/admin/history/conversation/"
        self.page = f"{self.list}{self.conversation.pk}/change/"

    def give(self, reason="ticket 4711: wrong answer"):
        return self.client.post(self.page, {"reason": reason}, follow=True)

    def test_even_a_superuser_gives_a_reason_before_seeing_text(self):
        share = Share.objects.create(
            conversation=self.conversation,
            up_to=1,
            access_list=access_list_for(Audience(everyone=True), self.owner.pk),
            digest="x",
        )
        for page in (
            self.list,
            self.page,
            f"{self.list}{self.conversation.pk}/history/",
            f"{self.list}{self.conversation.pk}/delete/",
            "/admin/history/share/",
            f"/admin/history/share/{share.pk}/change/",
        ):
            self.assertNotContains(self.client.get(page), "zzcanary", msg_prefix=page)
        self.assertContains(self.client.get(self.page), "private conversation of <bdi>ann</bdi>")
        for reason in ("", "short", "x" * 501):
            self.assertNotContains(self.give(reason), "zzcanary")
        self.assertFalse(Look.objects.exists())
        self.assertContains(self.give(), "zzcanary")
        entries = AuditEntry.objects.filter(action="conversation_read", person="ann")
        self.assertIn("because: ticket 4711: wrong answer", entries.earliest("pk").subject)

    def test_another_spelling_of_the_id_requires_a_reason_too(self):
        spelled = quote(self.conversation.pk.urn)
        page = f"{self.list}{spelled}/change/"
        self.assertNotEqual(page, self.page)
        self.assertNotContains(self.client.get(page), "zzcanary")
        self.assertContains(self.client.get(page), "private conversation of <bdi>ann</bdi>")
        staff = User.objects.create_user("staff", is_staff=True)
        staff.user_permissions.set(
            Permission.objects.filter(codename__in=["view_conversation", "view_message"])
        )
        self.client.force_login(staff)
        self.assertEqual(self.client.get(page).status_code, 403)

    def test_autocompletion_finds_no_conversations(self):
        fields = {"app_label": "history", "model_name": "share", "field_name": "conversation", "term": "ann"}
        self.assertEqual(self.client.get("/admin/autocomplete/", fields).status_code, 403)

    def test_searching_the_list_does_not_reveal_titles(self):
        self.assertNotContains(self.client.get(f"{self.list}?q=zzcanary"), str(self.conversation.pk))
        self.assertContains(self.client.get(f"{self.list}?q=ann"), str(self.conversation.pk))

    def test_a_reason_is_for_one_conversation_one_reader_and_a_quarter_of_an_hour(self):
        self.give()
        other = Conversation.objects.create(owner=self.owner, title="zzcanary again")
        self.assertNotContains(self.client.get(f"{self.list}{other.pk}/change/"), "zzcanary")
        second = User.objects.create_superuser("second")
        client = self.client_class()
        client.force_login(second)
        self.assertNotContains(client.get(self.page), "zzcanary")
        Look.objects.update(begun_at=timezone.now() - timedelta(minutes=16))
        self.assertNotContains(self.client.get(self.page), "zzcanary")

    def test_without_the_permission_there_is_neither_form_nor_text(self):
        staff = User.objects.create_user("staff", is_staff=True)
        staff.user_permissions.set(
            Permission.objects.filter(codename__in=["view_conversation", "view_message"])
        )
        self.client.force_login(staff)
        self.assertEqual(self.client.get(self.page).status_code, 403)
        self.assertEqual(self.give().status_code, 403)
        staff.user_permissions.add(Permission.objects.get(codename="read_others"))
        self.assertContains(self.give(), "zzcanary")
        staff.user_permissions.remove(Permission.objects.get(codename="read_others"))
        self.assertEqual(self.client.get(self.page).status_code, 403)

    def test_the_person_learns_who_and_why_after_the_configured_time(self):
        self.give()
        person = self.client_class()
        person.force_login(self.owner)
        self.assertNotContains(person.get("/settings/data/"), "ticket 4711")
        self.assertNotContains(person.get("/settings/"), "See who, and why")
        with override_settings(LOOK_NOTICE_DAYS=0):
            self.assertContains(person.get("/settings/"), "See who, and why")
            page = person.get("/settings/data/")
            self.assertContains(page, "ticket 4711: wrong answer")
            self.assertContains(page, "Rita Root")
            self.assertNotContains(person.get("/settings/"), "See who, and why")
            self.root.delete()
            self.assertContains(person.get("/settings/data/"), "somebody whose account is gone")
            stranger = self.client_class()
            stranger.force_login(User.objects.create_user("bob"))
            self.assertNotContains(stranger.get("/settings/data/"), "ticket")
