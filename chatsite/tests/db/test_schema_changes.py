"""Migrations record what concerns the database, and no texts of the admin."""

import pytest
from django.db import models
from django.db.migrations.state import ModelState, ProjectState

from chatsite.db.schema_changes import SchemaAutodetector

WAYS = [("a", "first"), ("b", "second")]
BEFORE = models.CharField("name", max_length=20, choices=WAYS[:1], help_text="Former text.")


def operations(before, after):
    """The names of the operations that a change of one field needs."""
    states = []
    for field in (before, after):
        state = ProjectState()
        state.add_model(
            ModelState("letters", "Letter", [("id", models.AutoField(primary_key=True)), ("name", field)])
        )
        states.append(state)
    changes = SchemaAutodetector(*states)._detect_changes()
    return [
        type(operation).__name__ for each in changes.values() for one in each for operation in one.operations
    ]


@pytest.mark.parametrize(
    ("after", "needed"),
    [
        (models.CharField("title", max_length=20, choices=WAYS, help_text="New text."), []),
        (models.CharField("name", max_length=30, choices=WAYS[:1], help_text="Former text."), ["AlterField"]),
        (models.CharField("name", max_length=20, null=True), ["AlterField"]),
        (models.TextField("name"), ["AlterField"]),
    ],
    ids=["texts and choices", "length", "null", "another kind"],
)
def test_a_migration_is_needed_only_for_the_database(after, needed):
    assert operations(BEFORE, after) == needed
