"""Checks that repeat while people read: the same number of statements for many readers as for one."""

import asyncio
from contextlib import ExitStack
from unittest.mock import patch

from django.test import TransactionTestCase

from chat.errors import Refused
from chat.events import TextDelta
from chat.models import Run
from chat.requests import RunRequest
from chat.runs import begin, journal
from chat.runs.journal import Batch
from chat.runs.revalidation import AccessRevalidator
from chat.tests.conversations import answered
from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import (
    Principal,
    valid_among,
)
from chatsite.db.threads import in_database
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.tests.factories import command_principal, make_document, make_user


class ValidityTests(TransactionTestCase):
    def keyed(self, name):
        user = make_user(name)
        return Principal(user.pk, "api_key", str(ApiKey.objects.issue(user, "test")[0].pk))

    def test_many_callers_are_looked_up_with_one_query(self):
        principals = [self.keyed(f"reader{number}") for number in range(20)]
        with self.assertNumQueries(1):
            self.assertEqual(valid_among(principals), set(principals))

    def test_a_key_counts_only_for_its_own_user(self):
        mine, theirs = self.keyed("mine"), self.keyed("theirs")
        mixed = Principal(mine.user_id, "api_key", theirs.credential)
        self.assertEqual(valid_among([mine, mixed]), {mine})

    async def test_readers_of_one_process_are_checked_together_and_only_revoked_ones_end(self):
        stays, goes = await in_database(self.keyed, "stays"), await in_database(self.keyed, "goes")
        ended, asked = asyncio.Event(), []
        revalidator = AccessRevalidator()

        def counted(principals):
            asked.append(len(principals))
            return valid_among(principals)

        with ExitStack() as stack:
            stack.enter_context(patch.multiple("chat.runs.revalidation", CHECK_SECONDS=0.05))
            stack.enter_context(patch("chat.runs.revalidation.valid_among", counted))
            access = stack.enter_context(revalidator.watch(stays))
            others = [stack.enter_context(revalidator.watch(goes, lambda end: ended.set())) for _ in range(5)]
            await in_database(ApiKey.objects.filter(pk=goes.credential).delete)
            await asyncio.wait_for(ended.wait(), 5)
            await access.check()
            for other in others:
                with self.assertRaises(Refused):
                    await other.check()
        self.assertEqual(set(asked), {2})


class WritingTests(TransactionTestCase):
    def asked(self, name):
        principal = command_principal(make_user(name))
        return begin(principal, RunRequest("Leave?"))

    def test_many_answers_are_written_and_their_leases_renewed_with_one_statement(self):
        accepted = [self.asked(f"asker{number}") for number in range(8)]
        batches = [Batch(each.run_id, 1, [TextDelta("word ")]) for each in accepted]
        with self.assertNumQueries(1):
            stops = journal.flush([each.run_id for each in accepted], batches)
        self.assertEqual(stops, {each.run_id: False for each in accepted})
        self.assertEqual(Run.objects.exclude(journal=None).count(), 8)

    def test_the_sources_of_many_answers_are_counted_with_one_statement_each_for_its_owner(self):
        document = make_document(everyone=True)
        users = [make_user(f"asker{number}") for number in range(6)]
        answers = [(command_principal(user), answered(user, document)[1].pk) for user in users]
        set_audience(document, Audience(user_ids=frozenset(user.pk for user in users[:4])))
        with self.assertNumQueries(1):
            counts = journal.count_readable_sources(answers)
        readable = {message: 1 for _, message in answers[:4]}
        owner = [pair for pair in answers if pair[0].user_id == document.owner_id]
        self.assertEqual(counts, readable | {message: 1 for _, message in owner})

    def test_a_disabled_account_may_read_no_source(self):
        user = make_user("asker")
        answer = answered(user, make_document(everyone=True))[1].pk
        self.assertEqual(journal.count_readable_sources([(command_principal(user), answer)]), {answer: 1})
        user.is_active = False
        user.save()
        self.assertEqual(journal.count_readable_sources([(command_principal(user), answer)]), {})
