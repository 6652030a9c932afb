"""Notifications and stops between processes: over PostgreSQL, over Redis, and if neither delivers them."""

import asyncio
import random
from contextlib import aclosing, asynccontextmanager
from unittest.mock import patch

from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import connection
from django.test import SimpleTestCase, TransactionTestCase, override_settings

from chat import runs
from chat.events import Finished, TextDelta
from chat.llm import use_model
from chat.requests import RunRequest
from chat.runs import (
    notifications,
)
from chat.runs.manager import run_manager
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from ingestion.tests.factories import command_principal, make_document, make_user

WORDS = [f"word{number} " for number in range(20)]
TERMINATE = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"


class DroppingLayer(InMemoryChannelLayer):
    """Loses some messages, as Redis does when it is killed or flushed."""

    part = 0.2

    async def group_send(self, group, message):
        if random.random() >= self.part:
            await super().group_send(group, message)


class AwayLayer(InMemoryChannelLayer):
    async def new_channel(self, prefix="specific."):
        raise ConnectionError

    async def group_send(self, group, message):
        raise ConnectionError


def layer_of(name):
    backend = f"{__name__}.{name}" if name != "InMemoryChannelLayer" else f"channels.layers.{name}"
    return override_settings(REDIS_URL="redis://nowhere", CHANNEL_LAYERS={"default": {"BACKEND": backend}})


class MessageTests(SimpleTestCase):
    def test_notifications_fit_into_postgresqls_limit_and_are_decoded(self):
        ids = [notifications.UUID(int=number) for number in range(450)]
        told = notifications.messages("news", ids)
        self.assertTrue(all(len(message) < 8000 for message in told))
        self.assertEqual([one for message in told for one in notifications.decode(message)[1]], ids)
        self.assertEqual(notifications.decode("later x y"), ("later", []))

    def test_pending_notifications_are_sent_as_one_message_of_each_kind(self):
        first, second = (notifications.UUID(int=number) for number in (1, 2))
        pending = [f"news {first}", f"stop {first}", f"news {second} {first}"]
        self.assertEqual(notifications.merged(pending), [f"news {first} {second}", f"stop {first}"])


class WakeupCase(TransactionTestCase):
    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        make_document(everyone=True)

    @asynccontextmanager
    async def listening(self):
        task = asyncio.create_task(runs.listening())
        hub = notifications.hub()
        try:
            async with asyncio.timeout(5):
                while not hub.listening:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            yield hub
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def read_elsewhere(self, seconds=10):
        """Answer a question; return the text and the end that a follower in another process reads."""
        with use_model(ScriptedModel(words=WORDS, pause=0.02)):
            accepted = await in_database(runs.begin, self.principal, RunRequest("Leave?"))
            runs.start(accepted)
            active = run_manager().active.pop(
                accepted.run_id
            )  # hides the run from the reader, not from its own task
            following = asyncio.create_task(self.collect(accepted.run_id))
            await asyncio.sleep(0.05)
            run_manager().active[accepted.run_id] = active
            async with asyncio.timeout(seconds):
                return await following

    async def collect(self, run_id):
        async with aclosing(runs.follow(self.principal, run_id)) as numbered:
            events = [event async for _, event in numbered]
        return "".join(event.text for event in events if isinstance(event, TextDelta)), events[-1]

    async def stopped(self, seconds):
        """Stop an answer as another process does; return its end, which must come within so many seconds."""
        with use_model(ScriptedModel(words=WORDS * 100, pause=0.05)):
            accepted = await in_database(runs.begin, self.principal, RunRequest("Leave?"))
            runs.start(accepted)
            await asyncio.sleep(0.2)
            await in_database(runs.request_stop, self.principal, accepted.run_id)
            async with asyncio.timeout(seconds):
                return (await self.collect(accepted.run_id))[1]


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class DatabaseTests(WakeupCase):
    async def test_a_notification_wakes_a_sleeping_follower(self):
        with patch.object(notifications, "MAX_PAUSE", 60):
            async with self.listening():
                self.assertEqual(await self.read_elsewhere(), ("".join(WORDS), Finished("complete")))

    async def test_a_stop_arrives_long_before_the_next_flush(self):
        with override_settings(JOURNAL_FLUSH_SECONDS=60):
            async with self.listening():
                self.assertEqual(await self.stopped(seconds=3), Finished("stopped"))

    async def test_without_a_listener_flushes_find_stops_and_followers_poll(self):
        self.assertEqual(await self.stopped(seconds=3), Finished("stopped"))
        self.assertEqual((await self.read_elsewhere())[0], "".join(WORDS))

    async def test_a_listener_wakes_only_for_notifications(self):
        loop = asyncio.get_running_loop()
        async with aclosing(notifications.subscribe()) as messages:
            self.assertEqual(await anext(messages), "")
            following = asyncio.ensure_future(anext(messages))
            await asyncio.sleep(0.05)  # it waits
            with patch.object(loop, "add_reader", wraps=loop.add_reader) as waits:
                await asyncio.sleep(0.3)
            self.assertEqual(waits.call_count, 0)
            sent = notifications.messages("news", [notifications.UUID(int=1)])
            notifications.publish(sent)
            self.assertEqual([await asyncio.wait_for(following, 5)], sent)

    async def test_a_listener_reconnects_after_losing_its_connection(self):
        with patch.object(notifications, "AGAIN_SECONDS", 0.05):
            async with self.listening() as hub:
                await in_database(self.terminate)
                async with asyncio.timeout(5):
                    while hub.listening:  # noqa: ASYNC110
                        await asyncio.sleep(0.005)
                    while not hub.listening:  # noqa: ASYNC110
                        await asyncio.sleep(0.005)
                self.assertEqual((await self.read_elsewhere())[0], "".join(WORDS))

    @staticmethod
    def terminate():
        with connection.cursor() as cursor:
            cursor.execute(TERMINATE)


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class LayerTests(WakeupCase):
    async def test_notifications_and_stops_arrive_over_redis_too(self):
        with layer_of("InMemoryChannelLayer"), patch.object(notifications, "MAX_PAUSE", 60):
            async with self.listening():
                self.assertEqual((await self.read_elsewhere())[0], "".join(WORDS))
                with override_settings(JOURNAL_FLUSH_SECONDS=60):
                    self.assertEqual(await self.stopped(seconds=3), Finished("stopped"))

    async def test_lost_messages_only_cause_delay(self):
        for part in (0.2, 1.0):
            with layer_of("DroppingLayer"), patch.object(DroppingLayer, "part", part):
                async with self.listening():
                    self.assertEqual((await self.read_elsewhere())[0], "".join(WORDS))

    async def test_an_unavailable_redis_only_causes_delay(self):
        with layer_of("AwayLayer"):
            task = asyncio.create_task(runs.listening())
            self.assertEqual((await self.read_elsewhere())[0], "".join(WORDS))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def test_subscriptions_survive_a_flushed_redis(self):
        with layer_of("InMemoryChannelLayer"), patch.object(notifications, "CHECK_SECONDS", 0.05):
            async with self.listening():
                await get_channel_layer().flush()
                await asyncio.sleep(0.2)
                with override_settings(JOURNAL_FLUSH_SECONDS=60):
                    self.assertEqual(await self.stopped(seconds=3), Finished("stopped"))
