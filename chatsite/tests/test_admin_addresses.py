"""Pages of the admin that are asked for with what cannot be meant: refused, and never a failure."""

from unittest.mock import patch
from urllib.parse import urlencode

from django.contrib import admin
from django.test import Client, TransactionTestCase

from chatsite.accounts.models import ApiKey, User

VALUES = ("99999999999", "\0", "abc")


class AdminAddressTests(TransactionTestCase):
    """Without a transaction around: what PostgreSQL refuses would spoil it for the next request."""

    def setUp(self):
        self.client = Client(raise_request_exception=False)
        self.client.force_login(User.objects.create_superuser("root"))

    def lists(self):
        """(address, names of its query) of each list."""
        for model, page in admin.site._registry.items():
            dates = [f"{page.date_hierarchy}__{part}" for part in ("year", "gte")]
            fields = [one[0] if isinstance(one, tuple) else one for one in page.list_filter]
            filters = [one for one in fields if isinstance(one, str)]
            named = [one.parameter_name for one in fields if not isinstance(one, str)]
            names = ["q", *(f"{name}__exact" for name in filters), *named]
            yield (
                f"/admin/{model._meta.app_label}/{model._meta.model_name}/",
                names + (dates if page.date_hierarchy else []),
            )

    def test_no_list_fails_whatever_its_address_says(self):
        failed = []
        with self.assertLogs("django.request", "WARNING"):
            for path, names in self.lists():
                for name in names:
                    for value in VALUES:
                        answer = self.client.get(f"{path}?{urlencode({name: value})}")
                        if answer.status_code not in {200, 302, 400}:
                            failed.append((path, name, value, answer.status_code))
        self.assertEqual(failed, [])

    def test_a_year_of_eleven_digits_is_a_bad_request_with_a_page(self):
        with self.assertLogs("django.request", "WARNING"):
            page = self.client.get("/admin/accounts/auditentry/?created_at__year=99999999999")
        self.assertContains(page, "The request cannot be understood.", status_code=400)

    def test_a_nul_where_words_are_completed_is_a_bad_request(self):
        address = "/admin/autocomplete/?app_label=accounts&model_name=apikey&field_name=user&term="
        self.assertEqual(self.client.get(f"{address}root").status_code, 200)
        with self.assertLogs("django.request", "WARNING"):
            self.assertEqual(self.client.get(f"{address}%00").status_code, 400)

    def test_chosen_rows_that_are_no_numbers_are_a_bad_request(self):
        ApiKey.objects.issue(User.objects.get(), "nightly")
        for value in ("abc", "\0"):
            with self.assertLogs("django.request", "WARNING"):
                answer = self.client.post(
                    "/admin/accounts/apikey/", {"action": "revoke", "_selected_action": [value]}
                )
            self.assertEqual(answer.status_code, 400)
        self.assertTrue(ApiKey.objects.usable().exists())

    def test_a_fault_of_the_site_stays_one_where_no_address_is_to_blame(self):
        with (
            patch("chatsite.accounts.admin.UserAdmin.get_queryset", side_effect=ValueError),
            self.assertLogs("django.request", "ERROR"),
        ):
            self.assertEqual(self.client.get("/admin/accounts/user/").status_code, 500)
