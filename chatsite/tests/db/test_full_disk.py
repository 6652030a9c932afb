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
from chatsite.tests.db.test_store_faults import FAIL, MEND, check, files
from chatsite.tests.faults import PASSWORD, at_once, fresh, order, told, upload
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
def small(faulty):
    folder = temporary_folder() / "disk"
    folder.mkdir()
    folder.parent.chmod(0o755)
    for table in WRITTEN:  # removes what earlier tests left
        faulty.query(f"VACUUM FULL {table}")
    [(used,)] = faulty.query(SIZE, list(WRITTEN))
    size = used + SPARE_BYTES
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "chatsite-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("No file system may be mounted here.")
    try:
        disk = SmallDisk(faulty, folder)
        try:
            yield disk
        finally:
            disk.leave()
            time.sleep(1.1 * FULL_SECONDS)  # the next test has room
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder.parent, ignore_errors=True)


@pytest.fixture
def contrary(faulty):
    def make(event, times):
        faulty.query(FAIL.format(event=event, code="53100", times=times, when=""))

    yield make
    faulty.query(MEND)
    time.sleep(1.1 * FULL_SECONDS)  # the next test has room


def ask_until_refused(caller):
    """Ask questions whose texts fill the space that is left within the tables; return the accepted ones."""
    tokens = []
    for _ in range(200):
        token = fresh()
        connection, response = caller.ask(f"{order(token, 1, 0)} {'and so on ' * 2000}", key=token)
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


def test_answers_running_on_a_full_disk_are_completed_when_there_is_space(faulty, small):
    caller, tokens = faulty.caller(), [fresh() for _ in range(6)]
    before = faulty.lines("Traceback")
    connections = [caller.ask(order(token, 250, 20)) for token in tokens]  # 5 s
    time.sleep(0.5)
    small.fill()
    time.sleep(1.5 * LEASE)
    small.free()
    for token, (connection, response) in zip(tokens, connections, strict=True):
        text = "".join(json.loads(line).get("delta", {}).get("content") or "" for line in response)
        connection.close()
        assert text == told(order(token, 250))
    check(faulty, tokens)
    assert faulty.lines("Traceback") == before
    assert 0 < faulty.lines("No space left") <= 2 * LINES


def test_a_question_on_a_full_disk_is_refused_in_time_and_can_be_repeated(faulty, small):
    caller, name = faulty.caller(), fresh("u")
    faulty.caller(name)
    session = faulty.sign_in(name, PASSWORD)
    conversation = session.post_json("/chat-history", {}).json()["id"]
    small.fill()
    try:
        taken = ask_until_refused(caller)
        late = [fresh() for _ in range(24)]
        begun = time.monotonic()
        answers = at_once(*[partial(caller.whole, order(token, 5, 0), key=token) for token in late])
        assert time.monotonic() - begun < LEASE + 2 + MARGIN_SECONDS
        assert {status for status, _ in answers} <= {200, 507}
        words = {body["error"] for status, body in answers if status == 507}
        assert words, "nothing was refused"
        assert all("no room" in each for each in words), words
        connection, response = caller.ask(f"{order(fresh())} {'and so on ' * 2000}")
        assert (response.status, response.headers["Retry-After"]) == (507, "10")
        connection.close()
        with session.websocket(f"/ws/c/{conversation}/") as websocket:
            websocket.send(json.dumps({"type": "ask", "text": "and so on " * 2000, "key": "k" * 10}))
            refused = json.loads(websocket.recv(timeout=HANG_SECONDS))
        assert (refused["type"], refused["code"], refused["key"]) == ("refused", "storage_full", "k" * 10)
    finally:
        small.free()
    time.sleep(BACK_SECONDS)
    assert caller.whole(order(fresh(), 5, 0))[0] == 200
    refused = [token for token, (status, _) in zip(late, answers, strict=True) if status == 507]
    for token in refused:
        if not faulty.stored(token):  # otherwise there was space for the question, but not for its answer
            assert caller.whole(order(token, 5, 0), key=token)[0] == 200
    check(faulty, [*taken, *(t for t in late if faulty.stored(t))], ("complete", "failed", "interrupted"))


def test_a_question_on_a_full_disk_is_refused_and_accepted_when_there_is_space(faulty, contrary):
    """The error is raised by a trigger."""
    caller, token = faulty.caller(), fresh()
    contrary("INSERT ON chat_run", times=1)
    connection, response = caller.ask(order(token, 5, 0), key=token)
    assert (response.status, response.headers["Retry-After"]) == (507, "10")
    assert "no room for the question" in json.loads(response.read())["error"]
    connection.close()
    assert (faulty.stored(token), faulty.upstream.calls(token)) == ([], 0)
    taken_within(partial(caller.whole, order(token, 5, 0), key=token), BACK_SECONDS)
    check(faulty, [token])


@pytest.mark.parametrize("event", ["INSERT ON chat_journalentry", "UPDATE OF finished_at ON chat_run"])
def test_an_answer_on_a_temporarily_full_disk_is_kept_and_completed(faulty, contrary, event):
    """The error is raised by a trigger."""
    caller, token = faulty.caller(), fresh()
    contrary(event, times=4)
    status, body = caller.whole(order(token, 30, 10))
    assert (status, body["message"]["content"]) == (200, told(order(token, 30)))
    check(faulty, [token])


def test_an_answer_without_any_space_fails_with_a_reason_and_new_questions_are_refused(faulty, contrary):
    """The error is raised by a trigger on the table of sources."""
    caller, token = faulty.caller(), fresh()
    contrary("UPDATE OF thoughts ON history_message", times=10_000)
    begun = time.monotonic()
    connection, response = caller.ask(order(token, 5, 0))
    time.sleep(0.5)
    if len(faulty.web_processes()) == 1:
        assert caller.whole(order(fresh(), 5, 0))[0] == 507
    last = json.loads(response.read().splitlines()[-1])
    connection.close()
    assert time.monotonic() - begun < LEASE + 2 + MARGIN_SECONDS
    assert "no room" in last["error"]
    assert faulty.ended(token)[:2] == ("failed", "storage_full")
    assert faulty.upstream.calls(token) == 0


def test_an_upload_on_a_full_database_disk_is_refused_and_leaves_no_file(faulty, contrary):
    """The error is raised by a trigger."""
    name = fresh("u")
    faulty.caller(name)
    session = faulty.sign_in(name, PASSWORD)
    folder = Path(faulty.environment["CHATSITE_MEDIA_ROOT"])
    before = files(folder)
    contrary("INSERT ON ingestion_document", times=1)
    status, reply = upload(session, "first.txt", b"a few words")
    assert status == 507, reply
    assert "no room" in json.dumps(reply)
    assert files(folder) == before
    assert upload(session, "first.txt", b"a few words")[0] == 201
