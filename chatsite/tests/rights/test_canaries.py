"""No word of a document reaches people who may not read it: 200 questions of six people, by every API.

Each document has a unique word. The model repeats its whole prompt. The prompts and everything that the site
sends, logs or writes to files are searched for words that the person may not read. Half-way through, a person
leaves a group, two documents lose readers, one is deleted, and an account is disabled.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import psycopg
import pytest

from chat.protocols import mcp, mcp_tools
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import answer
from chatsite.server.embedded_postgres import connection_parameters
from chatsite.tests.limits import HANG_SECONDS, LONG_SECONDS
from chatsite.tests.rights.canary_world import CANARIES, LATER, PEOPLE, TOPICS
from chatsite.tests.server import BASE, TOKEN, Site, prepared, temporary_folder

pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]

QUESTIONS = 200
AT_ONCE = 4
BRIEFLY = "briefly"  # makes the model answer without repeating anything
ASKER = re.compile(rf"\b({'|'.join(PEOPLE)}) asks")
SETTINGS = {
    "CHAT_MODEL": "fake",
    "OPENAI_API_KEY": "sk-fake",
    "CHATSITE_LOGIN_REQUIRED": "0",
    "CHATSITE_USER_QUESTIONS_PER_MINUTE": "10000",
}


async def repeat(exchange):
    """A model that repeats every source of the prompt literally, and cites it."""
    last = exchange.request.body["messages"][-1]["content"]
    sources = re.findall(r"^(paper-\d\d\.md[^:\n]*): (.*)$", exchange.request.prompt, re.M)
    words = "It is so." if BRIEFLY in str(last) else " ".join(f"{text} [{label}]" for label, text in sources)
    await answer(words or "I do not know.")(exchange)


class Person:
    """A person with a browser and, except for guests, an API key; asks by all APIs in turn."""

    def __init__(self, site, name, ways_in):
        self.name = name
        self.browser = site.session()
        self.program = site.session()
        self.headers = {"Content-Type": "application/json"}
        if ways_in:
            self.browser.cookies["sessionid"] = ways_in["session"]
            self.headers["Authorization"] = f"Bearer {ways_in['key']}"
        else:
            self.program = self.browser
        self.browser.get("/")
        self.conversation = None  # the conversation that the portal showed last
        self.brief = []  # conversations in which the model repeated nothing
        interfaces = [
            self.chat,
            self.stream,
            self.alone,
            self.completions,
            self.page,
            self.socket,
            self.chat_ui,
        ]
        self.interfaces = cycle([*interfaces, self.tool])

    def ask(self, text):
        """The response, whatever its status."""
        return next(self.interfaces)(text)

    def post(self, path, body, **more):
        return self.program.request("POST", path, json.dumps(body).encode(), self.headers | more).text

    def turns(self, text):
        return {"messages": [{"role": "user", "content": text}], "session_state": None}

    def chat(self, text):
        body = self.turns(text) | {"context": {"overrides": {"top": 10, "suggest_followup_questions": True}}}
        got = self.post("/chat", body)
        if BRIEFLY in text and got.startswith('{"message'):
            self.brief.append(json.loads(got)["session_state"])
        return got

    def stream(self, text):
        return self.post("/chat/stream", self.turns(text))

    def alone(self, text):
        return self.post("/ask", self.turns(text))

    def completions(self, text):
        return self.post("/v1/chat/completions", self.turns(text) | {"model": "fake", "stream": True})

    def chat_ui(self, text):
        return self.post("/api/chat/stream", {"messages": self.turns(text)["messages"]})

    def tool(self, text):
        return self.mcp("tools/call", name="ask", arguments={"question": text})

    def mcp(self, method, **params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        revision = {"Accept": "application/json", "MCP-Protocol-Version": mcp.HANDSHAKE[0]}
        return self.post("/mcp", body, **revision)

    def page(self, text):
        fields = {"csrfmiddlewaretoken": self.browser.cookies.get("csrftoken", ""), "text": text}
        answered = self.browser.post("/", fields)
        path = answered.headers.get("Location") or "/"
        if path.startswith("/c/"):
            self.conversation = path.partition("#")[0]
        return answered.text + self.finished(path)

    def finished(self, path):
        """The page, after all answers on it have ended."""
        deadline = time.monotonic() + HANG_SECONDS
        while 'data-state="streaming"' in (text := self.browser.get(path).text) or "queued" in text:
            assert time.monotonic() < deadline, "An answer did not end."
            time.sleep(0.05)
        return text

    def socket(self, text):
        if self.conversation is None:
            return self.page(text)
        got = []
        try:
            with self.browser.websocket(f"/ws{self.conversation}") as socket:
                socket.send(json.dumps({"type": "ask", "text": text, "key": str(time.time())}))
                while not got or '"done"' not in got[-1]:
                    got.append(socket.recv(timeout=HANG_SECONDS))
        except OSError:
            pass
        return "".join(got)

    def look_around(self, public_ids, later):
        """(place, text) of all pages that could show something of a document.

        After the changes without the lists of old answers, which keep text that was allowed at the time.
        """
        paths = ["/", "/documents/", "/documents/?q=travel"]
        if not later:
            paths += ["/search/?q=travel", "/chat-history?limit=100", "/chat-history/search?q=allowance"]
        paths.append("/documents/status/?" + "&".join(f"id={one}" for one in public_ids))
        paths += [f"/documents/{one}/" for one in public_ids]
        paths += [f"/content/{canary.name}" for canary in CANARIES]
        for conversation in self.brief[:2]:
            paths += [f"/chat-history/{conversation}{part}" for part in ("", "/messages", "/export")]
            source = "source/1.1/"
            pages = ("", "export.md", source, f"{source}?view=thoughts", f"{source}?view=support")
            paths += [f"/c/{conversation}/{page}" for page in pages]
        seen = [(path, self.browser.get(path).text) for path in paths]
        calls = [("list_sources", {})] + [("fetch", {"id": one}) for one in public_ids]
        calls += [("search", {"query": "travel allowance", "limit": 50})]
        seen += [(tool, self.mcp("tools/call", name=tool, arguments=wish)) for tool, wish in calls]
        seen += [("resources", self.mcp("resources/list"))]
        return seen + [
            ("resource", self.mcp("resources/read", uri=f"{mcp_tools.DOCUMENT}{one}")) for one in public_ids
        ]


class Watch:
    """The site, its model and its people; collects words that people got without a right to read them."""

    def __init__(self, site, fake, made):
        self.site, self.fake, self.made = site, fake, made
        self.people = {name: Person(site, name, made["people"].get(name)) for name in PEOPLE}
        self.later = False
        self.look_anew()
        self.wrong = []

    def look_anew(self):
        """Forget the words that were seen, which show that the test can see words at all."""
        self.seen = {name: set() for name in PEOPLE}
        self.fetched = {name: set() for name in PEOPLE}

    def check(self, name, where, text):
        for canary in CANARIES:
            may = name in canary.readers(self.later)
            if may and canary.word in text:
                self.seen[name].add(canary.word)
                if where == "fetch":
                    self.fetched[name].add(canary.word)
            elif not may and (canary.word in text or canary.name in text):
                self.wrong.append((name, where, canary.number, self.later))

    def ask(self, number):
        """Ask one question. In all, each person asks about each topic, also about closed documents."""
        name, topic = PEOPLE[number % len(PEOPLE)], TOPICS[(number // len(PEOPLE) + number) % len(TOPICS)]
        manner = f", {BRIEFLY}" if number // len(PEOPLE) % 3 == 0 else ""
        text = f"{name} asks{manner}: what is the travel allowance for {topic}?"
        self.check(name, "answer", self.people[name].ask(text))

    def ask_all(self, numbers):
        """Ask the questions of several people in parallel, those of each person one after the other."""
        by_person = [[one for one in numbers if one % len(PEOPLE) == place] for place in range(len(PEOPLE))]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda mine: [self.ask(one) for one in mine], by_person))
        for name, person in self.people.items():
            for where, text in person.look_around(self.made["documents"].values(), self.later):
                self.check(name, where, text)
        self.check_prompts()

    def check_prompts(self):
        """Check the prompts since the last call; each prompt contains its asker's name."""
        requests, self.fake.requests[:] = list(self.fake.requests), []
        for request in requests:
            prompt = json.dumps(request.body, ensure_ascii=False)
            (name,) = set(ASKER.findall(prompt))
            self.check(name, "prompt", prompt)

    def assert_all_of_theirs_was_seen(self):
        """Check that the test can see: each person got every word that they may read."""
        for name in PEOPLE:
            theirs = {canary.word for canary in CANARIES if name in canary.readers(self.later)}
            assert self.seen[name] == theirs, name
            if not (self.later and name == LATER["disabled"]):  # that person's key is refused
                assert self.fetched[name] == theirs, name

    def change_rights(self):
        """Change rights on the portal's pages, and as an administrator does."""
        for number in LATER["tightened"]:
            self.manage(CANARIES[number], "rights", who="me")
        self.manage(CANARIES[LATER["deleted"]], "delete")
        with psycopg.connect(**connection_parameters(self.site.folder), autocommit=True) as database:
            database.execute(
                "DELETE FROM accounts_user_groups USING accounts_user AS person, auth_group AS chosen WHERE"
                " person.id = user_id AND chosen.id = group_id AND person.username = %s AND chosen.name = %s",
                LATER["left"],
            )
            database.execute(
                "UPDATE accounts_user SET is_active = false WHERE username = %s", [LATER["disabled"]]
            )
        self.later = True
        self.look_anew()

    def manage(self, canary, what, **fields):
        browser = self.people[canary.owner].browser
        path = f"/documents/{self.made['documents'][str(canary.number)]}/"
        fields["csrfmiddlewaretoken"] = TOKEN.search(browser.get(path).text).group(1)
        assert browser.post(f"{path}{what}/", fields).status == 302

    def left_behind(self):
        """(place, word) of words in files of the site other than its database and stored documents."""
        texts = {"log": self.site.output.encode()}
        for path in self.site.folder.rglob("*"):
            inside = path.relative_to(self.site.folder).parts[0]
            if path.is_file() and (inside not in {"postgres", "files"} or path.suffix == ".log"):
                texts[str(path)] = path.read_bytes()
        return [
            (place, one.word)
            for place, text in texts.items()
            for one in CANARIES
            if one.word.encode() in text
        ]


@pytest.fixture
def watch():
    folder = temporary_folder()
    try:
        with (
            FakeOpenAI() as fake,
            Site(prepared(folder, demo=False), demo=False, OPENAI_BASE_URL=fake.url, **SETTINGS) as site,
        ):
            fake.script(*[repeat] * 10 * QUESTIONS)
            yield Watch(site, fake, _make_world(site))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_world(site):
    code = "from chatsite.tests.rights.canary_world import make; make()"
    environment = {"CHATSITE_DATA_DIR": str(site.folder), "PATH": ""}
    command = [sys.executable, "manage.py", "shell", "-c", code]
    made = subprocess.run(command, cwd=BASE, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-2000:]
    return json.loads(made.stdout.strip().splitlines()[-1])


def test_no_canary_of_another_reaches_a_prompt_an_answer_a_page_a_log_or_a_file(watch):
    half = QUESTIONS // 2
    watch.ask_all(range(half))
    watch.assert_all_of_theirs_was_seen()
    watch.change_rights()
    watch.ask_all(range(half, QUESTIONS))
    watch.assert_all_of_theirs_was_seen()
    assert set(watch.wrong) == set()
    watch.site.lines("")
    assert watch.left_behind() == []
