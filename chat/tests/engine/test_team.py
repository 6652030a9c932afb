"""Several agents answering one question, each in a message of its own."""

from contextlib import aclosing

from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.events import ContextReady, Finished, MessageDone, MessageStarted, TextDelta
from chat.llm import ModelError, configured_model, use_model
from chat.models import Agent, JournalEntry
from chat.requests import RunRequest
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from history.models import Conversation, Message
from ingestion.tests.factories import command_principal, make_document, make_user

QUESTION = "Carry over leave until when?"


class TeamModel(ScriptedModel):
    """A model that answers with its agent's instructions."""

    async def answer(self, prompt):
        self.words = [f"I am {prompt.instructions} ", "[guide.md]."]
        async for part in super().answer(prompt):
            yield part


@override_settings(JOURNAL_FLUSH_SECONDS=0.02, QUOTING_WORDS_PER_SECOND=10_000)
class TeamTests(TransactionTestCase):
    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        make_document(
            everyone=True,
            texts=[
                "Employees may carry over five days of leave until 31 March.",
                "Leave that is carried over is used first. Carry over is asked for on form P7.",
            ],
        )
        Agent.objects.all().delete()
        for order, name in enumerate(["Ann", "Bob", "Cem"]):
            Agent.objects.create(name=name, description=f"is {name}", instructions=name.lower(), order=order)
        Agent.objects.create(name="Idle", description="-", instructions="idle", active=False)

    async def ask(self, model=None, conversation=None, team=None, question=QUESTION):
        team = conversation is None if team is None else team
        request = RunRequest(question, conversation, team=team)
        with use_model(model or configured_model()):
            accepted = await in_database(runs.begin, self.principal, request)
            runs.start(accepted)
            return accepted, await self.collect(accepted)

    async def collect(self, accepted):
        async with aclosing(runs.follow(self.principal, accepted.run_id)) as numbered:
            return [event async for _, event in numbered]

    async def messages(self, accepted):
        rows = Message.objects.filter(conversation=accepted.conversation_id).order_by("position")
        return await in_database(list, rows)

    async def test_each_agent_answers_in_order_and_sees_the_earlier_answers(self):
        model = TeamModel()
        accepted, events = await self.ask(model)
        _, *answers = await self.messages(accepted)
        self.assertEqual([row.agent_name for row in answers], ["Ann", "Bob", "Cem"])
        self.assertEqual(
            [row.content for row in answers], [f"I am {name} [guide.md]." for name in ("ann", "bob", "cem")]
        )
        self.assertEqual({row.state for row in answers}, {"complete"})
        self.assertEqual(
            [[each.agent for each in prompt.contributions] for prompt in model.prompts],
            [[], ["Ann"], ["Ann", "Bob"]],
        )
        started = [event for event in events if isinstance(event, MessageStarted)]
        self.assertEqual([event.message_id for event in started], [str(row.pk) for row in answers])
        contexts = [event for event in events if isinstance(event, ContextReady)]
        self.assertEqual(
            [context.message_id for context in contexts], [event.message_id for event in started]
        )
        self.assertTrue(all(context.sources for context in contexts))
        self.assertEqual(events[-1], Finished("complete"))
        conversation = await in_database(Conversation.objects.get, pk=accepted.conversation_id)
        self.assertEqual(conversation.mode, "multiAgent")

    async def test_the_conversation_continues_with_the_team(self):
        accepted, _ = await self.ask(TeamModel())
        again, _ = await self.ask(TeamModel(), accepted.conversation_id)
        self.assertEqual(len(await self.messages(again)), 8)

    async def test_the_team_answers_in_a_conversation_that_began_without_it(self):
        alone, _ = await self.ask(ScriptedModel(words=["Alone."]), team=False)
        again, _ = await self.ask(TeamModel(), alone.conversation_id, team=True)
        names = [row.agent_name for row in await self.messages(again)]
        self.assertEqual(names, ["", "", "", "Ann", "Bob", "Cem"])

    async def test_stored_messages_replay_the_same_run(self):
        accepted, events = await self.ask(TeamModel())
        await in_database(JournalEntry.objects.all().delete)
        told = await self.collect(accepted)

        def essence(events):
            text = "".join(
                event.text if isinstance(event, TextDelta) else "|"
                for event in events
                if isinstance(event, TextDelta | MessageStarted)
            )
            return text, [
                event for event in events if isinstance(event, MessageStarted | MessageDone | Finished)
            ]

        self.assertEqual(essence(told), essence(events))

    async def test_a_failure_of_one_agent_keeps_the_earlier_answers(self):
        class Failing(TeamModel):
            async def answer(self, prompt):
                self.error = ModelError("upstream_unavailable") if prompt.contributions else None
                async for part in super().answer(prompt):
                    yield part

        accepted, _ = await self.ask(Failing())
        _, first, second = await self.messages(accepted)
        self.assertEqual((first.state, first.content), ("complete", "I am ann [guide.md]."))
        self.assertEqual(
            (second.state, second.content, second.error_code),
            ("interrupted", "I am bob [guide.md].", "upstream_unavailable"),
        )

    async def test_the_run_of_a_dead_process_ends_message_by_message(self):
        request = RunRequest(QUESTION, team=True)
        accepted = await in_database(runs.begin, self.principal, request)
        journal = [
            ["MessageStarted", {"message_id": str(accepted.answer_id), "agent": "Ann", "created_at": ""}],
            ["TextDelta", "Whole."],
            ["MessageDone", {"finish_reason": "stop", "citations": []}],
        ]
        await in_database(
            JournalEntry.objects.create, run_id=accepted.run_id, first=1, last=3, events=journal
        )
        await in_database(runs.expire_all)
        _, first = await self.messages(accepted)
        self.assertEqual((first.state, first.content), ("complete", "Whole."))

    async def test_a_coordinator_picks_and_ends(self):
        model = TeamModel(speakers=["", "cem.", "Bob", "nobody"])
        with override_settings(AGENT_COORDINATOR=True):
            accepted, _ = await self.ask(model)
        self.assertEqual(
            [row.agent_name for row in (await self.messages(accepted))[1:]], ["Ann", "Cem", "Bob"]
        )

    async def test_the_number_of_agent_turns_is_limited(self):
        model = TeamModel(speakers=["", *["Bob"] * 50])
        with override_settings(AGENT_COORDINATOR=True, AGENT_TURNS=4):
            accepted, _ = await self.ask(model)
        self.assertEqual(len(await self.messages(accepted)), 5)

    async def test_without_agents_the_site_answers_alone(self):
        await in_database(Agent.objects.update, active=False)
        accepted, _ = await self.ask(ScriptedModel(words=["Alone."]))
        self.assertEqual(
            [(row.agent_name, row.content) for row in (await self.messages(accepted))[1:]], [("", "Alone.")]
        )

    async def test_without_a_model_a_team_is_not_offered_and_one_answer_is_given(self):
        self.assertEqual(await in_database(runs.team_size), 0)
        accepted, _ = await self.ask()
        _, *answers = await self.messages(accepted)
        self.assertEqual([row.agent_name for row in answers], [""])
        self.assertIn("five days", answers[0].content)

    async def test_a_conversation_of_a_team_continues_with_it_once_there_is_a_model(self):
        accepted, _ = await self.ask()
        with use_model(TeamModel()):
            self.assertEqual(await in_database(runs.team_size), 3)
        again, _ = await self.ask(TeamModel(), accepted.conversation_id)
        self.assertEqual((accepted.by_team, again.by_team), (False, True))

    async def test_any_answer_of_a_team_can_be_regenerated(self):
        accepted, _ = await self.ask(TeamModel())
        *_, last = await self.messages(accepted)
        with use_model(TeamModel()):
            again = await in_database(runs.again, self.principal, last.pk)
        self.assertTrue(again.by_team)
        self.assertEqual(again.question_id, accepted.question_id)
