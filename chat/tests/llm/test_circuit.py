"""A model's server that is down gets no requests, except for one that tries whether it is back."""

import asyncio
from dataclasses import replace

from django.test import override_settings

from chat.llm import ModelError
from chat.llm.connections import FAILURES, connection
from chat.llm.remote import RemoteModel
from chat.requests import EarlierMessage
from chat.tests.upstream_case import PROMPT, FakeServerTestCase
from chat.tests.upstream_faults import answer, status
from chatsite.tests.limits import MARGIN_SECONDS

DOWN = status(503, {"error": {"message": "Out of order"}})
REST = 0.3
OPEN = [DOWN] * FAILURES


async def asked(model=None, caller=""):
    """The answer's text, or the code of the error."""
    text = ""
    try:
        async for part in (model or RemoteModel()).answer(replace(PROMPT, caller=caller)):
            text += getattr(part, "text", "")
    except ModelError as error:
        return error.code
    return text


class CircuitTests(FakeServerTestCase):
    deadlines = {"MODEL_REST_SECONDS": REST}

    def on_one_loop(self, scenario):
        """Run the scenario on one event loop, as in one process, so that the state of the breaker is kept."""

        async def run():
            try:
                return await scenario()
            finally:
                await connection().server.close()

        return asyncio.run(run())

    async def after_failures(self):
        self.fake.script(*OPEN)
        for _ in range(FAILURES):
            self.assertEqual(await asked(), "upstream_unavailable")

    def test_after_some_failures_requests_are_refused_at_once(self):
        async def scenario():
            await self.after_failures()
            before = asyncio.get_running_loop().time()
            codes = [await asked() for _ in range(20)]
            return set(codes), asyncio.get_running_loop().time() - before

        codes, seconds = self.on_one_loop(scenario)
        self.assertEqual((codes, self.calls()), ({"upstream_unavailable"}, FAILURES))
        self.assertLess(seconds, 0.2 + MARGIN_SECONDS)  # one wait for all questions

    def asked_at_once_after_a_rest(self, *script):
        async def scenario():
            await self.after_failures()
            await asyncio.sleep(REST + 0.05)
            self.fake.script(*script)
            return await asyncio.gather(*(asked() for _ in range(10)))

        return self.on_one_loop(scenario)

    def test_questions_during_a_successful_probe_are_answered_too(self):
        self.assertEqual(self.asked_at_once_after_a_rest(*[answer("Back.", pause=0.1)] * 10), ["Back."] * 10)
        self.assertEqual(self.calls(), FAILURES + 10)

    def test_one_of_many_questions_probes_a_server_that_is_still_down(self):
        self.assertEqual(self.asked_at_once_after_a_rest(DOWN), ["upstream_unavailable"] * 10)
        self.assertEqual(self.calls(), FAILURES + 1)

    def test_a_failed_probe_extends_the_pause_and_a_successful_one_ends_it(self):
        async def scenario():
            await self.after_failures()
            said = []
            for behaviour in (DOWN, answer("Back.")):
                await asyncio.sleep(REST + 0.05)
                self.fake.script(behaviour)
                said += [await asked(), await asked()]
            return said

        unavailable = "upstream_unavailable"
        self.assertEqual(self.on_one_loop(scenario)[:3], [unavailable, unavailable, "Back."])
        self.assertEqual(self.calls(), FAILURES + 3)

    def test_a_stopped_probe_lets_the_next_question_probe(self):
        async def scenario():
            await self.after_failures()
            await asyncio.sleep(REST + 0.05)
            self.fake.script("silent", answer("Back."))
            probe = asyncio.create_task(asked())
            await asyncio.sleep(0.1)
            probe.cancel()
            await asyncio.gather(probe, return_exceptions=True)
            return await asked()

        self.assertEqual(self.on_one_loop(scenario), "Back.")

    def test_the_server_may_ask_for_a_longer_pause(self):
        async def scenario():
            self.fake.script(*[status(503, {}, "Retry-After: 20")] * FAILURES)
            codes = [await asked() for _ in range(FAILURES)]
            await asyncio.sleep(REST + 0.05)
            return [*codes, await asked()]

        self.assertEqual(set(self.on_one_loop(scenario)), {"upstream_unavailable"})
        self.assertEqual(self.calls(), FAILURES)

    def test_occasional_refusals_and_failures_do_not_open_the_breaker(self):
        async def scenario():
            self.fake.script(*([DOWN] * (FAILURES - 1) + ["unauthorised"]) * 3)
            for _ in range(FAILURES * 3):
                await asked()

        with override_settings(MODEL_REST_SECONDS=60):
            self.on_one_loop(scenario)
        self.assertEqual(self.calls(), FAILURES * 3)

    def test_failures_of_one_caller_do_not_block_other_callers(self):
        async def scenario():
            self.fake.script(*OPEN, answer("Here."))
            for _ in range(2 * FAILURES):
                self.assertEqual(await asked(caller="one"), "upstream_unavailable")
            self.assertEqual(self.calls(), FAILURES)
            return await asked(caller="two")

        self.assertEqual(self.on_one_loop(scenario), "Here.")

    def test_failures_of_several_callers_count_for_everyone(self):
        async def scenario():
            self.fake.script(*OPEN)
            callers = ("one", "two", "three", "one", "two")
            for caller in callers:
                self.assertEqual(await asked(caller=caller), "upstream_unavailable")
            return await asked(caller="four")

        self.assertEqual(self.on_one_loop(scenario), "upstream_unavailable")
        self.assertEqual(self.calls(), FAILURES)

    def test_another_model_of_the_same_server_has_its_own_breaker(self):
        async def scenario():
            await self.after_failures()
            return await asked(), await asked(RemoteModel("other"))

        self.assertEqual(self.on_one_loop(scenario)[0], "upstream_unavailable")
        self.assertEqual(self.calls(), FAILURES + 1)

    def test_refused_connections_count_and_side_texts_are_skipped(self):
        async def scenario():
            with override_settings(OPENAI_BASE_URL="http://127.0.0.1:9/v1"):
                codes = [await asked() for _ in range(FAILURES)]
                model, turns = RemoteModel(), [EarlierMessage("user", "Leave?")]
                self.assertEqual((await model.search_query("How many?", turns)).text, "How many?")
                down = connection().breaker("fake").is_open()
                await connection().server.close()
            return codes, down

        codes, down = self.on_one_loop(scenario)
        self.assertEqual((set(codes), down), ({"upstream_unavailable"}, True))
