"""Recorded requests of published clients: each is answered, or refused with the name of the member at fault.

`benchmarks/clients` tries the clients themselves.
"""

import json

import pytest

from chat.tests.golden_exchange import FILE, GoldenTestCase, golden
from chat.tests.scripted_model import ScriptedModel

TEXT = f"Five days [{FILE}#page=91]."
REFERENCE = "msg_of_the_first_answer"


class ClientTests(GoldenTestCase):
    @pytest.mark.slow
    async def test_every_recorded_request_is_answered_in_its_form(self):
        asked = {"input": "What is included in the Northwind plan?"}
        first = await self.post("/v1/responses", asked, model=ScriptedModel(words=[TEXT]))
        item = first.json()["output"][0]["id"]
        for recorded in golden("openai_clients"):
            with self.subTest(f"{recorded['client']}: {recorded['use']}"):
                body = json.loads(json.dumps(recorded["body"]).replace(REFERENCE, item))
                wanted = body.get("response_format") or body.get("text")
                words = [json.dumps({"days": 5, "text": TEXT}) if wanted else TEXT]
                response = await self.post(recorded["path"], body, model=ScriptedModel(words=words))
                if recorded["refused"]:
                    self.assertEqual(response.status_code, 400)
                    self.assertEqual(response.json()["error"]["param"], recorded["refused"])
                    continue
                self.assertEqual(
                    response.status_code, 200, response.content if not response.streaming else ""
                )
                if "embeddings" in recorded["path"]:
                    self.assertEqual(len(response.json()["data"]), len(body["input"]))
                else:
                    self.assertIn(f"[{FILE}#page=91]", self.said(recorded["path"], response))

    def said(self, path, response):
        """The text of an answer, whole or streamed."""
        if not response.streaming:
            told = response.json()
            if path.endswith("responses"):
                return told["output"][0]["content"][0]["text"]
            (choice,) = told["choices"]
            return choice["message"]["content"] if "chat" in path else choice["text"]
        lines = b"".join(response.body).decode().splitlines()
        told = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        if path.endswith("responses"):
            return "".join(event.get("delta", "") for event in told)
        choices = [choice for chunk in told for choice in chunk["choices"]]
        return "".join(
            choice["delta"].get("content", "") if "chat" in path else choice["text"] for choice in choices
        )
