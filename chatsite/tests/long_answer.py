"""A question whose answer is written for some 18 seconds, for tests that must be there before it ends."""

from chatsite.tests.faults import upload

LONG_QUESTION = "What does the roll call of the night watch say?"


def _roll_call(name):
    """A sentence of about 150 words, which is quoted whole."""
    words = f"The {name} roll call of the night watch says"
    number = 0
    while len(words) < 440:
        words += f" {'abcdefghijklmnopqrstuvwxyz'[number % 26]}{number // 26}"
        number += 1
    return words + "."


def add_long_answer(session):
    """A document only for whoever is signed in there; it has to be read before it is asked about."""
    text = "\n\n".join(map(_roll_call, ("first", "second")))
    status, reply = upload(session, "night-watch.txt", text.encode(), who="me")
    assert status == 201, reply
