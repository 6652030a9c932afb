"""Images of the pages found: sent to the model and the client, but not to people who may not read them."""

import base64
import io
import json
import random
from pathlib import Path
from unittest import mock
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import SimpleTestCase, override_settings
from PIL import Image

from chat.engine import page_images
from chat.llm.chat_model import messages
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.models import JournalEntry
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.override_case import OverrideTestCase
from chat.tests.upstream_case import SERVER
from chat.tests.upstream_faults import completion
from chatsite.accounts.principal import Principal
from chatsite.db.threads import in_database
from chatsite.http import checked_transfer
from history.models import Message, Source
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document
from ingestion.tests.factories import make_document
from ingestion.tests.media import MediaMixin

HANDBOOK = Path(settings.BASE_DIR) / "ingestion" / "samples" / "everyone" / "employee-handbook.pdf"
BEGINNING = "data:image/png;base64,"


def png(size, colours=None):
    image = Image.new("RGB", size)
    if colours:
        image.putdata([tuple(colours.randbytes(3)) for _ in range(size[0] * size[1])])
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def opened(url):
    return Image.open(io.BytesIO(base64.b64decode(url.removeprefix(BEGINNING))))


class ScalingTests(SimpleTestCase):
    def test_a_large_page_is_scaled_down_in_proportion(self):
        image = Image.open(io.BytesIO(page_images.scaled(png((2000, 1000)))))
        self.assertEqual(image.size, (1300, 650))

    def test_a_small_page_stays_unchanged(self):
        self.assertEqual(page_images.scaled(small := png((300, 200))), small)

    @pytest.mark.slow
    def test_a_noisy_page_is_compressed_enough_too(self):
        scaled = page_images.scaled(png((1000, 1000), random.Random(1)))
        self.assertLessEqual(len(scaled), page_images.BYTES)
        self.assertTrue(scaled)


@pytest.mark.slow
@override_settings(CHAT_MODEL_READS_IMAGES=True)
class PageImageTests(MediaMixin, OverrideTestCase):
    question = "How many days of annual leave may be carried over into the next year?"

    def setUp(self):
        super().setUp()
        self.handbook = self.add("employee-handbook.pdf", HANDBOOK.read_bytes())
        make_document("leave.md", ["Annual leave: five days may be carried over."], everyone=True)

    def images(self, context):
        return context["data_points"].get("images", [])

    async def test_pages_go_to_the_model_beside_their_text_and_to_the_client(self):
        context = await self.ask(use_gpt4v=True, top=10)
        images = self.images(context)
        self.assertTrue(1 <= len(images) <= 5)
        for image in images:
            self.assertEqual((set(image), image["detail"]), ({"url", "detail"}, "auto"))
            self.assertLessEqual(max(opened(image["url"]).size), 1300)
        text, *parts = messages(self.prompt)[-1]["content"]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        self.assertEqual(urls, [image["url"] for image in images])
        names = [part["text"].partition(":")[0] for part in parts if part["type"] == "text"]
        self.assertEqual(names, [page.label for page in self.prompt.pages])
        self.assertIn(f"{names[0]}: ", text["text"])
        told = self.step(context, "Page images")
        self.assertIn(f"beside their text: {len(images)}.", told["description"])

    async def test_images_alone_replace_their_text(self):
        context = await self.ask(use_gpt4v=True, gpt4v_input="images", top=10)
        text = messages(self.prompt)[-1]["content"][0]["text"]
        for page in self.prompt.pages:
            self.assertNotIn(f"{page.label}: ", text)
        self.assertIn("leave.md: ", text)
        self.assertIn("in place of their text", self.step(context, "Page images")["description"])
        self.assertTrue(
            any("the page in an image" in line for line in self.step(context, "Prompt")["description"])
        )

    async def test_text_alone_gives_no_images(self):
        context = await self.ask(use_gpt4v=True, gpt4v_input="text")
        self.assertEqual((self.images(context), self.prompt.pages), ([], ()))

    async def test_the_answer_says_if_no_page_images_exist(self):
        await in_database(Document.objects.filter(pk=self.handbook.pk).delete)
        context = await self.ask(use_gpt4v=True)
        self.assertNotIn("images", context["data_points"])
        self.assertIn("None of the passages found", self.step(context, "Page images")["description"])

    async def test_a_page_that_cannot_be_rendered_is_left_out(self):
        with mock.patch("ingestion.storage.files.page_image", side_effect=FileNotFoundError):
            context = await self.ask(use_gpt4v=True, gpt4v_input="images")
        self.assertEqual(self.images(context), [])
        self.assertIn("employee-handbook.pdf#page=", messages(self.prompt)[-1]["content"])

    async def test_no_image_is_stored(self):
        await self.ask(use_gpt4v=True)
        self.assertNotIn(BEGINNING, await in_database(self.everything_stored))

    def everything_stored(self):
        rows = [
            JournalEntry.objects.values_list("events"),
            Message.objects.values_list("content", "thoughts"),
        ]
        rows.append(Source.objects.values_list("content", "captions", "given"))
        return json.dumps([list(map(str, row)) for row in rows])

    async def test_a_replay_renders_images_under_the_present_rights(self):
        first = await self.asked_with_key()
        await in_database(JournalEntry.objects.all().delete)
        self.assertEqual((await self.asked_with_key()).json(), first.json())
        await in_database(set_audience, self.handbook, Audience())
        told = (await self.asked_with_key()).json()["context"]
        self.assertNotIn("images", told["data_points"])
        self.assertNotIn("employee-handbook.pdf", json.dumps(told["data_points"]))

    async def asked_with_key(self):
        return await self.post(use_gpt4v=True, key="once")

    async def test_an_image_whose_right_is_withdrawn_while_it_is_rendered_is_left_out(self):
        kept, withdrawn = uuid4(), uuid4()
        pages = [page_images.Page(str(each), each, 1) for each in (kept, withdrawn)]
        with (
            mock.patch.object(page_images, "_documents", side_effect=[{kept: 1, withdrawn: 2}, {kept: 1}]),
            mock.patch.object(page_images, "_url", return_value=BEGINNING),
            mock.patch.object(checked_transfer, "CHECK_SECONDS", -1),
        ):
            images = await page_images.page_images(Principal(1, "command"), pages)
        self.assertEqual([image.label for image in images], [str(kept)])

    async def test_pages_of_a_hidden_document_are_never_rendered(self):
        await in_database(set_audience, self.handbook, Audience())
        with mock.patch("ingestion.storage.files.page_image") as draw:
            context = await self.ask(use_gpt4v=True)
        draw.assert_not_called()
        self.assertEqual(self.images(context), [])


@override_settings(**SERVER, CHAT_BACKEND="chat.llm.remote.RemoteModel", CHAT_MODEL_READS_IMAGES=True)
@pytest.mark.slow
class RemoteModelTests(MediaMixin, OverrideTestCase):
    question = "How many days of annual leave may be carried over into the next year?"

    async def test_a_model_server_grades_the_passages_and_gets_the_images(self):
        await in_database(self.add, "employee-handbook.pdf", HANDBOOK.read_bytes())
        with FakeOpenAI() as fake, override_settings(OPENAI_BASE_URL=fake.url):
            fake.side = lambda request: completion("\n".join(f"{number}: 3" for number in range(1, 51)))
            self.model = RemoteModel()
            context = await self.ask(use_gpt4v=True, semantic_ranker=True, semantic_captions=True, top=3)
            await connection().server.close()
        (request,) = fake.streams
        parts = request.body["messages"][-1]["content"]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        self.assertEqual(urls, [image["url"] for image in self.images(context)])
        self.assertTrue(urls)
        self.assertEqual(self.step(context, "Semantic ranker")["props"]["ranker"], "fake")

    def images(self, context):
        return context["data_points"].get("images", [])
