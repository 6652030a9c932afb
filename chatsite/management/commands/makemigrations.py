"""`manage.py makemigrations`: writes migrations only for changes that concern the database."""

from django.core.management.commands import makemigrations

from chatsite.db.schema_changes import SchemaAutodetector


class Command(makemigrations.Command):
    autodetector = SchemaAutodetector
