"""Limits of questions for a person and for a process: exact even for fifty questions at once."""

import asyncio
from datetime import date, datetime, timedelta
from unittest.mock import Mock, patch
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.test import AsyncClient, Client, SimpleTestCase, TransactionTestCase, override_settings
from django.utils import timezone, translation
from django.utils.translation import gettext

from chat import runs
from chat.errors import Refused
from chat.limits import (
    Allowance,
    ConnectionLimiter,
    allowance_of,
)
from chat.models import Lease, MessageAllowance, Run, Usage
from chat.requests import RunRequest
from chat.runs.active import run_slots
from chat.runs.start import Counts, admit
from chat.tests.portal.test_consumers import APPLICATION
from chat.tests.sockets import Socket
from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import Principal
from chatsite.db import threads as database
from chatsite.db.threads import in_database
from history import recording
from history.models import Message
from ingestion.tests.factories import command_principal, make_user

ASKED = {"messages": [{"role": "user", "content": "Leave?"}], "session_state": None}


def finish_all():
    Run.objects.update(finished_at=timezone.now())


class AdmissionCase(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.principal = command_principal(self.user)

    async def at_once(self, count, **values):
        """Ask `count` questions at once; return the codes of the refusals, and the accepted runs."""

        async def one():
            try:
                return await in_database(runs.begin, self.principal, RunRequest("Leave?"), **values)
            except Refused as refused:
                return refused

        outcomes = await asyncio.gather(*(one() for _ in range(count)))
        return (
            [item for item in outcomes if not isinstance(item, Refused)],
            [item for item in outcomes if isinstance(item, Refused)],
        )

    def questions(self):
        return Message.objects.filter(role="user").count()


class CapTests(AdmissionCase):
    @override_settings(USER_CONCURRENT_ANSWERS=4)
    async def test_of_fifty_concurrent_questions_exactly_the_limit_is_answered(self):
        accepted, refused = await self.at_once(50)
        self.assertEqual((len(accepted), len(refused)), (4, 46))
        self.assertEqual(await in_database(self.questions), 4)
        self.assertEqual({(item.code, item.status) for item in refused}, {("rate_limited", 429)})
        self.assertTrue(all(item.retry_after for item in refused))

    @override_settings(USER_CONCURRENT_ANSWERS=1)
    async def test_other_people_are_unaffected_and_a_finished_answer_makes_room(self):
        await self.at_once(1)
        other = command_principal(await in_database(make_user, "other"))
        await in_database(runs.begin, other, RunRequest("Leave?"))
        await in_database(finish_all)
        self.assertEqual(len((await self.at_once(2))[0]), 1)

    @override_settings(USER_CONCURRENT_ANSWERS=1)
    async def test_an_answer_of_a_dead_process_does_not_count(self):
        await self.at_once(1)
        await in_database(lambda: Lease.objects.update(until=timezone.now() - timedelta(seconds=1)))
        self.assertEqual(len((await self.at_once(1))[0]), 1)

    @override_settings(USER_QUESTIONS_PER_MINUTE=5, USER_CONCURRENT_ANSWERS=100)
    async def test_questions_within_a_minute_are_counted_exactly(self):
        accepted, refused = await self.at_once(30)
        self.assertEqual(len(accepted), 5)
        self.assertTrue(all(50 < item.retry_after <= 61 for item in refused))
        await in_database(lambda: Run.objects.update(created_at=timezone.now() - timedelta(seconds=61)))
        self.assertEqual(len((await self.at_once(10))[0]), 5)

    @pytest.mark.slow
    @override_settings(USER_CONCURRENT_ANSWERS=1)
    async def test_a_repetition_is_neither_refused_nor_counted(self):
        await in_database(MessageAllowance.objects.create, messages=1)
        accepted, refused = await self.at_once(50, idempotency_key="same")
        self.assertEqual((len(accepted), refused), (50, []))
        self.assertEqual(len({item.run_id for item in accepted}), 1)
        self.assertEqual([item.is_new for item in accepted].count(True), 1)
        self.assertEqual((await in_database(Usage.objects.get)).messages, 1)

    @override_settings(PROCESS_ANSWERS=0)
    async def test_a_process_at_capacity_says_when_to_retry(self):
        self.assertTrue(run_slots.at_capacity)
        secret = (await in_database(ApiKey.objects.issue, self.user, "test"))[1]
        answer = await AsyncClient().post(
            "/chat", ASKED, "application/json", headers={"Authorization": f"Bearer {secret}"}
        )
        self.assertEqual((answer.status_code, answer.headers["Retry-After"]), (503, "2"))
        self.assertEqual(await in_database(self.questions), 0)

    async def test_without_a_free_thread_the_site_is_busy_and_stores_nothing(self):
        secret = (await in_database(ApiKey.objects.issue, self.user, "test"))[1]
        threads, released = database._threads(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def occupy():
            asyncio.run_coroutine_threadsafe(released.wait(), loop).result()

        held = [threads.submit(occupy) for _ in range(threads.max_workers)]
        with patch("chatsite.db.threads.WAIT_SECONDS", 0.1):
            client = AsyncClient(raise_request_exception=False)
            headers = {"Authorization": f"Bearer {secret}"}
            answer = await client.post("/chat", ASKED, "application/json", headers=headers)
        released.set()
        await asyncio.gather(*map(asyncio.wrap_future, held))
        self.assertEqual((answer.status_code, answer.headers["Retry-After"]), (503, "2"))
        self.assertEqual(await in_database(self.questions), 0)


class RefusalTextTests(SimpleTestCase):
    """Refusals that people see in the portal are in their language."""

    def german(self, method="session", **counts):
        counts = {"messages": 0, "message_limit": None, "running": 0, "waits": [], "failed": None} | counts
        with (
            translation.override("de"),
            patch("chat.runs.start.site_texts.maintenance_for", return_value=None),
            patch("chat.runs.start.count_question", return_value=3.0),
            self.assertRaises(Refused) as refused,
        ):
            admit(Principal(1, method), Counts(**counts))
        with translation.override("de"):
            return gettext(refused.exception.message)

    @override_settings(USER_CONCURRENT_ANSWERS=4, USER_QUESTIONS_PER_MINUTE=60)
    def test_limits_are_explained_in_the_language_of_the_page(self):
        self.assertIn("4 Ihrer Fragen", self.german(running=4))
        self.assertIn("60 Fragen", self.german(waits=[1.0] * 60))
        self.assertIn("ohne Konto", self.german(method="guest"))
        with patch("chat.runs.start.breaker", Mock(is_full=True)):
            self.assertIn("die Frage wurde nicht gespeichert", self.german())

    @override_settings(USER_CONNECTIONS=0)
    def test_the_limit_of_connections_is_explained_in_the_callers_language(self):
        with translation.override("de"), self.assertRaises(Refused) as refused:
            ConnectionLimiter().reserve(1)
        self.assertIn("geöffnet", refused.exception.message)


class AllowanceTests(AdmissionCase):
    async def test_of_fifty_concurrent_messages_exactly_the_allowance_is_stored(self):
        await in_database(MessageAllowance.objects.create, messages=7)
        with override_settings(USER_CONCURRENT_ANSWERS=100):
            accepted, refused = await self.at_once(50)
        self.assertEqual((len(accepted), await in_database(self.questions)), (7, 7))
        self.assertEqual(sorted(item.allowance.left for item in accepted), list(range(7)))
        self.assertEqual({(item.code, item.status) for item in refused}, {("quota_exceeded", 429)})
        self.assertIn("all 7 of today’s messages", refused[0].message)

    def test_a_slow_clock_at_midnight_does_not_reset_the_used_allowance(self):
        MessageAllowance.objects.create(messages=2)
        before, after = date(2027, 3, 1), date(2027, 3, 2)
        for day in (before, after, before):
            with patch("chat.limits.today", return_value=day):
                runs.begin(self.principal, RunRequest("Leave?"))
        with patch("chat.limits.today", return_value=after), self.assertRaises(Refused):
            runs.begin(self.principal, RunRequest("Leave?"))
        with patch("chat.limits.today", return_value=after + timedelta(days=1)):
            runs.begin(self.principal, RunRequest("Leave?"))

    def test_a_refused_message_is_not_counted(self):
        MessageAllowance.objects.create(messages=2)
        first = runs.begin(self.principal, RunRequest("Leave?"))
        with self.assertRaises(Refused):
            runs.begin(self.principal, RunRequest("And?", first.conversation_id))
        self.assertEqual(allowance_of(self.principal).left, 1)

    def test_regenerating_an_answer_counts(self):
        MessageAllowance.objects.create(messages=2)
        first = runs.begin(self.principal, RunRequest("Leave?"))
        finish_all()
        runs.again(self.principal, first.answer_id)
        finish_all()
        with self.assertRaises(Refused) as caught:
            runs.again(self.principal, first.answer_id)
        self.assertEqual(caught.exception.code, "quota_exceeded")

    def test_a_personal_allowance_precedes_the_largest_of_the_groups_and_the_default(self):
        groups = [Group.objects.create(name=name) for name in ("one", "two", "strangers")]
        self.user.groups.add(*groups[:2])
        self.assertIsNone(allowance_of(self.principal))
        MessageAllowance.objects.create(messages=99)
        self.assertEqual(allowance_of(self.principal).messages, 99)
        MessageAllowance.objects.create(group=groups[2], messages=1000)
        MessageAllowance.objects.create(group=groups[0], messages=5)
        MessageAllowance.objects.create(group=groups[1], messages=8)
        self.assertEqual(allowance_of(self.principal).messages, 8)
        own = MessageAllowance.objects.create(user=self.user, messages=3)
        self.assertEqual(allowance_of(self.principal).messages, 3)
        own.delete()
        MessageAllowance.objects.filter(group=groups[0]).update(messages=None)
        self.assertIsNone(allowance_of(self.principal))

    @override_settings(TIME_ZONE="Pacific/Auckland")
    def test_the_day_is_in_the_time_zone_of_the_site(self):
        MessageAllowance.objects.create(messages=2)
        zone = ZoneInfo("Pacific/Auckland")
        evening = datetime(2026, 3, 1, 23, 59, tzinfo=zone)
        with patch("django.utils.timezone.now", return_value=evening):
            runs.begin(self.principal, RunRequest("Leave?"))
            left = allowance_of(self.principal)
        self.assertEqual(left, Allowance(2, 1, datetime(2026, 3, 2, tzinfo=zone)))
        self.assertEqual(Usage.objects.get().day, date(2026, 3, 1))
        with patch("django.utils.timezone.now", return_value=evening + timedelta(minutes=2)):
            self.assertEqual(allowance_of(self.principal).left, 2)

    def test_programs_get_headers_and_refusals_say_when_to_retry(self):
        MessageAllowance.objects.create(messages=2)
        headers = {"Authorization": f"Bearer {ApiKey.objects.issue(self.user, 'test')[1]}"}
        answers = [
            Client().post(path, ASKED, "application/json", headers=headers)
            for path in ("/chat", "/api/chat", "/v1/chat/completions")
        ]
        self.assertEqual([answer.status_code for answer in answers], [200, 200, 429])
        self.assertEqual(answers[0].headers["RateLimit-Policy"], '"day";q=2;w=86400')
        self.assertRegex(answers[1].headers["RateLimit"], r'^"day";r=0;t=\d+$')
        self.assertRegex(answers[2].headers["RateLimit"], r'^"day";r=0;t=\d+$')
        self.assertEqual(answers[2].json()["error"]["code"], "quota_exceeded")
        self.assertGreater(int(answers[2].headers["Retry-After"]), 0)

    async def test_the_socket_reports_the_remaining_allowance_and_refusals(self):
        await in_database(MessageAllowance.objects.create, messages=1)
        conversation = await in_database(recording.open_conversation, self.principal)
        cookie = await in_database(self.cookie)
        headers = [(b"cookie", f"sessionid={cookie}".encode())]
        socket = Socket(APPLICATION, f"/ws/c/{conversation.pk}/", headers=headers)
        self.assertTrue((await socket.connect())[0])
        await socket.send_json_to({"type": "ask", "text": "Leave?", "key": "k" * 32})
        self.assertEqual((await socket.receive_json_from())["left"], "No messages left today.")
        await socket.send_json_to({"type": "ask", "text": "And?", "key": "l" * 32})
        while (told := await socket.receive_json_from()).get("type") != "refused":
            pass
        self.assertEqual((told["code"], told["key"]), ("quota_exceeded", "l" * 32))
        await socket.disconnect()

    def cookie(self):
        client = Client()
        client.force_login(self.user)
        return client.cookies["sessionid"].value

    def test_the_portal_shows_the_remaining_allowance_and_keeps_a_refused_question(self):
        client = Client()
        client.force_login(self.user)
        self.assertNotContains(client.get("/"), "left today")
        MessageAllowance.objects.create(messages=1)
        self.assertContains(client.get("/"), "1 message left today.")
        page = client.post("/", {"question": "Leave?"}, follow=True)
        self.assertContains(page, "No messages left today.")
        refused = client.post("/", {"question": "How many days may I carry over?"})
        self.assertContains(refused, "How many days may I carry over?", status_code=429)
        self.assertContains(refused, "You have sent today’s message.", status_code=429)
        self.assertGreater(int(refused.headers["Retry-After"]), 0)
