"""The sidebar: conversations by their age, and no query where it is not shown."""

import re
from datetime import UTC, date, datetime, timedelta

from django.test import RequestFactory, TestCase

from chatsite.accounts.principal import Principal
from chatsite.context_processors import (
    SIDEBAR_ROWS,
    period,
    site,
)
from history import recording
from history.models import Conversation, Message
from ingestion.tests.factories import make_user

TODAY = date(2026, 3, 31)


class SidebarTests(TestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.client.force_login(self.user)

    def test_periods(self):
        ages = {
            0: "Today",
            1: "Yesterday",
            2: "Last 7 days",
            7: "Last 7 days",
            8: "Last 30 days",
            31: "February 2026",
        }
        for age, name in ages.items():
            self.assertEqual(period(TODAY - timedelta(days=age), TODAY), name)
        self.assertEqual(period(TODAY + timedelta(days=1), TODAY), "Today")

    def test_thirty_rows_then_a_link_to_all(self):
        now = datetime.now(UTC)
        Conversation.objects.bulk_create(
            Conversation(owner=self.user, title=f"Row {number}", updated_at=now - timedelta(days=number))
            for number in range(SIDEBAR_ROWS + 4)
        )
        page = self.client.get("/").content.decode()
        self.assertEqual(page.count('href="/c/'), SIDEBAR_ROWS)
        self.assertIn("All 34 conversations", page)
        first = self.client.get("/search/").content.decode()
        older = re.search(r'rel="next"\s+href="([^"]+)"', first).group(1).replace("&amp;", "&")
        second = self.client.get("/search/" + older).content.decode()
        self.assertEqual((first + second).count('class="result"'), SIDEBAR_ROWS + 4)
        self.assertNotIn('rel="next"', second)

    def test_a_conversation_that_is_being_answered_has_a_dot_and_says_so(self):
        conversation = recording.open_conversation(Principal(self.user.pk, "command"))
        recording.append(conversation, Message.Role.ASSISTANT, state="queued")
        page = self.client.get("/").content.decode()
        self.assertRegex(
            page, r'<span class="dot live"></span>\s*<span class="hidden">, being answered</span>'
        )

    def test_a_page_that_does_not_show_it_pays_nothing(self):
        request = RequestFactory().get("/")
        request.user, request.session = self.user, self.client.session
        with self.assertNumQueries(0):
            site(request)
