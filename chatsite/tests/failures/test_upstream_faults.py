"""A model's server that fails in every way, behind the real site: what people see, and what is stored.

All questions are asked at once, because many wait for a deadline; the tests then check the outcomes.
"""

import html
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from chat.llm.local_server import free_port
from chat.tests.fake_openai import FakeOpenAI, completion_for, mark_of
from chat.tests.upstream_faults import HEADER, KEY
from chatsite.tests.failures import fault_dialects, fault_embeddings
from chatsite.tests.failures.fault_dialects import FORMS
from chatsite.tests.failures.fault_embeddings import DIMENSIONS, FAILS
from chatsite.tests.failures.fault_table import (
    AWAY,
    DEADLINES,
    FAULTS,
    NAMES,
    REST,
    RETRY_AFTER,
    SLACK,
    STATUS,
    long_text,
)
from chatsite.tests.failures.fault_world import Asker, question, until_accepted
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.server import Site, prepared, temporary_folder, wait_for_documents

pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]

IN_FORMS = {
    "unauthorised": ("upstream_misconfigured", ""),
    "no_finish_reason": ("interrupted", "Half an answer"),
}
LONG_TITLE = "a title of 200 MB"
DOWN = [f"down {number}" for number in range(5)]
WIDEST = 30_000_000  # bytes that the two ends of a connection buffer at most
MANY = {"CHATSITE_USER_CONCURRENT_ANSWERS": "200", "CHATSITE_USER_QUESTIONS_PER_MINUTE": "10000"}
# Texts of the fake server's errors, and its name.
SECRETS = [KEY, HEADER, "internal details", "upstream says hello", "Incorrect API key", "Rate limit for"]
SECRETS += ["No such model", "Too long", "rate_limit_exceeded for", "Whatever"]


class World:
    """The outcomes by fault, the requests to the server, and the site's log."""

    def __init__(self):
        self.outcomes = {}
        self.replies = {}  # outcomes of each protocol, by fault_dialects.mark
        self.documents = {}
        self.tries = {}  # {name of a fault: how often a document's vectors were requested}
        self.requests = []
        self.secrets = list(SECRETS)
        self.log = ""

    def asked(self, mark):
        """The requests for a text that belong to a question."""
        chat = [request for request in self.requests if request.path.endswith("/chat/completions")]
        return [request for request in chat if mark_of(request.prompt) == mark]

    def embedded(self, mark, words):
        """The requests for vectors that belong to a text."""
        asked = [request for request in self.requests if request.path.endswith("/embeddings")]
        texts = [(request, " ".join(request.body["input"])) for request in asked]
        return [request for request, text in texts if mark_of(text) == mark and words in text]

    def ask_all(self, asker, faults):
        """Ask the questions that wait all at once, and the others a few at a time, to limit the load."""
        slow = [fault for fault in faults if fault.least]
        quick = [fault for fault in faults if not fault.least]
        with ThreadPoolExecutor(len(slow)) as waiting, ThreadPoolExecutor(6) as working:
            asked = [(fault.name, waiting.submit(asker.ask, fault.name, fault.via)) for fault in slow]
            forms = [working.submit(self.ask_in, asker, form, fault) for form in FORMS for fault in IN_FORMS]
            asked += [(fault.name, working.submit(asker.ask, fault.name, fault.via)) for fault in quick]
        self.outcomes |= {name: future.result() for name, future in asked}
        for future in forms:
            future.result()

    def ask_in(self, asker, form, fault):
        mark = fault_dialects.mark(form, fault)
        ask = partial(fault_dialects.asked, asker.session, form, question(mark))
        self.replies[mark], _ = until_accepted(ask)

    def ask(self, asker, mark, via="stream"):
        self.outcomes[mark] = asker.ask(mark, via)


@contextmanager
def taking_no_connection(port):
    """A listener whose queue is full, so further connections get no response."""
    with socket.socket() as full, socket.socket() as only:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        full.bind(("127.0.0.1", port))
        full.listen(0)
        only.connect(full.getsockname())
        yield


@pytest.fixture(scope="module")
def world():
    found, folder, port = World(), temporary_folder(), free_port()
    found.secrets.append(f"127.0.0.1:{port}")
    address = f"http://127.0.0.1:{port}/v1"
    model = {"CHAT_MODEL": "fake", "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address}
    try:
        prepared(folder, demo=False)
        with Site(folder, **model, **fault_embeddings.SETTINGS, **DEADLINES, **MANY) as site:
            fill(found, site, port)
        found.log = site.output
        yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fill(found, site, port):
    """Ask everything. A good answer in between resets the site's count of consecutive failures."""
    with FakeOpenAI(port) as first:
        first.dimensions = DIMENSIONS
        prepare(first)
        wait_for_documents(site)
        asker = Asker(site)
        fault_embeddings.upload(asker.session)
        found.documents = fault_embeddings.told(site)
        found.requests = list(first.requests)
        found.tries = {fault.name: len(found.embedded(fault.name, "Trams")) for fault in FAILS}
        found.ask_all(asker, FAULTS)
        first.side = lambda request: long_text
        found.ask(asker, LONG_TITLE)
        first.side = completion_for
        for fault in FAILS:
            found.ask(asker, fault.name, "whole")
            found.ask(asker, "good", "whole")
    found.ask(asker, "refused")
    with taking_no_connection(port):
        found.ask(asker, "a black hole", "whole")
    with FakeOpenAI(port) as second:
        second.dimensions = DIMENSIONS
        found.ask(asker, "back")
        for mark in DOWN:
            second.script_for(mark, "error_503")
            found.ask(asker, mark)
        found.ask(asker, "left alone")
        time.sleep(REST)
        found.ask(asker, "asked again")
    found.requests = [*first.requests, *second.requests]


def prepare(fake):
    for fault in FAULTS:
        fake.script_for(fault.name, *fault.script)
    for form in FORMS:
        for fault in IN_FORMS:
            fake.script_for(fault_dialects.mark(form, fault), fault)
    fake.embeddings = {fault.name: fault.behave for fault in FAILS}


def by_name(name):
    return next(fault for fault in [*FAULTS, *AWAY] if fault.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_has_its_state_its_message_and_the_received_text(world, name):
    fault, told = by_name(name), world.outcomes[name]
    row, message = told.row, told.history[-1]
    assert (row["state"], row["error_code"], row["finish_reason"]) == (fault.state, fault.code, fault.reason)
    assert fault.is_text(row["content"]), row["content"][:200]
    assert told.request in (row["request_id"], "")
    assert row["request_id"], "nobody could find it in the log"
    assert message["content"] == row["content"]
    assert message["status"] == ("completed" if fault.state == "complete" else "failed")
    assert message["error"] == ({"message": fault.words, "code": fault.code} if fault.code else None)
    assert f'data-state="{fault.state}"' in told.page
    assert fault.note in html.unescape(told.page)
    assert told.text in (None, row["content"])
    assert told.error == (fault.note if fault.via == "socket" else fault.words)
    if fault.via == "whole":
        assert told.status == (STATUS.get(fault.code, 502) if fault.code else 200)
    assert fault.least <= told.seconds < fault.least + SLACK
    for request in world.asked(name):
        if request.closed_at:
            assert request.closed_at - request.at < fault.least + SLACK / 3, (
                "the connection was held for longer"
            )


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_causes_the_expected_number_of_requests(world, name):
    fault = by_name(name)
    asked = world.asked(name)
    assert sum(request.streaming for request in asked) == fault.calls
    if fault.state != "complete":
        assert len(asked) == fault.calls, "no title and no follow-up is asked for"


@pytest.mark.parametrize("name", NAMES)
def test_no_other_text_of_the_server_is_shown(world, name):
    told = world.outcomes[name]
    assert [secret for secret in world.secrets if secret in told.everything] == []


def test_no_other_text_of_the_server_is_logged(world):
    assert [secret for secret in world.secrets if secret in world.log] == []


@pytest.mark.parametrize("name", [fault.name for fault in [*FAULTS, *AWAY] if fault.via == "whole"])
def test_a_model_that_keeps_failing_says_when_to_ask_again(world, name):
    told = world.outcomes[name]
    if told.status in (429, 502, 504):
        assert int(told.retry_after) == RETRY_AFTER.get(name, 10)
    else:
        assert told.retry_after is None


@pytest.mark.parametrize("name", NAMES)
def test_each_failure_of_the_model_is_one_short_line_of_the_log(world, name):
    fault, identifier = by_name(name), world.outcomes[name].row["request_id"]
    lines = [line for line in world.log.splitlines() if identifier in line]
    failures = max(fault.calls, 1) if fault.code else fault.calls - 1
    # The log line with the same id.
    of_the_model = [line for line in lines if '"ingestion.search' not in line]
    assert len(of_the_model) == failures, lines
    assert all(len(line) < 400 for line in lines), lines


def test_a_redirect_is_not_followed(world):
    assert {request.path for request in world.requests} == {"/v1/chat/completions", "/v1/embeddings"}


def test_an_endless_line_is_not_read_to_its_end(world):
    for name in ("a line of 200 MB", "a line of 200 MB after text", "500 with a body of 200 MB"):
        (request,) = world.asked(name)
        assert request.sent < WIDEST


def test_an_endless_title_is_not_read_to_its_end_and_the_answer_stays(world):
    assert world.outcomes[LONG_TITLE].row["state"] == "complete"
    streams = [request for request in world.asked(LONG_TITLE) if request.streaming]
    sides = [request for request in world.asked(LONG_TITLE) if not request.streaming]
    assert (len(streams), [request.sent < WIDEST for request in sides]) == (1, [True])


def test_a_shortened_context_has_fewer_sources(world):
    first, second = (request for request in world.asked("400 for too long a context") if request.streaming)
    assert len(second.prompt) < len(first.prompt)


def test_a_recovered_server_gets_requests_at_once_after_a_few_failures(world):
    assert world.outcomes["back"].row["state"] == "complete"


def test_a_server_that_keeps_failing_is_paused_and_then_probed(world):
    assert {world.outcomes[mark].row["error_code"] for mark in DOWN} == {"upstream_unavailable"}
    assert [len(world.asked(mark)) for mark in DOWN] == [1] * len(DOWN)
    alone = world.outcomes["left alone"]
    assert (alone.row["state"], alone.row["error_code"]) == ("failed", "upstream_unavailable")
    assert world.asked("left alone") == []
    assert world.outcomes["asked again"].row["state"] == "complete"


@pytest.mark.parametrize("fault", IN_FORMS)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_each_protocol_reports_a_fault_in_its_own_form(world, form, fault):
    code, text = IN_FORMS[fault]
    status, last, everything = world.replies[fault_dialects.mark(form, fault)]
    assert status == fault_dialects.status(form, code, text)
    assert last["error"] == fault_dialects.error(form, code)
    assert [secret for secret in world.secrets if secret in everything] == []
    if text and form.keeps_text:
        assert text in (last.get("content"), last.get("Items", [{}])[0].get("Text"))


@pytest.mark.parametrize("name", [fault.name for fault in FAILS])
def test_a_question_without_a_vector_is_searched_by_its_words(world, name):
    told = world.outcomes[name]
    assert (told.status, told.row["state"]) == (200, "complete")
    assert told.thought("has_vector") is False
    assert world.outcomes["good"].thought("has_vector") is True
    assert len(world.embedded(name, "When must")) == 1
    assert [secret for secret in world.secrets if secret in told.everything] == []


@pytest.mark.parametrize("fault", FAILS, ids=lambda fault: fault.name)
def test_a_document_without_vectors_waits_or_fails_with_its_reason(world, fault):
    assert world.documents[fault.document] == (fault.state, fault.reason)
    assert world.tries[fault.name] == 1
