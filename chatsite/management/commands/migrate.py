"""`manage.py migrate`: reports missing migrations only for changes that concern the database."""

from django.core.management.commands import migrate

from chatsite.db.schema_changes import SchemaAutodetector


class Command(migrate.Command):
    autodetector = SchemaAutodetector
