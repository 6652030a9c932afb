"""A model that sends only white space or brackets: other people are served meanwhile."""

import threading
import time

import pytest

from chatsite.tests.faults import PASSWORD, new_token, upload
from chatsite.tests.limits import MARGIN_SECONDS

pytestmark = pytest.mark.server

MAX_SECONDS = 1.0  # longest wait of other people; with the fault it was 11 s
STATE = (
    "SELECT answer.state, length(answer.content) FROM history_message AS question"
    " JOIN chat_run AS run ON run.question_id = question.id"
    " JOIN history_message AS answer ON answer.id = run.answer_id WHERE question.content LIKE %s"
)
READY = "SELECT count(*) FROM ingestion_document WHERE name = %s AND status = 'ready'"


def until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)


class PagePoller(threading.Thread):
    """Another person, who requests a small page again and again."""

    def __init__(self, session):
        super().__init__(daemon=True)
        self.session, self.waits, self.over = session, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            begun = time.monotonic()
            assert self.session.get("/healthz").status == 200
            self.waits.append(time.monotonic() - begun)


@pytest.mark.parametrize("filling", ["spaces", "tabs", "lines", "brackets"])
def test_an_answer_of_190_000_spaces_does_not_delay_other_people(fault_site, filling):
    owner, name, token = new_token("u"), f"{new_token()}.txt", new_token()
    fault_site.caller(owner)
    session = fault_site.sign_in(owner, PASSWORD)
    assert upload(session, name, f"The {token} ferry leaves at ten.".encode())[0] == 201
    until(lambda: fault_site.query(READY, name) == [(1,)], 30)
    others = [PagePoller(fault_site.session()) for _ in range(2)]
    for other in others:
        other.start()
    caller = fault_site.caller()
    asking, asked = caller.ask(f"fill {token} with 190000 times {filling} around {name}: the {token} ferry")
    page = threading.Thread(target=asked.read, daemon=True)
    page.start()
    until(lambda: [state for state, _ in fault_site.query(STATE, f"%{token}%")] == ["complete"], 60)
    for other in others:
        other.over.set()
        other.join(10)
    asking.close()
    [(_, length)] = fault_site.query(STATE, f"%{token}%")
    assert length > 190_000, "the whole of it was answered"
    assert min(len(other.waits) for other in others) >= 5, "others were served meanwhile"
    assert max(max(other.waits) for other in others) < MAX_SECONDS + MARGIN_SECONDS
