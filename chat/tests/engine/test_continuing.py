"""Continuing an answer that was cut short: the new version begins with the text of the old one."""

from contextlib import aclosing

from django.test import SimpleTestCase, TransactionTestCase, override_settings

from chat import runs
from chat.errors import Refused
from chat.events import TextDelta
from chat.llm import ModelError, Prompt, use_model
from chat.llm.chat_model import instructions, messages
from chat.requests import RunRequest
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from history.models import Message, Source
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import command_principal, make_document, make_user

CUT = ScriptedModel(words=["Five da"], reason="length")
REST = ("ys until March ", "[guide.md]", ".")


class PromptTests(SimpleTestCase):
    def test_the_model_gets_its_own_text_and_is_asked_to_continue(self):
        said = messages(Prompt("Leave?", (), (), 0.0, prefill="Five da"))
        self.assertEqual(said[-2:], [
            {"role": "assistant", "content": "Five da"},
            {"role": "user", "content": instructions("continue")},
        ])  # fmt: skip
        self.assertIn("Leave?", said[1]["content"])


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class ContinuingTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.principal = command_principal(self.user)
        self.document = make_document("guide.md", everyone=True)

    async def text_of(self, model, accepted):
        with use_model(model):
            runs.start(accepted)
            async with aclosing(runs.follow(self.principal, accepted.run_id, 0)) as numbered:
                return "".join([event.text async for _, event in numbered if isinstance(event, TextDelta)])

    async def cut(self, model=CUT):
        accepted = await in_database(runs.begin, self.principal, RunRequest("Carry over leave until when?"))
        await self.text_of(model, accepted)
        return await self.message(accepted)

    async def go_on(self, answer, model):
        accepted = await in_database(lambda: runs.again(self.principal, answer.pk, continues=True))
        return await self.text_of(model, accepted), await self.message(accepted)

    async def message(self, accepted):
        return await in_database(Message.objects.get, pk=accepted.answer_id)

    async def test_the_rest_is_appended_and_the_former_answer_stays(self):
        former = await self.cut()
        model = ScriptedModel(words=REST)
        told, whole = await self.go_on(former, model)
        self.assertEqual(told, "Five days until March [guide.md].")
        self.assertEqual((whole.content, whole.finish_reason), (told, "stop"))
        self.assertEqual((whole.state, whole.citations), ("complete", ["guide.md"]))
        self.assertEqual(model.prompts[0].prefill, "Five da")
        sources = Source.objects.order_by("rank")
        given, kept = [
            await in_database(list, sources.filter(message=answer).values_list("passage_id", "score"))
            for answer in (whole, former)
        ]
        self.assertEqual(given, kept)
        self.assertTrue(given)
        kept = await in_database(Message.objects.get, pk=former.pk)
        self.assertEqual((kept.content, kept.state, kept.chosen), ("Five da", "complete", False))
        replayed = runs.follow(self.principal, whole.run_id, 0)
        async with aclosing(replayed) as numbered:
            again = [event.text async for _, event in numbered if isinstance(event, TextDelta)]
        self.assertEqual("".join(again), told)

    async def test_an_interrupted_continuation_keeps_both_parts(self):
        failing = ScriptedModel(words=["Five da"], error=ModelError("upstream_timeout"))
        former = await self.cut(failing)
        self.assertEqual(former.state, "interrupted")
        broken = ScriptedModel(words=["ys"], error=ModelError("upstream_timeout"))
        _, second = await self.go_on(former, broken)
        self.assertEqual((second.content, second.state), ("Five days", "interrupted"))
        told, third = await self.go_on(second, ScriptedModel(words=[" or six."]))
        self.assertEqual((told, third.state), ("Five days or six.", "complete"))

    async def test_with_a_withdrawn_source_the_answer_starts_from_the_beginning(self):
        former = await self.cut()
        other = await in_database(make_document, "other.md", everyone=True)
        reader = await in_database(make_user, "reader")
        await in_database(set_audience, self.document, Audience(user_ids=frozenset({reader.pk})))
        model = ScriptedModel(words=["Ten days."])
        told, _ = await self.go_on(former, model)
        self.assertEqual((told, model.prompts[0].prefill), ("Ten days.", ""))
        self.assertEqual({source.sourcefile for source in model.prompts[0].sources}, {other.name})

    async def test_only_truncated_answers_can_be_continued(self):
        whole = await self.cut(ScriptedModel(words=["Five days."]))
        with self.assertRaises(Refused) as refused:
            await self.go_on(whole, CUT)
        self.assertEqual(refused.exception.code, "answer_not_found")

    async def test_the_button_appears_if_a_model_can_write_the_rest(self):
        former = await self.cut()
        await in_database(self.client.force_login, self.user)
        page = f"/c/{former.conversation_id}/"
        button = f'action="{page}m/1/continue"'
        with override_settings(CHAT_MODEL="scripted"):
            self.assertIn(button, (await in_database(self.client.get, page)).content.decode())
        self.assertNotIn(button, (await in_database(self.client.get, page)).content.decode())
        await self.go_on(former, ScriptedModel(words=REST))
        with override_settings(CHAT_MODEL="scripted"):
            self.assertNotIn("/continue", (await in_database(self.client.get, page)).content.decode())
