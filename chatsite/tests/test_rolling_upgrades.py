"""Migrations are such that the version before them still works on the database: docs/deploy.md, Upgrade.

While machines are upgraded one after the other, both versions run. So a release only adds; what nobody
uses any more goes with the next one, in a migration that says so:

    class Migration(migrations.Migration):
        contract = "0.4 reads `place`; 0.3 was the last that read `position`."
"""

from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.test import SimpleTestCase

# The last of each app in 0.2.0, with which the rule begins: whoever comes from before stops all machines.
BASELINE = {"accounts": 10, "chat": 8, "history": 9, "ingestion": 11}

TAKES_AWAY = (
    migrations.RemoveField,
    migrations.RenameField,
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.AlterModelTable,
    migrations.AddConstraint,  # the version before knows nothing of it, and may write what it forbids
    migrations.AlterUniqueTogether,
)


def operations_of(migration):
    """Those that change the database."""
    for operation in migration.operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from operation.database_operations
        else:
            yield operation


def problem(operation, before):
    """What the version before would stumble over, or "". `before` is the state of the models until then."""
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
    """Of a migration that does not say why it may; `before` gives the state before one of its operations."""
    if getattr(migration, "contract", ""):
        return []
    found = []
    for operation in operations_of(migration):
        name = getattr(operation, "model_name_lower", "")
        if text := problem(operation, before(name) if isinstance(operation, migrations.AlterField) else None):
            found.append(f"{migration.app_label}.{migration.name}: {text}.")
    return found


class MigrationsSinceTheFirstRelease(SimpleTestCase):
    def test_each_leaves_the_version_before_at_work_or_says_why_it_may_not(self):
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

    def test_what_is_used_is_not_taken_away(self):
        for operation in (
            migrations.RemoveField("run", "lease"),
            migrations.RenameField("run", "lease", "until"),
            migrations.DeleteModel("Run"),
            migrations.SeparateDatabaseAndState([migrations.RemoveField("run", "lease")]),
        ):
            self.assertEqual(len(self.judged(operation)), 1, operation)

    def test_but_may_be_where_the_migration_says_who_used_it_last(self):
        self.assertEqual(
            self.judged(migrations.RemoveField("run", "lease"), contract="0.3 was the last."), []
        )

    def test_a_new_column_is_empty_or_has_a_default_in_the_database(self):
        self.assertEqual(len(self.judged(migrations.AddField("run", "a", models.IntegerField(default=0)))), 1)
        for field in (models.IntegerField(null=True), models.IntegerField(db_default=0)):
            self.assertEqual(self.judged(migrations.AddField("run", "a", field)), [])

    def test_a_column_gets_no_narrower(self):
        wide, narrow = models.CharField(max_length=20, null=True), models.CharField(max_length=10)
        self.assertEqual(len(self.judged(migrations.AlterField("run", "a", narrow), a=wide)), 1)
        self.assertEqual(self.judged(migrations.AlterField("run", "a", wide), a=narrow), [])
        self.assertEqual(len(self.judged(migrations.AlterField("run", "a", models.TextField()), a=narrow)), 1)

    def test_new_tables_and_indexes_are_free(self):
        table = migrations.CreateModel("Note", [("id", models.AutoField(primary_key=True))])
        index = migrations.AddIndex("run", models.Index(fields=["id"], name="i"))
        self.assertEqual(self.judged(table, index), [])
