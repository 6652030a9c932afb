"""The sidebar: conversations grouped by age, and no query on pages without it."""

import re
from datetime import UTC, date, datetime, timedelta
from unittest.mock import patch

from django.test import RequestFactory, TestCase
from django.utils import timezone

from chat.portal.conversation.turns import turns_of
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

    def test_conversations_are_grouped_by_age(self):
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

    def test_the_link_to_the_admin_is_shown_to_staff_with_permission(self):
        self.assertNotContains(self.client.get("/"), 'href="/admin/"')
        self.user.is_staff = True
        self.user.save()
        self.assertContains(self.client.get("/"), 'href="/admin/"', count=1)

    def conversation(self, title="Leave", owner=None, **values):
        conversation = recording.open_conversation(Principal((owner or self.user).pk, "session"))
        Conversation.objects.filter(pk=conversation.pk).update(title=title, **values)
        return conversation

    def end(self, answer):
        recording.close_answer(self.user.pk, answer.pk, recording.AnswerOutcome("complete", "Five days."))

    def dots(self):
        told = self.client.get("/c/dots").json()
        return told["running"], told["fresh"]

    def test_an_answer_is_new_from_its_end_until_its_owner_opens_it(self):
        conversation = self.conversation()
        self.assertEqual(self.dots(), ([], []))  # answers to programs are not marked as new
        page = f"/c/{conversation.pk}/"
        own = {"Sec-Fetch-Site": "same-origin"}
        self.client.get(page, headers=own)
        answer = recording.append(conversation, Message.Role.ASSISTANT, state="streaming")
        self.assertEqual(self.dots(), ([str(conversation.pk)], []))
        self.assertContains(self.client.get("/help/"), ", being answered")
        Message.objects.filter(pk=answer.pk).update(state="complete")
        self.assertEqual(self.dots(), ([], [str(conversation.pk)]))
        self.assertContains(self.client.get("/help/"), ", new answer")
        self.assertNotContains(self.client.get(page, headers=own), ", new answer")
        self.assertEqual(self.dots(), ([], []))

    def test_a_link_on_another_site_opens_the_page_and_leaves_the_answer_new(self):
        conversation = self.conversation(seen_at=datetime(2026, 1, 1, tzinfo=UTC))
        page = f"/c/{conversation.pk}/"
        for headers in (
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
            {"Sec-Fetch-Site": "none"},
            {"Referer": "https://elsewhere.example/list"},
            {},
        ):
            self.assertContains(self.client.get(page, headers=headers), " data-unseen")
            self.assertEqual(self.dots()[1], [str(conversation.pk)])
        self.client.get(page, headers={"Referer": "http://testserver/"})
        self.assertEqual(self.dots()[1], [])

    def test_an_answer_on_an_open_page_is_marked_as_seen(self):
        conversation = self.conversation(seen_at=datetime(2026, 1, 1, tzinfo=UTC))
        self.assertEqual(self.dots()[1], [str(conversation.pk)])
        self.assertEqual(self.client.post(f"/c/{conversation.pk}/seen").status_code, 204)
        self.assertEqual(self.dots(), ([], []))

    def test_a_complete_answer_is_seen_although_its_run_ends_after_the_page_closes(self):
        conversation = self.conversation()
        for body, fresh in (({}, [str(conversation.pk)]), ({"whole": "1"}, [])):
            answer = recording.append(conversation, Message.Role.ASSISTANT, state="streaming")
            self.client.post(f"/c/{conversation.pk}/seen", body)
            self.end(answer)
            self.assertEqual(self.dots(), ([], fresh))
        later = timezone.now() + recording.WHOLE_TTL
        Conversation.objects.filter(pk=conversation.pk).update(updated_at=later + timedelta(seconds=1))
        self.assertEqual(self.dots()[1], [str(conversation.pk)])

    def test_an_answer_that_ends_during_rendering_is_seen_as_shown(self):
        conversation = self.conversation(seen_at=datetime(2026, 1, 1, tzinfo=UTC))
        recording.append(conversation, Message.Role.USER, "How many days?")
        answer = recording.append(conversation, Message.Role.ASSISTANT, state="streaming")

        def end(*given):
            self.end(answer)
            return turns_of(*given)

        with patch("chat.portal.views.turns_of", end):
            self.client.get(f"/c/{conversation.pk}/", headers={"Sec-Fetch-Site": "same-origin"})
        self.assertEqual(self.dots(), ([], []))

    def test_conversations_of_others_are_neither_visible_nor_marked(self):
        theirs = self.conversation(owner=make_user("other"), seen_at=datetime(2026, 1, 1, tzinfo=UTC))
        recording.append(theirs, Message.Role.ASSISTANT, state="streaming")
        self.assertEqual(self.dots(), ([], []))
        for path in ("seen", "manage"):
            method = self.client.post if path == "seen" else self.client.get
            self.assertEqual(method(f"/c/{theirs.pk}/{path}").status_code, 404)
        theirs.refresh_from_db()
        self.assertEqual(theirs.seen_at.year, 2026)
        self.assertLess(theirs.seen_at, theirs.updated_at)

    def test_the_menu_of_a_row_returns_only_to_pages_of_this_site(self):
        conversation = self.conversation()
        menu = self.client.get(f"/c/{conversation.pk}/manage?from=/documents/")
        self.assertContains(menu, '<input type="hidden" name="from" value="/documents/">', html=True)
        for sent, led in (
            ("/documents/?q=a", "/documents/?q=a"),
            ("//evil.example/", f"/c/{conversation.pk}/"),
            ("https://evil.example/", f"/c/{conversation.pk}/"),
            ("/\\evil.example", f"/c/{conversation.pk}/"),
            ("", f"/c/{conversation.pk}/"),
        ):
            for action in ("pin", "archive"):
                answer = self.client.post(f"/c/{conversation.pk}/{action}", {"on": "", "from": sent})
                self.assertEqual((answer.status_code, answer["Location"]), (303, led), sent)

    def test_thirty_rows_then_a_link_to_all(self):
        now = datetime.now(UTC)
        Conversation.objects.bulk_create(
            Conversation(owner=self.user, title=f"Row {number}", updated_at=now - timedelta(days=number))
            for number in range(SIDEBAR_ROWS + 4)
        )
        page = self.client.get("/").content.decode()
        self.assertEqual(page.count('data-conversation="'), SIDEBAR_ROWS)
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

    def test_a_page_without_the_sidebar_runs_no_query_for_it(self):
        request = RequestFactory().get("/")
        request.user, request.session = self.user, self.client.session
        with self.assertNumQueries(0):
            site(request)
