"""A question whose answer takes some 18 seconds, for tests that need an unfinished answer."""

from chatsite.tests.faults import upload
from chatsite.tests.server import wait_for_documents

LONG_QUESTION = "What does the roll call of the night watch say?"


def _roll_call(name):
    """A sentence of about 150 words, which is quoted completely."""
    words = f"The {name} roll call of the night watch says"
    number = 0
    while len(words) < 440:
        words += f" {'abcdefghijklmnopqrstuvwxyz'[number % 26]}{number // 26}"
        number += 1
    return words + "."


def add_long_answer(site, session):
    """Add a document that only the signed-in person can read, and wait until it has been read."""
    text = "\n\n".join(map(_roll_call, ("first", "second")))
    status, reply = upload(session, "night-watch.txt", text.encode(), who="me")
    assert status == 201, reply
    wait_for_documents(site)
