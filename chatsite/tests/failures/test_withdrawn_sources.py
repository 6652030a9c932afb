"""A document whose access is revoked while an answer cites it; two web processes, real sockets."""

import json
import re
import time

import pytest

from chatsite.tests.faults import PASSWORD, at_once, new_token, question_for, upload
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS

pytestmark = pytest.mark.server

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
IDENTIFIER = "SELECT public_id::text FROM ingestion_document WHERE name = %s AND status = 'ready'"


def ready(fault_site, name):
    """The identifier of a document that has been read."""
    deadline = time.monotonic() + HANG_SECONDS
    while not (rows := fault_site.query(IDENTIFIER, name)):
        assert time.monotonic() < deadline, "the document was not read"
        time.sleep(0.05)
    return rows[0][0]


def change(session, identifier, what, **fields):
    """Change the rights as the owner does on the document's page."""
    path = f"/documents/{identifier}/"
    fields["csrfmiddlewaretoken"] = TOKEN.search(session.get(path).text).group(1)
    assert session.post(f"{path}{what}/", fields).status == 302


@pytest.mark.parametrize("what", ["rights", "delete"])
def test_an_answer_from_a_withdrawn_document_ends_within_two_seconds_for_all_who_follow_it(fault_site, what):
    owner, name, token = new_token("u"), f"{new_token()}.txt", new_token()
    fault_site.caller(owner)
    session = fault_site.sign_in(owner, PASSWORD)
    assert upload(session, name, f"The {token} ferry sails at nine.".encode())[0] == 201
    identifier = ready(fault_site, name)
    caller = fault_site.caller()
    asking, asked = caller.ask(f"{question_for(token, 1000, 20)}: when does the {token} ferry sail?")
    run = asked.headers["Chat-Run"]
    reading, events = caller.events(run)
    assert b"sails at nine" in asked.readline(), "it is written from the document"
    told = [events.readline() for _ in range(5)]
    assert b"sails at nine" in b"".join(told), "and its readers are told so"
    change(session, identifier, what, **({"who": "me"} if what == "rights" else {}))
    withdrawn = time.monotonic()
    ends = at_once(asked.read, events.read)
    assert time.monotonic() - withdrawn < 2 + MARGIN_SECONDS
    state, code, text = fault_site.ended(token, 2)
    assert (state, code) == ("interrupted", "interrupted")
    assert text, "what was written stays its owner's"
    assert "error" in json.loads(ends[0].splitlines()[-1])
    assert json.loads(ends[1].splitlines()[-1])["error"]["code"] == "interrupted"
    again = caller.request("GET", f"/chat/runs/{run}/events").text
    assert "sails at nine" not in again
    asking.close()
    reading.close()
