"""Images of pages among the data points, in the form of the AI-chat specifications."""

from django.test import SimpleTestCase

from chat.events import ContextReady, Thought
from chat.protocols.answer_context import context
from chat.sources import PageImage
from chat.tests.golden_exchange import differences, golden
from chat.tests.sources import source


class ResponseContextTests(SimpleTestCase):
    def test_images_of_pages_are_data_points_as_each_document_shows(self):
        images = (PageImage("a.pdf#page=1", "data:image/png;base64,iVBORw0KGgo="),)
        found = ContextReady(
            (source(label="a.pdf#page=1"),), (Thought("Original user query", "x"),), "", images
        )
        for name in ("rag_chat", "ai_chat_protocol", "chat_completions"):
            example = golden(name)["response_context"]["images"]
            points = {"data_points": context(found)["data_points"]}
            self.assertEqual(differences(example, points), [])
            self.assertEqual(points["data_points"]["images"][0]["url"], images[0].url)
