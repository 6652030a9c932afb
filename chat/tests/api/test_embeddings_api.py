"""`/v1/embeddings`: vectors as OpenAI's clients read them, within the caller's limits."""

import asyncio
import base64
import threading
from itertools import islice
from unittest import mock

import numpy as np
from django.test import override_settings

from chat.api import embeddings
from chat.models import MessageAllowance, Usage
from chat.protocols.openai import openai_embeddings
from chat.tests.golden_exchange import GoldenTestCase
from chatsite.accounts.models import ApiKey, User
from chatsite.db.threads import in_database
from ingestion.embedding.built_in import WordLlamaEmbedder
from ingestion.embedding.embedder import EmbeddingError
from ingestion.embedding.endpoint import EndpointEmbedder
from ingestion.embedding.selection import embedder

PATH = "/v1/embeddings"


class EmbeddingTests(GoldenTestCase):
    def setUp(self):
        super().setUp()
        embeddings._asked_at.clear()

    async def asked(self, status=200, **members):
        response = await self.post(PATH, {"model": "any", "input": "Leave"} | members)
        self.assertEqual(response.status_code, status, response.content)
        self.headers = response.headers
        return response.json()

    async def test_texts_become_the_vectors_that_the_site_searches_with(self):
        told = await self.asked(input=["How many days of leave?", "The canteen"])
        self.assertEqual((told["object"], told["model"]), ("list", embedder().name))
        self.assertEqual([item["index"] for item in told["data"]], [0, 1])
        expected = await in_database(embedder().embed, ["How many days of leave?", "The canteen"])
        np.testing.assert_allclose([item["embedding"] for item in told["data"]], expected, atol=1e-6)

    async def test_base64_holds_the_same_numbers(self):
        plain = (await self.asked())["data"][0]["embedding"]
        packed = (await self.asked(encoding_format="base64"))["data"][0]["embedding"]
        np.testing.assert_allclose(np.frombuffer(base64.b64decode(packed), dtype="<f4"), plain, atol=1e-6)

    async def test_shorter_vectors_have_length_one(self):
        for dimensions in (64, 128, 256):
            vector = (await self.asked(dimensions=dimensions))["data"][0]["embedding"]
            self.assertEqual(len(vector), dimensions)
            self.assertAlmostEqual(float(np.linalg.norm(vector)), 1, places=4)

    async def test_invalid_input_is_refused_by_name(self):
        for member, value in (
            ("input", None), ("input", []), ("input", [""]), ("input", [1, 2]), ("input", [[1, 2]]),
            ("input", ["x"] * 2_049), ("input", "x" * 32_001), ("input", "a\x00b"),
            ("input", ["x" * 32_000] * 4), ("dimensions", 100),
            ("dimensions", 512), ("encoding_format", "int8"), ("other", 1),
        ):  # fmt: skip
            error = (await self.asked(400, **{member: value}))["error"]
            self.assertEqual((error["param"], error["type"]), (member, "invalid_request_error"))
        self.assertFalse(await Usage.objects.filter(messages__gt=0).aexists())

    async def test_a_request_counts_as_a_message_of_the_day(self):
        await MessageAllowance.objects.acreate(user=self.user, messages=2)
        await self.asked()
        await self.asked()
        error = (await self.asked(429))["error"]
        self.assertEqual(error["code"], "quota_exceeded")
        self.assertIn("Retry-After", self.headers)

    @override_settings(USER_EMBEDDINGS_PER_MINUTE=2)
    async def test_requests_per_minute_are_limited(self):
        await self.asked()
        await self.asked()
        self.assertEqual((await self.asked(429))["error"]["code"], "rate_limited")
        self.assertLessEqual(int(self.headers["Retry-After"]), 61)

    async def test_refusing_one_person_does_not_affect_others(self):
        allowance = await MessageAllowance.objects.acreate(messages=1)
        await self.asked()
        for _ in range(2):
            await self.asked(429)
        self.assertEqual([len(times) for times in embeddings._asked_at.values()], [1])
        embeddings._asked_at.clear()
        await self.asked(429)
        self.assertEqual(embeddings._asked_at, {})
        await allowance.adelete()
        await self.asked()

    async def test_concurrent_requests_are_counted_exactly(self):
        answers = await asyncio.gather(
            *(self.post(PATH, {"model": "any", "input": "Leave"}) for _ in range(20))
        )
        self.assertLessEqual({each.status_code for each in answers}, {200, 429})

    async def test_a_failing_model_is_reported_in_the_sites_words(self):
        failing = EmbeddingError("secret address", temporary=True, retry_after=3)
        with mock.patch("ingestion.embedding.built_in.WordLlamaEmbedder.embed", side_effect=failing):
            error = (await self.asked(502))["error"]
        self.assertEqual((error["type"], error["code"]), ("server_error", "upstream_unavailable"))
        self.assertNotIn("secret", error["message"])

    async def test_one_request_at_a_time_is_embedded_and_others_wait_or_get_retry_after(self):
        started, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)
        concurrent, most = 0, 0
        embed = WordLlamaEmbedder.embed

        def slow(model, texts, seconds=None):
            nonlocal concurrent, most
            concurrent += 1
            most = max(most, concurrent)
            started.set()
            release.wait(30)
            concurrent -= 1
            return embed(model, texts, seconds)

        await MessageAllowance.objects.acreate(user=self.user, messages=5)
        with mock.patch.object(WordLlamaEmbedder, "embed", slow):
            first = asyncio.create_task(self.asked())
            self.assertTrue(await asyncio.to_thread(started.wait, 30))
            with mock.patch.object(embeddings, "QUEUE_SECONDS", 0.01):
                error = (await self.asked(429))["error"]
            self.assertEqual(await Usage.objects.values_list("messages", flat=True).aget(), 1)
            self.assertEqual(len(embeddings._asked_at[self.user.pk]), 1)
            self.assertEqual((error["code"], self.headers["Retry-After"]), ("rate_limited", "5"))
            waiting = [asyncio.create_task(self.asked()) for _ in range(3)]
            release.set()
            answers = await asyncio.gather(first, *waiting)
        self.assertEqual([len(answer["data"]) for answer in answers], [1] * 4)
        self.assertEqual(most, 1)

    async def test_unanswered_requests_do_not_block_other_people(self):
        release = threading.Event()
        self.addCleanup(release.set)
        other = await User.objects.acreate(username="other")
        _, key = await in_database(ApiKey.objects.issue, other, "")

        class Held(EndpointEmbedder):
            def embed(self, texts, seconds=None):
                if texts[0] == "held":
                    release.wait(30)
                return np.ones((len(texts), 3), np.float32)

        model = Held("model", 3, "http://127.0.0.1:9", "")
        with (
            mock.patch.object(embeddings, "embedder_of", return_value=model),
            mock.patch.object(embeddings, "QUEUE_SECONDS", 0.3),
        ):
            many, few = embeddings.SERVER_REQUESTS, embeddings.OF_ONE_PERSON
            held = [asyncio.create_task(self.post(PATH, {"input": "held"})) for _ in range(many)]
            refused = [await each for each in islice(asyncio.as_completed(held), many - few)]
            answer = await self.post(PATH, {"input": "free"}, Authorization=f"Bearer {key}")
            release.set()
            await asyncio.gather(*held)
        self.assertEqual({each.status_code for each in refused}, {429})
        self.assertEqual(answer.status_code, 200)
        self.assertEqual([each.result().status_code for each in held].count(200), few)

    async def test_vectors_are_computed_and_encoded_off_the_event_loop(self):
        threads = []
        answer = openai_embeddings.answer

        def recorded(*args, **kwargs):
            threads.append(threading.current_thread().name)
            return answer(*args, **kwargs)

        with mock.patch.object(openai_embeddings, "answer", recorded):
            await self.asked()
        self.assertEqual([name.rpartition("_")[0] for name in threads], ["embeddings"])

    async def test_a_stranger_gets_no_vectors(self):
        response = await self.post(PATH, {"input": "x"}, Authorization="Bearer wrong")
        self.assertEqual(
            (response.status_code, response.json()["error"]["type"]), (401, "authentication_error")
        )
