"""Conversations in the admin: looked at, never edited, and only with the right to."""

from django.contrib.auth.models import Permission
from django.test import TestCase

from chatsite.accounts.models import User
from history.models import Conversation, Message

EVIL = '<script>alert("1")</script>'


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

    def test_staff_without_the_right_see_nothing(self):
        self.sign_in("change_conversation", "view_user")
        for page in (self.list, self.page, self.delete, f"{self.list}add/"):
            self.assertEqual(self.client.get(page).status_code, 403, page)

    def test_texts_are_shown_as_text_and_cannot_be_edited(self):
        self.sign_in("view_conversation", "view_message")
        response = self.client.get(self.page)
        self.assertContains(response, "&lt;script&gt;alert")
        for page in (self.list, self.page):
            self.assertNotContains(self.client.get(page), "<script>alert")
        self.assertNotContains(response, 'name="title"')
        self.assertNotContains(response, "<textarea")
        self.assertEqual(self.client.post(self.page, {"title": "Changed"}).status_code, 403)

    def test_messages_need_a_right_of_their_own(self):
        self.sign_in("view_conversation")
        Message.objects.update(content="my question")
        self.assertNotContains(self.client.get(self.page), "my question")

    def test_nobody_adds_and_only_a_superuser_deletes(self):
        self.sign_in("view_conversation", "add_conversation", "delete_conversation")
        self.assertEqual(self.client.get(f"{self.list}add/").status_code, 403)
        self.assertEqual(self.client.post(self.delete, {"post": "yes"}).status_code, 403)
        User.objects.filter(username="root").update(is_superuser=True)
        self.assertEqual(self.client.get(f"{self.list}add/").status_code, 403)
        self.assertNotContains(self.client.get(self.delete), "<script>alert")
        self.client.post(self.delete, {"post": "yes"})
        self.assertFalse(Conversation.objects.exists())
