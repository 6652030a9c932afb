"""The previous version still works after the migrations of this one: docs/deploy.md, Upgrade.

While machines are upgraded one after the other, both versions run. A release therefore only adds columns and
tables; those that are no longer used are removed by the next release, in a migration that says so:

    class Migration(migrations.Migration):
        contract = "0.4 reads `place`; 0.3 was the last that read `position`."
"""

from django.apps import apps
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.test import SimpleTestCase, TestCase
from django.utils import timezone

from chat.models import DocumentUse
from chat.unanswered.models import UnansweredQuestion
from chatsite.db.foreign_keys import act_on_delete
from history.models import Conversation, Feedback, Message, Project, Share
from ingestion.access.lists import Audience, access_list_for
from ingestion.models import Document, ExternalId, Passage
from ingestion.tests.factories import make_document, make_user

# The last of each app in 0.2.0, from which the rule applies. Upgrades from before it stop all machines.
BASELINE = {"accounts": 10, "chat": 8, "history": 9, "ingestion": 11}

TAKES_AWAY = (
    migrations.RemoveField,
    migrations.RenameField,
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.AlterModelTable,
    migrations.AddConstraint,  # the previous version does not know it, and may write what it forbids
    migrations.AlterUniqueTogether,
)


def operations_of(migration):
    """The operations that change the database."""
    for operation in migration.operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from operation.database_operations
        else:
            yield operation


def problem(operation, before):
    """Why the previous version would fail, or "". `before` is the state of the models until then."""
    if isinstance(operation, TAKES_AWAY):
        return f"{type(operation).__name__} takes away what the version before uses"
    if isinstance(operation, migrations.AddField):
        field = operation.field
        optional = field.null or field.many_to_many or field.has_db_default() or field.generated
        return "" if optional else f"rows of the version before have no {operation.name}: null or db_default"
    if isinstance(operation, migrations.AlterField):
        old, new = before.fields[operation.name], operation.field
        if type(old) is not type(new):
            return f"{operation.name} becomes another kind of field"
        if old.null and not new.null:
            return f"the version before may leave {operation.name} empty"
        if (new.max_length or 0) < (old.max_length or 0) or (new.unique and not old.unique):
            return f"the version before may write what {operation.name} no longer takes"
    return ""


def problems(migration, before):
    """The faults of a migration without `contract`; `before` gives the state before one of its operations."""
    if getattr(migration, "contract", ""):
        return []
    found = []
    for operation in operations_of(migration):
        name = getattr(operation, "model_name_lower", "")
        if text := problem(operation, before(name) if isinstance(operation, migrations.AlterField) else None):
            found.append(f"{migration.app_label}.{migration.name}: {text}.")
    return found


class MigrationsSinceTheFirstRelease(SimpleTestCase):
    def test_each_migration_keeps_the_previous_version_working_or_says_why_not(self):
        loader = MigrationLoader(None)
        found = []
        for (app, name), migration in sorted(loader.disk_migrations.items()):
            if app in BASELINE and int(name[:4]) > BASELINE[app]:
                state = loader.project_state((app, name), at_end=False)
                found += problems(migration, lambda model, app=app, state=state: state.models[app, model])
        self.assertEqual(found, [])


class Rules(SimpleTestCase):
    def judged(self, *operations, contract="", **fields):
        migration = migrations.Migration("0009_next", "chat")
        migration.operations, migration.contract = list(operations), contract
        state = migrations.state.ModelState(
            "chat", "Run", [("id", models.AutoField(primary_key=True)), *fields.items()]
        )
        return problems(migration, lambda model: state)

    def test_columns_in_use_are_not_removed(self):
        for operation in (
            migrations.RemoveField("run", "lease"),
            migrations.RenameField("run", "lease", "until"),
            migrations.DeleteModel("Run"),
            migrations.SeparateDatabaseAndState([migrations.RemoveField("run", "lease")]),
        ):
            self.assertEqual(len(self.judged(operation)), 1, operation)

    def test_columns_may_be_removed_if_the_migration_names_their_last_user(self):
        self.assertEqual(
            self.judged(migrations.RemoveField("run", "lease"), contract="0.3 was the last."), []
        )

    def test_a_new_column_is_empty_or_has_a_default_in_the_database(self):
        self.assertEqual(len(self.judged(migrations.AddField("run", "a", models.IntegerField(default=0)))), 1)
        for field in (models.IntegerField(null=True), models.IntegerField(db_default=0)):
            self.assertEqual(self.judged(migrations.AddField("run", "a", field)), [])

    def test_a_column_does_not_become_narrower(self):
        wide, narrow = models.CharField(max_length=20, null=True), models.CharField(max_length=10)
        self.assertEqual(len(self.judged(migrations.AlterField("run", "a", narrow), a=wide)), 1)
        self.assertEqual(self.judged(migrations.AlterField("run", "a", wide), a=narrow), [])
        self.assertEqual(len(self.judged(migrations.AlterField("run", "a", models.TextField()), a=narrow)), 1)

    def test_new_tables_and_indexes_are_allowed(self):
        table = migrations.CreateModel("Note", [("id", models.AutoField(primary_key=True))])
        index = migrations.AddIndex("run", models.Index(fields=["id"], name="i"))
        self.assertEqual(self.judged(table, index), [])


ACTIONS = {"CASCADE": "c", "SET_NULL": "n"}  # Django's actions, as PostgreSQL stores them
FOREIGN_KEYS = """
    SELECT key.conrelid::regclass::text, attribute.attname, key.confdeltype::text
    FROM pg_constraint AS key
    JOIN pg_attribute AS attribute ON attribute.attrelid = key.conrelid AND attribute.attnum = key.conkey[1]
    WHERE key.contype = 'f'
"""


def former():
    """The models of the release from which the rule applies."""
    loader = MigrationLoader(None)
    numbers = {(app, int(name[:4])): name for app, name in loader.disk_migrations if app in BASELINE}
    return loader.project_state([(app, numbers[app, number]) for app, number in BASELINE.items()]).apps


def left_to_the_database():
    """{(table, column): action} of references that this release does not know, and does not delete.

    Rows that are deleted in this way may have references of further tables.
    """
    known = {
        model._meta.db_table: {field.column for field in model._meta.local_fields}
        for model in former().get_models(include_auto_created=True)
    }
    keys = [
        (model._meta.db_table, field.column, field.remote_field.model._meta.db_table, action)
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.local_fields
        if field.remote_field and model._meta.app_label in BASELINE
        if (action := ACTIONS.get(field.remote_field.on_delete.__name__))
    ]
    emptied, found = set(known), {}
    unseen = [key for key in keys if key[1] not in known.get(key[0], ())]
    while more := [key for key in unseen if key[2] in emptied and key[:2] not in found]:
        found |= {key[:2]: key[3] for key in more}
        emptied |= {key[0] for key in more if key[3] == "c"}
        cascading = {key[0] for key in more if key[3] == "c"}
        unseen += [key for key in keys if key[2] in cascading]
    return found


class WhatTheVersionBeforeDeletes(TestCase):
    maxDiff = None

    """It deletes rows without knowing which new tables refer to them; PostgreSQL deletes or empties those."""

    def test_each_new_foreign_key_acts_in_the_database(self):
        with connection.cursor() as cursor:
            cursor.execute(FOREIGN_KEYS)
            acting = {(table, column): action for table, column, action in cursor.fetchall() if action != "a"}
        wanted = left_to_the_database()
        self.assertIn(("chat_unansweredquestion", "message_id"), wanted)
        missing = sorted(key for key, action in wanted.items() if acting.get(key) != action)
        self.assertEqual(missing, [], "see act_on_delete")

    def deleted(self, app, model, row):
        """Delete a row as the previous version does, and check foreign keys as a commit does."""
        with connection.cursor() as cursor:
            former().get_model(app, model).objects.filter(pk=row.pk).delete()
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def judged_conversation(self):
        owner = make_user()
        conversation = Conversation.objects.create(owner=owner)
        question, answer = (
            Message.objects.create(conversation=conversation, position=number, role=role, content="Text")
            for number, role in enumerate(("user", "assistant"))
        )
        UnansweredQuestion.objects.create(
            message=question,
            conversation=conversation,
            owner=owner,
            asked_at=timezone.now(),
            reasons=["nothing"],
            digest="0" * 64,
            answers=[answer.pk],
            shown=[],
            cited=[],
        )
        return conversation, question

    def test_a_question_that_was_judged(self):
        for conversation, question in (self.judged_conversation(), self.judged_conversation()):
            self.deleted("history", "Message", question)
            self.assertFalse(UnansweredQuestion.objects.filter(conversation=conversation).exists())

    def test_a_conversation_and_its_owner(self):
        for app, model, row in (
            ("history", "Conversation", lambda conversation: conversation),
            ("accounts", "User", lambda conversation: conversation.owner),
        ):
            conversation, _ = self.judged_conversation()
            self.deleted(app, model, row(conversation))
            self.assertFalse(UnansweredQuestion.objects.exists())
            self.assertFalse(Message.objects.exists())

    def test_a_document_with_all_that_refers_to_it(self):
        owner = make_user()
        archive = make_document("board.zip", owner=owner)
        part = make_document("part.md", owner=owner, part_of=archive)
        ExternalId.objects.create(document=archive, owner=owner, external_id="board")
        DocumentUse.objects.create(document=part, day=timezone.now().date(), found=1, cited=1)
        self.deleted("ingestion", "Document", archive)
        for model in (Document, Passage, ExternalId, DocumentUse):
            self.assertFalse(model.objects.exists(), model)

    def test_a_member_whose_rows_stay_without_them(self):
        owner, reader = make_user(), make_user()
        project = Project.objects.create(owner=owner, name="Ferry")
        conversation = Conversation.objects.create(owner=reader, project=project)
        self.deleted("accounts", "User", owner)
        conversation.refresh_from_db()
        self.assertIsNone(conversation.project_id)

    def test_a_message_with_feedback_and_a_share(self):
        conversation, question = self.judged_conversation()
        Feedback.objects.create(message=question, rating="good")
        access_list = access_list_for(Audience(everyone=True), conversation.owner_id)
        Share.objects.create(conversation=conversation, answer=question, up_to=1, access_list=access_list)
        self.deleted("history", "Conversation", conversation)
        self.assertFalse(Feedback.objects.exists() or Share.objects.exists())

    def test_rows_that_are_there_before_the_migration(self):
        make_document(owner=make_user())
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for statement in act_on_delete("CASCADE", ["ingestion_passage.document_id"]):
                cursor.execute(statement)
            cursor.execute(FOREIGN_KEYS)
            self.assertIn(("ingestion_passage", "document_id", "c"), cursor.fetchall())
