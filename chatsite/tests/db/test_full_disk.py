"""The disk of PostgreSQL is full: questions are refused as `storage_full`, and running answers are kept.

If the tests may mount a file system (as root), the tables of answers are on a small one, which is filled, so
the error is PostgreSQL's own. Otherwise a trigger raises the same error (SQLSTATE 53100), and the test says
so. A server that cannot write its write-ahead log ends, and counts as unavailable.
"""

import json
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

import psycopg
import pytest

from chatsite.db.availability import FULL_SECONDS
from chatsite.server.embedded_postgres import connection_parameters
from chatsite.tests.db.test_store_faults import FAIL, MEND, assert_stored_once, files
from chatsite.tests.faults import PASSWORD, answer_to, at_once, new_token, question_for, upload
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.server import temporary_folder

pytestmark = pytest.mark.server

WRITTEN = ("chat_journalentry", "history_message", "history_conversation", "chat_run")  # tables of answers
INDEXES = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass"
SIZE = "SELECT sum(pg_total_relation_size(name::regclass))::bigint FROM unnest(%s::text[]) AS name"
SPARE_BYTES = 16 * 1024 * 1024
BACK_SECONDS = 2  # time after which nothing is refused
LEASE = 2  # seconds, of the site under test
LINES = 5  # log lines about the full disk that each process may write in a test


class SmallDisk:
    """A file system with 16 MB to spare, which has the tables of answers until the end of the test."""

    def __init__(self, site, folder):
        self.site, self.folder, self.ballast = site, folder, folder / "ballast"
        parameters = connection_parameters(site.cluster.data, role="postgres")
        self.administrator = psycopg.connect(**parameters, autocommit=True)
        location = folder / "tables"
        location.mkdir(mode=0o777)
        location.chmod(0o777)
        subprocess.run(["chown", "nobody", str(location)], check=True)
        self.administrator.execute(f"CREATE TABLESPACE small LOCATION '{location}'")
        self.move("small")

    def move(self, name):
        for table in WRITTEN:
            self.administrator.execute(f"ALTER TABLE {table} SET TABLESPACE {name}")
            for (index,) in self.administrator.execute(INDEXES, [table]).fetchall():
                self.administrator.execute(f"ALTER INDEX {index} SET TABLESPACE {name}")

    def fill(self):
        """Fill the disk to the last byte, and the free space within the tables."""
        with self.ballast.open("wb", buffering=0) as file:
            for size in (65_536, 4096, 512):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    continue

    def free(self):
        self.ballast.unlink(missing_ok=True)

    def leave(self):
        self.free()
        self.move("pg_default")
        self.administrator.execute("DROP TABLESPACE small")
        self.administrator.close()


@pytest.fixture
def small_disk(fault_site):
    folder = temporary_folder() / "disk"
    folder.mkdir()
    folder.parent.chmod(0o755)
    for table in WRITTEN:  # removes what earlier tests left
        fault_site.query(f"VACUUM FULL {table}")
    [(used,)] = fault_site.query(SIZE, list(WRITTEN))
    size = used + SPARE_BYTES
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "chatsite-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("No file system may be mounted here.")
    try:
        disk = SmallDisk(fault_site, folder)
        try:
            yield disk
        finally:
            disk.leave()
            time.sleep(1.1 * FULL_SECONDS)  # the next test has room
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder.parent, ignore_errors=True)


@pytest.fixture
def abort_writes(fault_site):
    def make(event, times):
        fault_site.query(FAIL.format(event=event, code="53100", times=times, when=""))

    yield make
    fault_site.query(MEND)
    time.sleep(1.1 * FULL_SECONDS)  # the next test has room


def ask_until_refused(caller):
    """Ask questions whose texts fill the space that is left within the tables; return the accepted ones."""
    tokens = []
    for _ in range(200):
        token = new_token()
        connection, response = caller.ask(f"{question_for(token, 1, 0)} {'and so on ' * 2000}", key=token)
        connection.close()
        if response.status == 507:
            return tokens
        tokens.append(token)
    raise AssertionError("nothing was refused")


def taken_within(call, seconds):
    deadline = time.monotonic() + seconds + MARGIN_SECONDS
    while (answer := call())[0] != 200:
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    return answer


def text_of(line):
    """The text in a line of a streamed answer; empty if it has none."""
    return json.loads(line).get("delta", {}).get("content") or ""


def test_answers_running_on_a_full_disk_are_completed_when_there_is_space(fault_site, small_disk):
    caller, tokens = fault_site.caller(), [new_token() for _ in range(6)]
    before = fault_site.lines("Traceback")
    connections = [caller.accepted(question_for(token, 500, 20)) for token in tokens]  # 10 s
    beginnings = [next(filter(None, map(text_of, response))) for _, response in connections]
    small_disk.fill()
    deadline = time.monotonic() + 3 * LEASE
    while not fault_site.lines("No space left") and time.monotonic() < deadline:
        pass  # `lines` waits; the answers use the space that is left within the tables
    time.sleep(1.5 * LEASE)
    small_disk.free()
    for token, (connection, response), beginning in zip(tokens, connections, beginnings, strict=True):
        text = beginning + "".join(map(text_of, response))
        connection.close()
        assert text == answer_to(question_for(token, 500))
    assert_stored_once(fault_site, tokens)
    assert fault_site.lines("Traceback") == before
    assert 0 < fault_site.lines("No space left") <= 2 * LINES


def test_a_question_on_a_full_disk_is_refused_in_time_and_can_be_repeated(fault_site, small_disk):
    caller, name = fault_site.caller(), new_token("u")
    fault_site.caller(name)
    session = fault_site.sign_in(name, PASSWORD)
    conversation = session.post_json("/chat-history", {}).json()["id"]
    small_disk.fill()
    try:
        taken = ask_until_refused(caller)
        late = [new_token() for _ in range(24)]
        begun = time.monotonic()
        answers = at_once(*[partial(caller.whole, question_for(token, 5, 0), key=token) for token in late])
        assert time.monotonic() - begun < LEASE + 2 + MARGIN_SECONDS
        assert {status for status, _ in answers} <= {200, 507}
        words = {body["error"] for status, body in answers if status == 507}
        assert words, "nothing was refused"
        assert all("disk is full" in each for each in words), words
        connection, response = caller.ask(f"{question_for(new_token())} {'and so on ' * 2000}")
        assert (response.status, response.headers["Retry-After"]) == (507, "10")
        connection.close()
        with session.websocket(f"/ws/c/{conversation}/") as websocket:
            websocket.send(json.dumps({"type": "ask", "text": "and so on " * 2000, "key": "k" * 10}))
            refused = json.loads(websocket.recv(timeout=HANG_SECONDS))
        assert (refused["type"], refused["code"], refused["key"]) == ("refused", "storage_full", "k" * 10)
    finally:
        small_disk.free()
    time.sleep(BACK_SECONDS)
    assert caller.whole(question_for(new_token(), 5, 0))[0] == 200
    refused = [token for token, (status, _) in zip(late, answers, strict=True) if status == 507]
    for token in refused:
        if not fault_site.stored(token):  # otherwise there was space for the question, but not for its answer
            assert caller.whole(question_for(token, 5, 0), key=token)[0] == 200
    assert_stored_once(
        fault_site,
        [*taken, *(t for t in late if fault_site.stored(t))],
        ("complete", "failed", "interrupted"),
    )


def test_a_question_on_a_full_disk_is_refused_and_accepted_when_there_is_space(fault_site, abort_writes):
    """The error is raised by a trigger."""
    caller, token = fault_site.caller(), new_token()
    abort_writes("INSERT ON chat_run", times=1)
    connection, response = caller.ask(question_for(token, 5, 0), key=token)
    assert (response.status, response.headers["Retry-After"]) == (507, "10")
    assert "disk is full, so the question" in json.loads(response.read())["error"]
    connection.close()
    assert (fault_site.stored(token), fault_site.upstream.calls(token)) == ([], 0)
    taken_within(partial(caller.whole, question_for(token, 5, 0), key=token), BACK_SECONDS)
    assert_stored_once(fault_site, [token])


@pytest.mark.parametrize("event", ["INSERT ON chat_journalentry", "UPDATE OF finished_at ON chat_run"])
def test_an_answer_on_a_temporarily_full_disk_is_kept_and_completed(fault_site, abort_writes, event):
    """The error is raised by a trigger."""
    caller, token = fault_site.caller(), new_token()
    abort_writes(event, times=4)
    status, body = caller.whole(question_for(token, 30, 10))
    assert (status, body["message"]["content"]) == (200, answer_to(question_for(token, 30)))
    assert_stored_once(fault_site, [token])


def test_an_answer_without_any_space_fails_with_a_reason_and_new_questions_are_refused(
    fault_site, abort_writes
):
    """The error is raised by a trigger on the table of sources."""
    caller, token = fault_site.caller(), new_token()
    abort_writes("UPDATE OF thoughts ON history_message", times=10_000)
    begun = time.monotonic()
    connection, response = caller.ask(question_for(token, 5, 0))
    time.sleep(0.5)
    if len(fault_site.web_processes()) == 1:
        assert caller.whole(question_for(new_token(), 5, 0))[0] == 507
    last = json.loads(response.read().splitlines()[-1])
    connection.close()
    assert time.monotonic() - begun < LEASE + 2 + MARGIN_SECONDS
    assert "disk is full" in last["error"]
    assert fault_site.ended(token)[:2] == ("failed", "storage_full")
    assert fault_site.upstream.calls(token) == 0


def test_an_upload_on_a_full_database_disk_is_refused_and_leaves_no_file(fault_site, abort_writes):
    """The error is raised by a trigger."""
    name = new_token("u")
    fault_site.caller(name)
    session = fault_site.sign_in(name, PASSWORD)
    folder = Path(fault_site.environment["CHATSITE_MEDIA_ROOT"])
    before = files(folder)
    abort_writes("INSERT ON ingestion_document", times=1)
    status, reply = upload(session, "first.txt", b"a few words")
    assert status == 507, reply
    assert "disk is full" in json.dumps(reply)
    assert files(folder) == before
    assert upload(session, "first.txt", b"a few words")[0] == 201
