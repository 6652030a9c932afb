"""Pages of the admin requested with invalid values: refused, without a server error."""

import re
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from asgiref.sync import AsyncSingleThreadContext
from django.conf import settings
from django.contrib import admin
from django.test import Client, TransactionTestCase
from django.utils.formats import date_format
from django.utils.translation import override

from chatsite.accounts.models import ApiKey, User
from chatsite.tests.plugins.seed import sample
from chatsite.tests.routes import admin_addresses

VALUES = ("99999999999", "\0", "abc")
RUBBISH = (*VALUES, "9" * 30, "-1", "")
OF_ROWS = ("_changelist", "_add", "_change", "_delete", "_history")
# Fields of forms that the expressions below do not find.
NAMES = {"confirmed", "document", "kind", "person", "questions", "reason", "successor", "term"}
MODULES = ("*admin*.py", "*/admin.py", "overview/*.py", "*/*_admin.py")
READ = re.compile(r"\b(?:GET|POST)(?:\.get|\.getlist)?[(\[]\"(\w+)\"")


class AdminAddressTests(TransactionTestCase):
    """Not in a transaction: an error of PostgreSQL would make it unusable for the next request."""

    def setUp(self):
        self.enterContext(AsyncSingleThreadContext())  # one thread for all requests
        self.client = Client(raise_request_exception=False)
        self.client.force_login(User.objects.create_superuser("root"))

    def lists(self):
        """(address, names of its query parameters) of each list."""
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

    @pytest.mark.slow
    def test_no_list_fails_for_any_query_parameters(self):
        failed = []
        with self.assertLogs("django.request", "WARNING"):
            for path, names in sample(self.lists(), one_in=2):
                for name in names:
                    for value in VALUES:
                        answer = self.client.get(f"{path}?{urlencode({name: value})}")
                        if answer.status_code not in {200, 302, 400}:
                            failed.append((path, name, value, answer.status_code))
        self.assertEqual(failed, [])

    @pytest.mark.slow
    def test_no_other_page_fails_for_any_parameters_or_form_values(self):
        failed, names = [], sorted(self.read_names())
        with self.assertLogs("django.request", "WARNING"):
            for path in sample(self.other_pages()):
                for value in RUBBISH:
                    asked = [dict.fromkeys(names, value)]
                    asked += [{name: value} for name in names] if value == VALUES[0] else []
                    answers = [(page, self.client.get(path, page)) for page in asked]
                    answers.append(("POST", self.client.post(path, dict.fromkeys(names, value))))
                    failed += [(path, page) for page, answer in answers if answer.status_code >= 500]
        self.assertEqual(failed, [])

    def other_pages(self):
        for route, path in admin_addresses():
            if not route.endswith(OF_ROWS) and not route.startswith("admin:log"):
                yield path

    def read_names(self):
        """The parameters that the modules of the admin read, and a few more."""
        found = set(NAMES)
        for package in ("chat", "chatsite/accounts", "history", "ingestion"):
            for pattern in MODULES:
                for module in (Path(settings.BASE_DIR) / package).glob(pattern):
                    found |= set(READ.findall(module.read_text("utf-8")))
        self.assertIn("unanswered", found)
        return found

    @pytest.mark.slow
    def test_no_form_fails_for_any_choice(self):
        """A search field shows the selected object; an invalid number is refused."""
        failed = []
        with self.assertLogs("django.request", "WARNING"):
            for model in sample(admin.site._registry, one_in=2):
                path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/add/"
                fields = {field.name for field in model._meta.get_fields()} | {"users", "groups"}
                for value in RUBBISH:
                    sent = dict.fromkeys(fields, value)
                    for prefix in ("questions", "citations"):
                        sent |= {f"{prefix}-TOTAL_FORMS": 1, f"{prefix}-INITIAL_FORMS": 0}
                        sent |= {f"{prefix}-0-document": value, f"{prefix}-0-words": value}
                    for answer in (self.client.get(path, sent), self.client.post(path, sent)):
                        if answer.status_code >= 500:
                            failed.append((answer.request["REQUEST_METHOD"], path, value))
        self.assertEqual(failed, [])

    def test_a_year_of_eleven_digits_is_a_bad_request_with_a_page(self):
        with self.assertLogs("django.request", "WARNING"):
            page = self.client.get("/admin/accounts/auditentry/?created_at__year=99999999999")
        self.assertContains(page, "The request cannot be understood.", status_code=400)

    def test_a_search_for_thousands_of_words_is_refused(self):
        """Django would put a condition for each word into one statement."""
        field = "app_label=history&model_name=project&field_name=owner"
        long = "+".join(["w"] * 500)
        for address in (
            f"accounts/user/?q={long}",
            f"accounts/user/?o={long}",
            f"autocomplete/?{field}&term={long}",
        ):
            with self.assertLogs("django.request", "WARNING"):
                self.assertEqual(self.client.get(f"/admin/{address}").status_code, 400, address[:30])
        self.assertEqual(self.client.get("/admin/accounts/user/?q=ann+berg&o=1.-2").status_code, 200)

    def test_a_filter_that_the_list_does_not_have_is_refused_on_a_page_of_the_admin(self):
        address = "/admin/procrastinate/procrastinatejob/?state=all"
        with self.assertLogs("django.request", "WARNING"):
            page = self.client.get(address, headers={"Accept": "text/html"})
        self.assertContains(page, "this list cannot be filtered by", status_code=400)
        self.assertContains(page, '<a href="/admin/procrastinate/procrastinatejob/">', status_code=400)
        self.assertContains(page, 'id="user-tools"', status_code=400)
        with self.assertLogs("django", "WARNING"):
            told = self.client.get(address, headers={"Accept": "application/json"})
        self.assertEqual((told.status_code, told["Content-Type"]), (400, "application/json"))

    def test_dates_are_written_as_in_the_portal(self):
        moment = datetime(2026, 11, 25, 22, 14, tzinfo=UTC)
        for language, words in (("en-GB", "25 Nov 2026, 22:14"), ("de", "25. Nov. 2026, 22:14")):
            with override(language):
                self.assertEqual(date_format(moment, "DATETIME_FORMAT"), words)
                self.assertEqual(date_format(moment), words.partition(",")[0])

    def test_a_nul_in_an_autocomplete_request_is_a_bad_request(self):
        address = "/admin/autocomplete/?app_label=accounts&model_name=apikey&field_name=user&term="
        self.assertEqual(self.client.get(f"{address}root").status_code, 200)
        with self.assertLogs("django.request", "WARNING"):
            self.assertEqual(self.client.get(f"{address}%00").status_code, 400)

    def test_selected_rows_with_invalid_ids_are_a_bad_request(self):
        ApiKey.objects.issue(User.objects.get(), "nightly")
        for value in ("abc", "\0"):
            with self.assertLogs("django.request", "WARNING"):
                answer = self.client.post(
                    "/admin/accounts/apikey/", {"action": "revoke", "_selected_action": [value]}
                )
            self.assertEqual(answer.status_code, 400)
        self.assertTrue(ApiKey.objects.usable().exists())

    def test_an_internal_error_is_not_reported_as_a_bad_request(self):
        with (
            patch("chatsite.accounts.admin.UserAdmin.get_queryset", side_effect=ValueError),
            self.assertLogs("django.request", "ERROR"),
        ):
            self.assertEqual(self.client.get("/admin/accounts/user/").status_code, 500)
