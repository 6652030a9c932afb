"""The last release and this version on one database, while questions are asked all the time.

The course of a rolling upgrade: the database is migrated while the old version answers; the new version
joins; each reads, stops and continues answers of the other; the old one is asked to end. Takes half a minute
and needs the project's history, so it runs only if CHATSITE_TEST_ROUNDS is 20 or more.
"""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from functools import partial

import pytest

from chatsite.server.embedded_postgres import connection_parameters
from chatsite.tests.faults import (
    PASSWORD,
    FaultSite,
    Upstream,
    answer_to,
    at_once,
    cluster,
    new_token,
    question_for,
)
from chatsite.tests.limits import HANG_SECONDS, LONG_SECONDS
from chatsite.tests.server import BASE, temporary_folder

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(LONG_SECONDS),
    pytest.mark.skipif(int(os.environ.get("CHATSITE_TEST_ROUNDS", "1")) < 20, reason="A long test."),
]

CALLERS = 6
RELEASE = re.compile(r"^## \d+\.\d+\.\d+ ", re.MULTILINE)  # a heading of the changelog
NOTHING_NEW = re.compile(r"^## Unreleased\s+## ", re.MULTILINE)  # the newest release is this version


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=BASE, capture_output=True, check=False)
    if done.returncode or not done.stdout:
        pytest.skip("The project's history is not here.")
    return done.stdout


def last_release():
    """The commit that gave the changelog its newest release, or the one before if nothing came after that."""
    changelog = (BASE / "CHANGELOG.md").read_text()
    heading = RELEASE.findall(changelog)[1 if NOTHING_NEW.search(changelog) else 0]
    commits = git("log", "--format=%H", f"-S{heading}", "--", "CHANGELOG.md")
    return commits.decode().split()[-1]


class ContinuousAsker:
    """Asks without a break, at each of the sites in turn, and repeats each question until it is answered."""

    def __init__(self, caller, sites):
        self.caller, self.sites, self.going = caller, sites, True
        self.tokens, self.refused = [], []
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self):
        number = 0
        while self.going:
            token = new_token("ask")
            while True:
                number += 1
                site = self.sites[number % len(self.sites)]
                try:
                    answer = at(site, self.caller).whole(question_for(token, 10, 20), key=token)[0]
                except Exception as error:  # any problem fails the test
                    answer = error
                if answer == 200:
                    break
                self.refused.append((site.code.name, answer))
                time.sleep(0.1)
            self.tokens.append(token)

    def stop(self):
        self.going = False
        self.thread.join(HANG_SECONDS)
        return self.tokens


def at(site, caller):
    """The same person at another site."""
    return type(caller)(site, caller.username, caller.secret)


@pytest.fixture
def versions():
    """(old, new): the old one runs, on a database of its own version."""
    folders = [temporary_folder() for _ in range(4)]
    with tarfile.open(fileobj=io.BytesIO(git("archive", last_release()))) as files:
        files.extractall(folders[0], filter="data")
    shared = {
        "CHATSITE_SECRET_KEY": "0123456789abcdef" * 4,
        "CHATSITE_MEDIA_ROOT": str(folders[1]),
        "web_workers": 2,
    }
    shared |= {"CHATSITE_GRACE_SECONDS": "10", "CHATSITE_LEASE_SECONDS": "10"}
    try:
        with Upstream() as upstream, cluster(migrated=False) as database:
            parameters = connection_parameters(database.data)
            old, new = (FaultSite(folder, upstream, parameters, **shared) for folder in folders[2:])
            old.code, old.settings = folders[0], "chatsite.settings"
            with old:
                yield old, new
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def test_nothing_is_lost_duplicated_or_refused_while_one_version_replaces_another(versions):
    old, new = versions
    sites = [old]
    asking = [ContinuousAsker(old.caller(), sites) for _ in range(CALLERS)]
    time.sleep(1)
    prepare(new)
    assert old.session().get("/readyz").status == 200
    with new:
        sites.append(new)
        caller = old.caller()
        for writer, reader in ((old, new), (new, old)):
            each_reads_and_stops_what_the_other_writes(at(writer, caller), at(reader, caller))
            a_page_of_one_follows_what_the_other_writes(writer, at(writer, caller), reader)
        last = [new_token() for _ in range(4)]
        for token in last:
            at(old, caller).begin(question_for(token, 100, 30))
        sites.remove(old)
        time.sleep(0.3)  # until a question that is being sent there has arrived
        assert old.stop(signal.SIGTERM) == 0
        time.sleep(1)
        tokens = [*last, *(token for one in asking for token in one.stop())]
        assert [one.refused for one in asking] == [[]] * CALLERS
        assert len(tokens) > 50
        for token in tokens:
            assert new.ended(token)[0] == "complete", "lost, doubled or cut"
            assert new.upstream.calls(token) == 1
    assert "Traceback" not in new.output
    # The old worker fails new tasks; the important ones are queued again (`queue_lost`).
    failed = [line for line in old.output.splitlines() if "Traceback" in line]
    assert [line for line in failed if "TaskNotFound" not in line] == []


PASSING = ("procrastinate_", "chat_lease")  # tables whose rows are deleted when their work is done
FILL = """
import json, django
django.setup()
from chatsite.db.threads import reading_everything
{rows}
with reading_everything():
    fill_tables()
    print(json.dumps(counted_rows()))
"""
COUNT = FILL.replace("    fill_tables()\n", "")


def test_data_of_every_kind_is_kept_and_shown_by_both_versions(versions):
    old, new = versions
    rows = (BASE / "chatsite" / "tests" / "rows.py").read_text()
    filled = told_by(old, old.code, FILL.format(rows=rows))
    assert len([table for table, number in filled.items() if number]) > 35
    prepare(new)
    kept = told_by(new, BASE, COUNT.format(rows=rows))
    stay = {table: number for table, number in filled.items() if not table.startswith(PASSING)}
    assert {table: kept.get(table) for table, number in stay.items() if kept.get(table, 0) < number} == {}
    with new:
        for site in (old, new):
            reader = at(site, old.caller())
            assert reader.request("GET", "/chat-history").status == 200
            assert reader.end(reader.begin(question_for(new_token(), 10, 20)))[1]["state"] == "complete"
    assert "Traceback" not in new.output


def told_by(site, code, script):
    """Run a script in this code, on the site's database, and return what it prints."""
    environment = os.environ | {"DATABASE_URL": site.environment["DATABASE_URL"]}
    environment |= {"CHATSITE_DATA_DIR": str(site.folder), "DJANGO_SETTINGS_MODULE": "chatsite.settings"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=code, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def prepare(site):
    """Bring the database to the version of this code."""
    environment = os.environ | {"DATABASE_URL": site.environment["DATABASE_URL"]}
    environment |= {"CHATSITE_DATA_DIR": str(site.folder)}
    subprocess.run([sys.executable, "manage.py", "prepare"], cwd=BASE, env=environment, check=True)


def each_reads_and_stops_what_the_other_writes(writing, reading):
    token, stopped = new_token(), new_token()
    assert reading.end(writing.begin(question_for(token, 40, 20)))[0] == answer_to(question_for(token, 40))
    run = writing.begin(question_for(stopped, 500, 20))
    time.sleep(0.3)
    assert reading.request("POST", f"/chat/runs/{run}/stop").status == 204
    assert writing.end(run)[1]["state"] == "stopped"
    token = new_token()
    calls = [partial(caller.whole, question_for(token, 20, 20), key=token) for caller in (writing, reading)]
    (status, first), (_, second) = at_once(*calls)
    assert (status, first["message"]) == (200, second["message"])
    assert writing.site.upstream.calls(token) == 1
    assert reading.whole(question_for(new_token(), 1, 0), conversation=first["session_state"])[0] == 200


def a_page_of_one_follows_what_the_other_writes(writer, writing, reader):
    token = new_token()
    session = writer.sign_in(writing.username, PASSWORD)
    cookies, session = session.cookies, reader.session()
    session.cookies = cookies
    run = writing.begin(question_for(token, 40, 20))
    [(conversation,)] = writer.query("SELECT conversation_id FROM chat_run WHERE id = %s", run)
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        websocket.send(json.dumps({"type": "follow", "run": run, "after": 0}))
        kinds = []
        while "done" not in kinds:
            frame = json.loads(websocket.recv(timeout=HANG_SECONDS))
            kinds += [message["type"] for message in frame["messages"]]
    assert answer_to(question_for(token, 40)).strip() in session.get(f"/c/{conversation}/").text
