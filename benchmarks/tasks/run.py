"""Count the steps and seconds of everyday tasks in the portal and in Open WebUI, in headless Chromium.

    .venv-dev/bin/python -m benchmarks.tasks.run [PROGRAMS [SCREENSHOTS]]

PROGRAMS is the `bin` folder of an environment in which `open-webui` is installed; without it, only the portal
is measured. Both products use the same scripted model. Every control of the portal is found by its role and
its name in the accessibility tree, as a screen reader finds it; a task ends when its result is on the page.
Prints a table.
"""

import contextlib
import gettext
import itertools
import json
import re
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import psycopg
from playwright.sync_api import expect

from benchmarks.clients.run import wait_for_handbook
from chatsite.tests.chromium import MOVING, PHONE, driven_chromium, open_page
from chatsite.tests.server import BASE, Site, prepared, reading_parameters, temporary_folder

from .hand import SECONDS, Hand, has_focus, name
from .model import scripted_model
from .open_webui import open_webui

QUESTION = "How many days of leave can I carry over?"
WORDS = "Days carried over are always used first"
MORE = " And until when?"
FILE_QUESTION = "When is the code of the locker changed?"
FOLDER = Path(tempfile.mkdtemp())
FILES = [FOLDER / f"locker-{number}.md" for number in range(10)]
COMPARE_QUESTION = "What has changed about the code of the locker?"
EDITIONS = {FOLDER / "locker-2025.md": "first Monday", FOLDER / "locker-2026.md": "last Friday"}
TASKS = {
    "ask": "ask a question",
    "source": "check a source of the answer",
    "correct": "correct the question, and ask again",
    "versions": "answer again, and compare two versions",
    "share": "share it with one person, and copy the link",
    "find": "find last month's answer by a word",
    "file": "ask about a file of one's own",
    "compare": "compare two versions of a document by a question",
    "ten": "add ten files that one group may read",
}
DESK = {"viewport": {"width": 1280, "height": 800}}
WAYS = {
    "desk": DESK,
    "phone": PHONE,
    "keyboard": DESK,
    "shortcuts": DESK,
    "German": DESK | {"locale": "de-DE", "german": True},
}
GERMAN = gettext.translation("django", BASE / "locale", ["de"])


class Portal:
    """The tasks, each from the current page. Controls are found by role and name, in the page's language."""

    product = "chatsite"

    def __init__(self, chromium, site, german=False, **context):
        self.say = GERMAN.gettext if german else str
        self.folder = site.folder
        self._open = open_page(chromium, site.url, with_problems=True, **MOVING, **context)
        self.page = self._open.__enter__()
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.home = site.url
        self.page.goto("/accounts/sign-in/")
        self.get("textbox", "Name").fill("hr")
        self.page.get_by_label(self.say("Password"), exact=True).fill(site.passwords["hr"])
        self.page.get_by_role("button", name=self.say("Sign in"), exact=True).click()
        self.page.wait_for_url(f"{self.home}/")

    def close(self):
        self._open.__exit__(None, None, None)

    def get(self, role, words, **options):
        return self.page.get_by_role(role, name=name(self.say(words)), **options)

    def go_home(self):
        self.page.goto(self.home)

    def send(self, hand, words="Send"):
        """Send with Enter; on a phone, where Enter begins a new line, with the button."""
        if self.page.viewport_size["width"] < 900:
            hand.click(self.page.get_by_role("button", name=self.say(words), exact=True).last)
        else:
            hand.press("Enter")

    def menu(self, hand):
        """Open the list of conversations if the page is narrow."""
        if self.page.viewport_size["width"] < 900:
            hand.click(self.get("button", "Conversations").first)

    def answered(self, hand):
        hand.see(self.get("button", "Answer again").last)

    def switched(self, hand, words, number):
        said = self.say(words) % {"number": number, "total": 2}
        hand.see(self.page.get_by_role("group", name=said).last)

    def ask(self, hand):
        hand.type(self.get("textbox", "Your question"), QUESTION)
        self.send(hand)
        hand.see(self.page.get_by_role("article").get_by_text(WORDS).last)
        self.answered(hand)

    def palette(self, hand, words):
        """Run the action that the palette finds by these words."""
        hand.press("Control+k")
        hand.type(self.page.get_by_role("dialog").get_by_role("combobox"), words)
        hand.see(self.page.locator("#palette [aria-selected=true]").filter(has_text=re.compile(words, re.I)))
        hand.press("Enter")

    def source(self, hand):
        if hand.keys_only:  # by keyboard, the row below the answer is nearer than the number in the answer
            hand.click(self.page.locator(".source-row").first)
        else:
            hand.click(self.page.get_by_role("article").get_by_role("link", name=name("1: ")).first)
        hand.see(self.get("link", "Open document").first)

    def close_source(self):
        self.get("link", "Close source").or_(self.get("button", "Close source")).first.click(timeout=3_000)

    def correct(self, hand):
        if hand.keys_only:  # the line below the box says that ↑ edits the question
            box = self.get("textbox", "Your question")
            if hand.shortcuts and not has_focus(box):
                hand.press("/")
            hand.reach(box)
            hand.press("ArrowUp")
        else:
            hand.click(self.get("link", "Edit and ask again").last)
        hand.see(self.page.get_by_role("button", name=self.say("Ask"), exact=True))
        hand.type(self.page.get_by_role("article").last.get_by_role("textbox"), MORE)
        self.send(hand, "Ask")
        self.switched(hand, "Question %(number)s of %(total)s", 2)
        self.answered(hand)

    def versions(self, hand):
        hand.click(self.get("button", "Answer again").last)
        self.switched(hand, "Version %(number)s of %(total)s", 2)
        self.answered(hand)
        hand.click(self.get("link", "Previous version").or_(self.get("button", "Previous version")).last)
        self.switched(hand, "Version %(number)s of %(total)s", 1)
        hand.click(self.get("link", "Next version").or_(self.get("button", "Next version")).last)
        self.switched(hand, "Version %(number)s of %(total)s", 2)

    def share(self, hand):
        if hand.shortcuts:
            self.palette(hand, "share")
        else:
            hand.click(self.get("link", "Share this answer").last)
        hand.type(self.get("combobox", "People"), "empl")
        hand.see(self.page.get_by_role("option", name="employee"))
        hand.press("Enter")
        if hand.keys_only:  # the second Enter sends the form
            hand.press("Enter")
        else:
            hand.click(self.get("button", "Create and copy link"))
        hand.see(self.page.get_by_text(self.say("The link is ready and copied. It is not shown again.")))
        assert "/s/" in self.page.evaluate("navigator.clipboard.readText()")

    def make_old(self):
        with psycopg.connect(**reading_parameters(self.folder), autocommit=True) as connection:
            connection.execute("UPDATE history_conversation SET updated_at = updated_at - interval '30 days'")

    def find(self, hand):
        field = self.get("searchbox", "Search your conversations")
        if hand.shortcuts:
            self.palette(hand, "carr")
        else:  # a click or typing opens the palette, which searches during typing
            if hand.keys_only:
                hand.type(field, "carried")
            else:
                phone = self.page.viewport_size["width"] < 900
                hand.click(self.get("link", "Search conversations") if phone else field)
                hand.type(self.page.get_by_role("dialog").get_by_role("combobox"), "carried")
            hand.see(self.page.get_by_role("option", selected=True).filter(has_text="carr").first)
            hand.press("Enter")
        hand.see(self.page.get_by_role("article").get_by_text(WORDS).first)

    def file(self, hand):
        hand.choose(self.get("button", "Attach files"), FILES[0])
        hand.type(self.get("textbox", "Your question"), FILE_QUESTION)
        self.send(hand)
        hand.see(
            self.page.get_by_role("article").get_by_role("link", name=re.compile("1: .*locker", re.I)).last
        )
        self.answered(hand)

    def compare(self, hand):
        hand.choose(self.get("button", "Attach files"), list(EDITIONS))
        hand.type(self.get("textbox", "Your question"), COMPARE_QUESTION)
        self.send(hand)
        for edition in EDITIONS:
            source = self.page.get_by_role("article").get_by_role(
                "link", name=re.compile(f": .*{edition.stem}")
            )
            hand.see(source.last)
        self.answered(hand)

    def ten(self, hand):
        self.menu(hand)
        if hand.shortcuts:
            self.palette(hand, "add doc")
        else:
            hand.click(self.get("link", "Documents").first)
            hand.click(self.get("link", "Add documents").first)
        words = f"{self.say('Which files?')} {self.say('Drop them here, or choose them:')}"
        hand.choose(self.page.get_by_role("button", name=name(words)).first, FILES)
        hand.click(self.get("checkbox", "HR"))
        hand.click(self.get("button", "Upload").last)
        row = self.page.get_by_role("listitem").filter(has_text="locker-")
        hand.see(row.filter(has_text=self.say("Ready")).nth(9))
        self.page.goto(f"{self.home}/documents/")
        expect(
            self.page.get_by_role("row").filter(has_text="locker-").filter(has_text="HR").nth(9)
        ).to_be_visible()


class OpenWebUi:
    """The same tasks in Open WebUI."""

    product = "Open WebUI"

    def __init__(self, chromium, client, **context):
        self._open = open_page(chromium, client.url, with_problems=True, **MOVING, **context)
        self.page = self._open.__enter__()
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page.add_init_script(f"localStorage.setItem('token', {json.dumps(client.token)});")
        self.home, self.data = client.url, client.data
        self.go_home()

    def close(self):
        self._open.__exit__(None, None, None)

    def get(self, role, words, **options):
        return self.page.get_by_role(role, name=name(words), **options)

    def go_home(self):
        self.page.goto(self.home)
        self.page.locator("#chat-input").wait_for()
        self.page.wait_for_timeout(1_500)

    def send(self, hand):
        if self.page.viewport_size["width"] < 900:
            hand.click(self.get("button", "Send message"))
        else:
            hand.press("Enter")

    def menu(self, hand):
        if self.page.viewport_size["width"] < 900:
            hand.click(self.get("button", "Open Sidebar").first)

    def answered(self, hand):
        hand.see(self.get("button", "Regenerate").last)

    def ask(self, hand):
        hand.type(self.page.locator("#chat-input"), QUESTION)
        self.send(hand)
        hand.see(self.page.locator(".chat-assistant").get_by_text(WORDS).last)
        self.answered(hand)

    def source(self, hand):
        hand.click(self.get("button", "View source: ").first)
        hand.see(self.page.get_by_role("dialog").get_by_text("Content").first)

    def close_source(self):
        self.get("button", "Close citation modal").click(timeout=3_000)

    def correct(self, hand):
        self.page.locator(".user-message").last.hover()
        hand.click(self.page.locator(".user-message").last.get_by_role("button", name="Edit"))
        hand.type(self.page.locator("textarea[id^=message-edit]").first, MORE)
        hand.click(self.page.get_by_role("button", name="Send", exact=True))
        hand.see(self.page.get_by_text("2/2").first)
        self.answered(hand)

    def versions(self, hand):
        hand.click(self.get("button", "Regenerate").last)
        hand.click(self.page.get_by_role("button", name="Try Again"))
        hand.see(self.get("button", "Next message").last)
        self.answered(hand)
        hand.click(self.get("button", "Previous message").last)
        hand.see(self.page.get_by_text("1/2").last)
        hand.click(self.get("button", "Next message").last)
        hand.see(self.page.get_by_text("2/2").last)

    def share(self, hand):
        hand.click(self.get("button", "Chat actions").first)
        hand.click(self.page.get_by_role("button", name="Share", exact=True))
        hand.click(self.get("button", "Add Access"))
        hand.click(self.get("checkbox", "Bob"))
        hand.click(self.page.get_by_role("button", name="Add", exact=True))
        hand.see(self.page.get_by_role("dialog").get_by_text("Bob").first)
        hand.click(self.page.get_by_role("button", name=re.compile("Copy Link")))
        hand.see(self.page.get_by_text(re.compile("Copied", re.I)).first)
        assert "/s/" in self.page.evaluate("navigator.clipboard.readText()")

    def make_old(self):
        with (
            contextlib.closing(sqlite3.connect(self.data / "webui.db", timeout=10)) as connection,
            connection,
        ):
            connection.execute("UPDATE chat SET updated_at = updated_at - 2592000")

    def find(self, hand):
        self.menu(hand)
        if hand.shortcuts:
            hand.press("Control+k")
        else:
            hand.click(self.get("button", "Search").first)
        hand.type(self.page.get_by_placeholder("Search workspace"), "carried")
        hand.see(self.page.get_by_role("option").first)
        hand.press("Enter")
        hand.see(self.page.locator(".chat-assistant").get_by_text(WORDS).first)

    def file(self, hand):
        hand.click(self.get("button", "More").last)
        hand.choose(self.page.get_by_role("menuitem", name="Upload Files"), FILES[0])
        hand.type(self.page.locator("#chat-input"), FILE_QUESTION)
        self.send(hand)
        hand.see(self.get("button", "View source: locker-0").last)
        self.answered(hand)

    def compare(self, hand):
        hand.click(self.get("button", "More").last)
        hand.choose(self.page.get_by_role("menuitem", name="Upload Files"), list(EDITIONS))
        hand.type(self.page.locator("#chat-input"), COMPARE_QUESTION)
        self.send(hand)
        for edition in EDITIONS:
            hand.see(self.get("button", f"View source: {edition.stem}").last)
        self.answered(hand)

    def ten(self, hand):
        self.menu(hand)
        hand.click(self.get("link", "Workspace"))
        hand.click(self.page.get_by_role("button", name="Create", exact=True))
        hand.type(self.page.get_by_placeholder("Name your knowledge base"), "Lockers")
        hand.type(self.page.get_by_placeholder("Describe your knowledge base"), "Codes")
        hand.click(self.get("button", "Add Access"))
        hand.click(self.get("button", "HR"))
        hand.click(self.page.get_by_role("button", name="Add", exact=True))
        hand.see(self.page.get_by_role("dialog").get_by_text("HR").first)
        hand.click(self.get("button", "Create Knowledge"))
        hand.click(self.get("button", "Add Content"))
        hand.choose(self.get("button", "Upload files").or_(self.get("menuitem", "Upload files")).first, FILES)
        for file in FILES:
            hand.see(self.page.get_by_text(file.stem).first)
        hand.gone(self.page.get_by_text(re.compile("^(Uploading|Processing)")))


def measured(product, tasks, way, screenshots=None):
    """{task: (steps, seconds, of which waiting)}; a failed task has an error text instead."""
    results = {}
    product.page.set_default_timeout(SECONDS * 1000)
    for task in tasks:
        hand = Hand(product.page, way in ("keyboard", "shortcuts"), way == "shortcuts")
        try:
            if task in ("ask", "file", "find", "compare", "ten"):
                if task == "find":
                    product.make_old()
                product.go_home()
            getattr(product, task)(hand)
            results[task] = (hand.steps, hand.seconds, hand.waiting)
        except Exception as error:
            results[task] = f"not done: {' '.join(str(error).split())[:160]}"
        acts = [f"{kind} ×{len(list(same))}" for kind, same in itertools.groupby(hand.acts)]
        print(product.product, task, results[task], *acts, sep=", ", file=sys.stderr, flush=True)
        if screenshots:
            product.page.screenshot(path=screenshots / f"{product.product}-{task}.png".replace(" ", "-"))
        if task == "source":
            with contextlib.suppress(Exception):
                product.close_source()
    return results


def compared(chromium, make, ways, screenshots):
    """{way: results} of one product, for instance on a phone or by keyboard."""
    found = {}
    for way in ways:
        product = make(chromium, **WAYS[way])
        folder = screenshots / way if screenshots else None
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        try:
            found[way] = measured(product, TASKS, way, folder)
        finally:
            product.close()
    return found


def cell(result):
    if result is None or isinstance(result, str):
        return result or "–"
    steps, seconds, waiting = result
    return f"{steps} / {seconds:.0f} s ({waiting:.1f})"


def main():
    programs = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    screenshots = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    for number, file in enumerate(FILES):
        file.write_text(
            f"# Locker {number}\n\nThe code of locker {number} is changed on each first Monday.\n"
        )
    for file, day in EDITIONS.items():
        file.write_text(f"# {file.stem}\n\nThe code of the locker is changed on each {day}.\n")
    folder = temporary_folder()
    theirs, version = {}, ""
    try:
        with scripted_model() as model, driven_chromium() as chromium:
            settings = {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "benchmark", "CHAT_MODEL": "scripted"}
            with Site(prepared(folder, demo=True), **settings) as site:
                wait_for_handbook(site)
                ours = compared(chromium, lambda c, **context: Portal(c, site, **context), WAYS, screenshots)
            if programs:
                with open_webui(programs, model) as client:
                    version = json.loads(client.call("/api/version"))["version"]
                    ways = [way for way in WAYS if way != "German"]
                    theirs = compared(
                        chromium, lambda c, **context: OpenWebUi(c, client, **context), ways, screenshots
                    )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(FOLDER, ignore_errors=True)
    for way, results in ours.items():
        print(f"\n| {way} | chatsite | Open WebUI {version} |\n|---|---|---|")
        for task, result in results.items():
            print(f"| {TASKS[task]} | {cell(result)} | {cell(theirs.get(way, {}).get(task))} |")


if __name__ == "__main__":
    main()
