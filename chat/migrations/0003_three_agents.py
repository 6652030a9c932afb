"""Add three agents, which administrators can change."""

from django.db import migrations

AGENTS = [
    {
        "name": "Researcher",
        "description": "Finds the facts in the documents and quotes them.",
        "instructions": "You are the Researcher of a team. State the facts in the sources that bear on the "
        "question, each with its citation, as a short list. Draw no conclusions.",
        "may_search": True,
        "order": 1,
    },
    {
        "name": "Reviewer",
        "description": "Checks what was said against the documents and names what is missing or contradicts.",
        "instructions": "You are the Reviewer of a team. Check what the others have said against the sources: "
        "name errors, conditions, exceptions and what is missing, each with its citation. Where everything "
        "holds, say so in one sentence.",
        "may_search": True,
        "order": 2,
    },
    {
        "name": "Editor",
        "description": "Writes the final answer in plain words from what the others found.",
        "instructions": "You are the Editor of a team. Write the final answer from what the others have found: "
        "two or three plain sentences that say what to do, with the citations that matter.",
        "may_search": False,
        "order": 3,
    },
]


def create(apps, schema_editor):
    agent = apps.get_model("chat", "Agent")
    for values in AGENTS:
        agent.objects.get_or_create(name=values["name"], defaults=values)


class Migration(migrations.Migration):
    dependencies = [("chat", "0002_agent")]

    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
