"""How many pages and streams one person may have open in one process."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock, patch

from django.test import AsyncClient, SimpleTestCase, override_settings

from chat.errors import Refused
from chat.limits import (
    ConnectionLimiter,
    connection_limiter,
)
from chat.llm import use_model
from chat.models import Run
from chat.tests.api.test_run_events import ASKED, RunEventsCase
from chat.tests.golden_exchange import GoldenTestCase
from chat.tests.portal.test_consumers import ConsumerCase
from chat.tests.protocols.test_golden_refusals import CHAT_REQUESTS
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from chatsite.db.threads import in_database
from chatsite.http import address_limit
from history import recording
from history.models import Message
from ingestion.tests.factories import command_principal, make_user

FULL = "1 page or stream is open in your name. Close it, and try again."


class ConnectionLimiterTests(SimpleTestCase):
    @override_settings(USER_CONNECTIONS=2)
    def test_each_person_has_a_limit_of_slots_and_gets_them_back(self):
        limiter = ConnectionLimiter()
        with limiter.reserve(1), limiter.reserve(2):
            with limiter.reserve(1):
                with self.assertRaises(Refused) as refused:
                    limiter.reserve(1)
                with limiter.reserve(2):
                    pass
            with limiter.reserve(1):
                pass
        self.assertEqual((refused.exception.status, refused.exception.retry_after), (429, 30))
        self.assertIn("2 pages and streams", refused.exception.message)

    @override_settings(USER_CONNECTIONS=2)
    def test_concurrent_threads_get_exactly_the_free_slots(self):
        limiter, refused, start = ConnectionLimiter(), [], threading.Barrier(8)

        def reserve(_):
            start.wait(10)
            try:
                return limiter.reserve(1)
            except Refused:
                refused.append(1)
                return None

        with ThreadPoolExecutor(8) as threads:
            slots_of_one = list(threads.map(reserve, range(8)))
        self.assertEqual((sum(slot is not None for slot in slots_of_one), len(refused)), (2, 6))

    @override_settings(USER_CONNECTIONS=1)
    def test_releasing_a_slot_twice_frees_it_once(self):
        limiter = ConnectionLimiter()
        limiter.reserve(1)
        slot = limiter.reserve(1)
        slot.release()
        slot.release()
        with limiter.reserve(1), self.assertRaises(Refused):
            limiter.reserve(1)

    def test_shutdown_closes_pages_and_admits_no_more(self):
        limiter, left = ConnectionLimiter(), []
        with limiter.slot(1, lambda: left.append("first")):
            limiter.slot(1, lambda: left.append("second")).release()
            limiter.shutdown()
        self.assertEqual((left, limiter.closing), (["first"], True))


@override_settings(USER_CONNECTIONS=1)
class FullSlotsTests(GoldenTestCase):
    async def test_a_question_beyond_the_limit_is_refused_in_every_protocol_and_not_stored(self):
        with connection_limiter.slot(self.user.pk):
            for name, (path, _, body) in CHAT_REQUESTS.items():
                with self.subTest(name):
                    response = await self.post(path, body)
                    self.assertEqual((response.status_code, response.headers["Retry-After"]), (429, "30"))
                    error = response.json()["error"]
                    self.assertEqual(error if isinstance(error, str) else error["message"], FULL)
        self.assertEqual(await Message.objects.acount(), 0)
        self.assertEqual((await self.post("/chat", ASKED)).status_code, 200)


@override_settings(USER_CONNECTIONS=2)
class CrowdedSlotsTests(RunEventsCase):
    async def ask_with(self, key):
        headers = {"Authorization": f"Bearer {self.secret}", "Idempotency-Key": key}
        return await AsyncClient().post("/chat/stream", ASKED, "application/json", headers=headers)

    async def test_concurrent_questions_get_exactly_the_allowed_streams(self):
        with use_model(ScriptedModel(words=["a "])):
            answers = await asyncio.gather(*(self.ask_with(f"key {number}") for number in range(6)))
            codes = sorted(answer.status_code for answer in answers)
            self.assertEqual(codes, [200, 200, 429, 429, 429, 429])
            self.assertEqual(await in_database(Run.objects.count), 2)
            for answer in answers:
                await in_database(answer.close)
            again = await self.ask_with("one more")
            self.assertEqual(again.status_code, 200)
            await in_database(again.close)

    async def test_a_repeated_question_needs_no_free_stream(self):
        with use_model(ScriptedModel(words=["a "])):
            answers = [await self.ask_with("first"), await self.ask_with("second")]
            self.assertEqual((await self.ask_with("third")).status_code, 429)
            answers += [await self.ask_with(key) for key in ("first", "second") * 3]
            runs = {answer.headers["Chat-Run"] for answer in answers}
            self.assertEqual(([answer.status_code for answer in answers], len(runs)), ([200] * 8, 2))
            await in_database(answers.pop(0).close)
            answers.append(await self.ask_with("third"))
            self.assertEqual(answers[-1].status_code, 200)
            for answer in answers:
                await in_database(answer.close)

    async def test_concurrent_waiting_retries_have_a_limit_of_their_own(self):
        with use_model(ScriptedModel(words=["a "])), patch("chat.limits.RETRIES", 1):
            answers = [await self.ask_with("first") for _ in range(3)]
            self.assertEqual([answer.status_code for answer in answers], [200] * 3)
            self.assertEqual((await self.ask_with("first")).status_code, 429)
            for answer in answers:
                await in_database(answer.close)


class WaitingTests(RunEventsCase):
    async def test_waiting_for_a_complete_answer_does_not_block_other_requests_of_the_address(self):
        """For example 300 people of one office, who share an address."""
        released = Mock()
        token = address_limit._release_slot.set(released)
        try:
            with use_model(ScriptedModel(words=["a "])):
                self.assertEqual((await self.post("/chat", ASKED)).status_code, 200)
        finally:
            address_limit._release_slot.reset(token)
        released.assert_called_once_with()


@override_settings(USER_CONNECTIONS=1)
class FullStreamTests(RunEventsCase):
    async def test_a_stream_beyond_the_limit_is_refused_until_another_ends(self):
        stranger = await in_database(make_user, "stranger")
        secret = (await in_database(ApiKey.objects.issue, stranger, "test"))[1]
        with use_model(ScriptedModel(words=["a ", "b "], pause=0.3)):
            answer = await self.post("/chat/stream", ASKED)
            run = answer.headers["Chat-Run"]
            lines = answer.streaming_content
            await anext(lines)
            refused = await self.get(run)
            self.assertEqual((refused.status_code, refused.headers["Retry-After"]), (429, "30"))
            self.assertEqual(refused.json(), {"error": FULL})
            self.assertEqual((await self.get(run, secret=secret)).status_code, 404)
            self.assertTrue([line async for line in lines])
            self.assertEqual((await self.events(run))[-1]["state"], "complete")
            self.assertEqual((await self.events(run))[-1]["state"], "complete")


class FullPageTests(ConsumerCase):
    @override_settings(USER_CONNECTIONS=2)
    async def test_a_page_beyond_the_limit_is_told_so_and_connects_when_another_closes(self):
        first, second = await self.opened(), await self.opened()
        other = await in_database(make_user, "other")
        theirs = await in_database(recording.open_conversation, command_principal(other))
        self.assertTrue((await (await self.socket(other, theirs.pk)).connect())[0])
        for _ in range(2):
            third = await self.opened()
            self.assertEqual((await third.receive_output())["code"], 4429)
            await third.disconnect()
        await first.disconnect()
        third = await self.opened()
        self.assertTrue(await third.receive_nothing())
        await second.disconnect()
        await third.disconnect()
