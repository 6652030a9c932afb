"""The page of the admin that exports and erases the data of a person."""

import pytest
from django.contrib.auth.models import Permission
from django.test import TestCase
from django.utils import timezone

from chat.tests.admin.test_persons import person_with_everything
from chatsite.accounts.models import (
    AuditEntry,
    User,
)
from ingestion.tests.factories import make_document, make_user


@pytest.mark.slow
class AdminTests(TestCase):
    def setUp(self):
        self.root = User.objects.create_superuser("root")
        self.client.force_login(self.root)
        self.person, *_ = person_with_everything()
        self.page = f"/admin/accounts/user/{self.person.pk}/delete/"

    def test_the_page_lists_what_will_be_erased_and_erases_on_confirmation(self):
        words = "1 conversation with 2 messages, 2 documents, 1 verified answer,"
        words += " 1 evaluation question, 1 API key."
        self.assertContains(self.client.get(self.page), words)
        answer = self.client.post(self.page, {"documents": "delete", "confirmed": "on"})
        self.assertRedirects(answer, "/admin/accounts/user/")
        self.assertFalse(User.objects.filter(pk=self.person.pk).exists())
        self.assertEqual(AuditEntry.objects.get(action="person_erased").actor_id, self.root.pk)

    def test_the_page_links_to_the_person_and_to_the_export(self):
        User.objects.filter(pk=self.person.pk).update(first_name="Ada", last_name="Bell")
        page = self.client.get(self.page)
        self.assertContains(page, f'<a href="/admin/accounts/user/{self.person.pk}/change/">', count=1)
        self.assertContains(page, "(<bdi>Ada Bell</bdi>)")
        self.assertContains(page, f'<a href="/admin/accounts/user/{self.person.pk}/export/">')

    def test_disabling_an_account_leads_to_transferring_its_documents(self):
        page = f"/admin/accounts/user/{self.person.pk}/change/"
        form = self.client.get(page).context["adminform"].form
        values = {name: value for name, value in form.initial.items() if value not in (None, False, [])}
        values |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
        values |= {"last_login_0": "", "last_login_1": ""}
        for name in ("groups", "user_permissions", "last_login"):
            values.pop(name, None)
        self.assertNotContains(self.client.post(page, values, follow=True), "still owns")
        values.pop("is_active")
        said = self.client.post(page, values, follow=True)
        mine = f"/admin/ingestion/document/?owner__id__exact={self.person.pk}"
        self.assertContains(said, f'still owns 2 documents. <a href="{mine}">Hand over</a>')
        make_document("of-root.md", owner=self.root)
        self.assertEqual(self.client.get(mine).context["cl"].result_count, 2)

    def test_the_new_owner_is_found_by_typing(self):
        self.assertContains(self.client.get(self.page), 'class="admin-autocomplete')
        shared = make_document("shared.md", owner=self.person, everyone=True)
        guest = make_user("guest", guest_until=timezone.now())
        for wrong in ("", "olga", guest.pk, "999999"):
            wish = {"documents": "hand over", "successor": wrong, "confirmed": "on"}
            self.assertEqual(self.client.post(self.page, wish).status_code, 200)
        self.assertTrue(User.objects.filter(pk=self.person.pk).exists())
        olga = make_user("olga")
        wish = {"documents": "hand over", "successor": olga.pk, "confirmed": "on"}
        self.assertRedirects(self.client.post(self.page, wish), "/admin/accounts/user/")
        shared.refresh_from_db()
        self.assertEqual(shared.owner, olga)

    def test_erasing_without_a_decision_or_under_a_hold_is_refused_with_a_message(self):
        answer = self.client.post(self.page, {"documents": "", "confirmed": "on"})
        self.assertContains(answer, "Hand them over to somebody, or delete them.")
        User.objects.filter(pk=self.person.pk).update(legal_hold="case 17")
        answer = self.client.post(self.page, {"documents": "delete", "confirmed": "on"})
        self.assertContains(answer, "under a legal hold")
        self.assertTrue(User.objects.filter(pk=self.person.pk).exists())
        self.assertContains(self.client.get(self.page), "under a legal hold and stays as it is: case 17")
        staff = User.objects.create_user("ida", is_staff=True)
        staff.user_permissions.add(*Permission.objects.filter(codename__in=["view_user", "delete_user"]))
        staff.groups.set(self.person.groups.all())
        self.client.force_login(staff)
        self.assertNotContains(self.client.get(self.page), "legal hold")
        answer = self.client.post(self.page, {"documents": "delete", "confirmed": "on"})
        self.assertContains(answer, "under a legal hold and stays as it is.")
        self.assertNotContains(answer, "case 17")

    def test_nobody_erases_themselves(self):
        address = f"/admin/accounts/user/{self.root.pk}/delete/"
        page = self.client.post(address, {"documents": "", "confirmed": "on"})
        self.assertContains(page, "You cannot erase yourself.")
        self.root.refresh_from_db()
        self.assertTrue(self.root.is_active)
        self.assertFalse(AuditEntry.objects.filter(action="person_erased").exists())

    def test_staff_without_the_permission_are_refused(self):
        staff = User.objects.create_user("bob", is_staff=True)
        self.client.force_login(staff)
        self.assertEqual(self.client.get(self.page).status_code, 403)
        self.assertEqual(self.client.post(self.page, {"confirmed": "on"}).status_code, 403)
        staff.user_permissions.add(*Permission.objects.filter(codename__in=["view_user", "delete_user"]))
        # The manager does not belong to the person's groups.
        self.assertEqual(self.client.post(self.page, {"confirmed": "on"}).status_code, 403)
        self.assertTrue(User.objects.filter(pk=self.person.pk).exists())

    def test_superusers_set_a_legal_hold_and_it_is_logged(self):
        page = f"/admin/accounts/user/{self.person.pk}/change/"
        self.assertContains(self.client.get(page), "legal_hold")
        form = self.client.get(page).context["adminform"].form
        values = {name: value for name, value in form.initial.items() if value not in (None, "", False, [])}
        joined = timezone.localtime(self.person.date_joined)
        values |= {
            "legal_hold": "case 17",
            "groups": [group.pk for group in self.person.groups.all()],
            "date_joined_0": f"{joined:%Y-%m-%d}",
            "date_joined_1": f"{joined:%H:%M:%S}",
        }
        self.assertEqual(self.client.post(page, values).status_code, 302)
        self.assertEqual(User.objects.get(pk=self.person.pk).legal_hold, "case 17")
        self.assertEqual(AuditEntry.objects.get(action="hold_changed").subject, "case 17")
