"""A row in each table, for tests that must keep data of every kind.

An earlier version of the site also runs this module, for its own tables (test_two_versions), so it imports
nothing of the site.
"""

from uuid import uuid4

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import NOT_PROVIDED
from django.utils import timezone
from pgvector.django import HalfVectorField


def fill_tables():
    """Give each empty table that the site writes a row."""
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed:
            fill(model)


def counted_rows():
    """How many rows each table has, by its name."""
    with connection.cursor() as cursor:
        counts = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
            counts[table] = cursor.fetchone()[0]
    return counts


def fill(model):
    """Give an empty table a row, with a value in each required column."""
    rows = model._base_manager
    if rows.exists():
        return
    values = {}
    for field in model._meta.concrete_fields:
        given = field.has_default() or field.db_default is not NOT_PROVIDED or field.generated
        if field.null or given or isinstance(field, models.AutoField):
            continue
        if field.is_relation:
            fill(field.related_model)
            values[field.attname] = field.related_model._base_manager.values_list("pk", flat=True).first()
        else:
            values[field.attname] = some_value(field)
    rows.bulk_create([model(**values)])


def some_value(field):
    if isinstance(field, HalfVectorField):
        return [0.5] * 3
    if isinstance(field, ArrayField):
        return []
    kinds = {
        models.DateTimeField: timezone.now(),
        models.DateField: timezone.localdate(),
        models.JSONField: {},
        models.UUIDField: uuid4(),
        models.BinaryField: b"x",
        models.BooleanField: True,
        models.GenericIPAddressField: "192.0.2.1",
        models.IntegerField: 1,
        models.FloatField: 1.0,
    }
    return next((value for kind, value in kinds.items() if isinstance(field, kind)), "x")
