"""More questions than allowed, at two web processes at once: limits are exact, and refusals quick."""

import shutil
import time
from functools import partial

import pytest

from chatsite.tests.faults import FaultSite, Upstream, answer_to, at_once, new_token, question_for
from chatsite.tests.limits import MARGIN_SECONDS
from chatsite.tests.server import prepared, temporary_folder

pytestmark = pytest.mark.server

AT_ONCE, A_MINUTE, OF_A_PROCESS = 6, 9, 10
ALLOW = """
    INSERT INTO chat_messageallowance (user_id, messages) SELECT id, 4 FROM accounts_user WHERE username = %s
"""


@pytest.fixture(scope="module")
def loaded():
    folder = temporary_folder()
    limits = {
        "CHATSITE_USER_CONCURRENT_ANSWERS": str(AT_ONCE),
        "CHATSITE_USER_QUESTIONS_PER_MINUTE": str(A_MINUTE),
        "CHATSITE_PROCESS_ANSWERS": str(OF_A_PROCESS),
    }
    try:
        with (
            Upstream() as upstream,
            FaultSite(prepared(folder, demo=False), upstream, web_workers=2, workers=0, **limits) as site,
        ):
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Asked:
    """One question, and the head of its response."""

    def __init__(self, caller, words=60, pause=20):
        self.caller, self.token = caller, new_token()
        self.question = question_for(self.token, words, pause)

    def __call__(self):
        begun = time.monotonic()
        self.connection, self.response = self.caller.ask(self.question, path="/api/chat/batch")
        self.seconds = time.monotonic() - begun
        self.status, self.headers = self.response.status, self.response.headers
        return self

    def end(self, site):
        """Read the response, and compare it with what is stored; return the body of a refusal."""
        body = self.response.read()
        self.connection.close()
        if self.status == 200:
            assert answer_to(self.question).strip().encode() in body
            assert site.ended(self.token) == ("complete", "", answer_to(self.question))
            assert site.upstream.calls(self.token) == 1
            return ""
        assert int(self.headers["Retry-After"]) > 0
        assert self.seconds < 1 + MARGIN_SECONDS, "a refusal that takes long"
        assert (site.stored(self.token), site.upstream.calls(self.token)) == ([], 0)
        return body.decode()


def outcomes(site, asked):
    """Ask questions at once; return the number of complete answers, and the bodies of the refusals."""
    done = at_once(*asked)
    assert [one for one in done if isinstance(one, Exception)] == []
    refusals = [body for one in done if (body := one.end(site))]
    return len(done) - len(refusals), refusals


def streams(caller, number):
    """Functions that ask; the answers take more than a second, so none ends before all are asked."""
    return [Asked(caller) for _ in range(number)]


def test_the_limit_of_concurrent_answers_applies_across_processes(loaded):
    caller, tokens = loaded.caller(), [new_token() for _ in range(30)]
    begun = time.monotonic()
    calls = [partial(caller.ask, question_for(token, 150, 20)) for token in tokens]
    taken = at_once(*calls)
    assert time.monotonic() - begun < 3 + MARGIN_SECONDS
    statuses = [response.status for _, response in taken]
    assert statuses.count(200) == AT_ONCE
    # A slow process refuses some as overload, but never the first of them, which are more than the limit.
    assert 429 in statuses
    assert set(statuses) <= {200, 429, 503}
    for token, (connection, response) in zip(tokens, taken, strict=True):
        if response.status == 200:
            assert loaded.ended(token) == ("complete", "", answer_to(question_for(token, 150)))
        else:
            assert int(response.headers["Retry-After"]) > 0
            assert loaded.stored(token) == []
        assert loaded.upstream.calls(token) == (response.status == 200)
        connection.close()


def test_the_limit_of_questions_per_minute_is_exact(loaded):
    caller = loaded.caller()
    done, refusals = 0, []
    for _ in range(4):
        more, refused = outcomes(loaded, [Asked(caller, 1, 0) for _ in range(AT_ONCE)])
        done, refusals = done + more, refusals + refused
    assert (done, len(refusals)) == (A_MINUTE, 4 * AT_ONCE - A_MINUTE)
    assert all(f"You have asked {A_MINUTE} questions within a minute." in body for body in refusals)


def test_concurrent_messages_use_exactly_the_daily_allowance(loaded):
    name = new_token("u")
    caller = loaded.caller(name)
    loaded.query(ALLOW, name)
    asked = [Asked(caller, 1, 0) for _ in range(AT_ONCE)]
    done, refusals = outcomes(loaded, asked)
    assert (done, len(refusals)) == (4, AT_ONCE - 4)
    assert all("quota_exceeded" in body for body in refusals)
    left = [one.headers["RateLimit"].partition(";t=")[0] for one in asked]
    assert sorted(left) == ['"day";r=0'] * 3 + [f'"day";r={number}' for number in (1, 2, 3)]


def test_processes_at_capacity_refuse_in_time_and_complete_accepted_answers(loaded):
    callers = [loaded.caller() for _ in range(8)]
    done, refusals = outcomes(loaded, [one for caller in callers for one in streams(caller, AT_ONCE)])
    assert OF_A_PROCESS <= done < 8 * AT_ONCE
    assert all("busy" in body or "overloaded" in body for body in refusals)
    # As soon as an answer has ended, questions are accepted again.
    assert outcomes(loaded, [Asked(callers[0], 1, 0)]) == (1, [])
