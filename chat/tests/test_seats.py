"""How many pages and streams one person may have open in one process."""

from django.test import SimpleTestCase, override_settings

from chat.errors import Refused
from chat.limits import (
    Seats,
    seats,
)
from chat.llm import use_model
from chat.llm.scripted import ScriptedModel
from chat.tests.golden_exchange import GoldenTestCase
from chat.tests.test_consumers import ConsumerCase
from chat.tests.test_golden_refusals import DOORS
from chat.tests.test_run_events import ASKED, RunEventsCase
from chatsite.accounts.models import ApiKey
from chatsite.db.threads import in_database
from history import recording
from history.models import Message
from ingestion.tests.factories import command_principal, make_user

FULL = "1 pages and streams of this site are open in your name. Close some, and try again."


class SeatsTests(SimpleTestCase):
    @override_settings(USER_CONNECTIONS=2)
    def test_each_person_has_so_many_and_gets_them_back(self):
        room = Seats()
        with room.taken(1), room.taken(2):
            room.check(1)
            with room.taken(1):
                with self.assertRaises(Refused) as refused:
                    room.check(1)
                room.check(2)
            room.check(1)
        self.assertEqual((refused.exception.status, refused.exception.retry_after), (429, 30))
        self.assertIn("2 pages and streams", refused.exception.message)

    def test_pages_are_asked_to_leave_and_none_is_to_come(self):
        room, left = Seats(), []
        with room.taken(1, lambda: left.append("first")):
            with room.taken(1, lambda: left.append("second")):
                pass
            room.leave()
        self.assertEqual((left, room.left), (["first"], True))


@override_settings(USER_CONNECTIONS=1)
class FullDoorTests(GoldenTestCase):
    async def test_one_more_question_is_refused_in_every_form_and_not_stored(self):
        with seats.taken(self.user.pk):
            for name, (path, _, body) in DOORS.items():
                with self.subTest(name):
                    response = await self.post(path, body)
                    self.assertEqual((response.status_code, response.headers["Retry-After"]), (429, "30"))
                    error = response.json()["error"]
                    self.assertEqual(error if isinstance(error, str) else error["message"], FULL)
        self.assertEqual(await Message.objects.acount(), 0)
        self.assertEqual((await self.post("/chat", ASKED)).status_code, 200)


@override_settings(USER_CONNECTIONS=1)
class FullStreamTests(RunEventsCase):
    async def test_one_more_stream_of_an_answer_is_refused_until_another_ends(self):
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
    async def test_one_page_too_many_is_told_so_and_comes_in_when_another_has_gone(self):
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
