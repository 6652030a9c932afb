"""Measures a content manager's day in the admin: clicks through its pages in Chromium.

    .venv-dev/bin/python benchmarks/manager_day/day.py ADDRESS PASSWORD FOLDER [--only STEP …]

ADDRESS is a site that seed.py has filled (run.py starts such a site); PASSWORD is that of the demo's `admin`.
A screenshot of each page is written to FOLDER. The time of a page runs from the start of its navigation,
including redirects, to the end of its load event. The manager is staff, but not a superuser. The person is
erased by `admin`, because staff can erase only people whose groups they have themselves (docs/identity.md).
The day changes the site and erases a person, so do not run it on a real site.
"""

import argparse
import contextlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from playwright.sync_api import Locator, Page, ViewportSize, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
LIMIT_MS = 2_000
WIDE = ViewportSize(width=1400, height=900)
NAVIGATION_MS, ACTION_MS = 60_000, 8_000  # time limits
TIMING = """() => {
    const [entry] = performance.getEntriesByType('navigation');
    return [entry.responseStatus, entry.loadEventEnd];
}"""
QUESTION = "Where can I charge my electric car?"
OTHER_WORDING = "How do I charge my electric car at work?"
DOCUMENT = "Traction battery infrastructure"
ANSWER = "On level 2 of car park P3 [1]. Switch a wallbox on with your staff badge."
NARROW = "Rules for parking permits, Facilities Hamburg"
RETIRED = 300


Meter = Callable[[], tuple[float, float]]  # CPU seconds of the web process and of PostgreSQL


@dataclass(frozen=True)
class Visit:
    """The cost of one page: milliseconds in the browser, CPU seconds on the server."""

    step: str
    what: str
    address: str
    took: float
    web: float
    database: float

    @property
    def path(self) -> str:
        return re.sub(r"^https?://[^/]+|\?.*", "", self.address)


class Day:
    """A browser window, the times of its pages, and the table of the steps."""

    def __init__(self, page: Page, folder: Path, address: str, password: str, meter: Meter | None) -> None:
        self.page, self.folder, self.address, self.password = page, folder, address, password
        self.meter = meter or (lambda: (0.0, 0.0))
        self.visits: list[Visit] = []
        self.failed = False
        self.rows: list[tuple[str, int, int, float, str]] = []
        self.times: list[tuple[float, str]] = []
        self.clicks = self.shots = 0
        self.name = ""

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.name, self.times, self.clicks = name, [], 0
        begun = time.perf_counter()
        try:
            yield
        except Exception as error:
            self.failed = True
            self.shot("failed")
            print(f"FAILED {name}: {str(error)[:600]}", flush=True)
        slowest, where = max(self.times, default=(0.0, ""))
        self.rows.append((name, len(self.times), self.clicks, slowest, where))
        print(f"{name}: {time.perf_counter() - begun:.1f} s, {self.times}", flush=True)

    def shot(self, what: str) -> None:
        self.shots += 1
        name = f"{self.shots:02}-{re.sub(r'[^a-z0-9]+', '-', f'{self.name} {what}'.lower())[:70]}.png"
        self.page.screenshot(path=self.folder / name, full_page=True)

    @contextlib.contextmanager
    def loading(self, what: str) -> Iterator[None]:
        """Record the time of the page that the block opens, and save a screenshot."""
        before = self.meter()
        yield
        self.page.wait_for_load_state("load")
        self.page.wait_for_function("() => performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
        status, took = self.page.evaluate(TIMING)
        web, database = (after - used for after, used in zip(self.meter(), before, strict=True))
        self.visits.append(Visit(self.name, what, self.page.url, took, web, database))
        self.times.append((round(took), self.page.url))
        self.shot(what)
        assert status < 400, f"{self.page.url} answered {status}"

    def open(self, address: str, what: str) -> None:
        """Open a URL, as if typed or bookmarked; only for the first page of a step."""
        with self.loading(what):
            self.page.goto(address)

    def follow(self, target: Locator, what: str) -> None:
        """Click an element that opens another page."""
        self.clicks += 1
        with self.loading(what), self.page.expect_navigation(timeout=NAVIGATION_MS):
            target.click()

    def save(self, button: str = "Save") -> None:
        """Save a form of the admin, and wait for its message."""
        self.follow(self.page.get_by_role("button", name=button, exact=True), "saved")
        expect(self.page.locator(".messagelist .success")).to_be_visible()

    def click(self, target: Locator) -> None:
        """Click an element without leaving the page."""
        self.clicks += 1
        target.click()

    def link(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("link", name=name).first

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name).first

    def listed(self, name: str) -> Locator:
        """The link to a list on the admin's start page, where a heading may have the same name."""
        return self.page.locator("#content .module tbody th a").filter(has_text=re.compile(f"^{name}$")).first

    def pick(self, field: Locator, text: str) -> None:
        """Choose a value in a search field (select2)."""
        self.click(field)
        self.page.locator(".select2-search__field").last.press_sequentially(text, delay=20)
        option = self.page.locator(".select2-results__option--highlighted, .select2-results__option")
        self.click(option.filter(has_text=text).first)

    @contextlib.contextmanager
    def as_person(self, name: str, address: str = "/accounts/sign-in/") -> Iterator[None]:
        """Sign in as another person, in a separate browser window."""
        mine = self.page
        assert mine.context.browser
        context = mine.context.browser.new_context(
            base_url=self.address, viewport=WIDE, accept_downloads=True
        )
        context.set_default_timeout(ACTION_MS)
        self.page = context.new_page()
        self.sign_in(name, address)
        try:
            yield
        except Exception:
            self.shot("failed")
            raise
        finally:
            self.page = mine
            context.close()

    def sign_in(self, name: str, address: str = "/admin/") -> None:
        self.page.goto(address)
        self.page.get_by_label(re.compile("name", re.I)).first.fill(name)
        self.page.get_by_label("Password", exact=False).first.fill(self.password)
        self.page.get_by_role("button", name=re.compile("sign in|log in", re.I)).first.click()
        self.page.wait_for_load_state("load")

    def table(self) -> str:
        lines = ["| step | pages | clicks | slowest page, ms | its address |", "|---|---|---|---|---|"]
        for name, pages, clicks, slowest, where in self.rows:
            mark = " **!**" if slowest > LIMIT_MS else ""
            path = re.sub(r"^https?://[^/]+|\?.*", "", where)
            lines.append(f"| {name} | {pages} | {clicks} | {slowest:,.0f}{mark} | {path} |")
        return "\n".join(lines)

    def page_table(self) -> str:
        """A table of all pages, in the order in which they were visited."""
        lines = [
            "| step | page | its address | seconds | CPU, web | CPU, PostgreSQL |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {visit.step.partition('.')[0]} | {visit.what} | {visit.path} | {visit.took / 1_000:.2f}"
            f" | {visit.web:.2f} | {visit.database:.2f} |"
            for visit in self.visits
        ]
        return "\n".join(lines)


def what_was_asked_in_vain(day: Day) -> None:
    day.open("/admin/", "home")
    day.follow(day.link("Which questions were not answered?"), "asked in vain")


def group_of_question(day: Day) -> Locator:
    what_was_asked_in_vain(day)
    return day.page.locator("section.in-vain").filter(has_text="electric car").first


def evaluation_before(day: Day) -> None:
    add = group_of_question(day).get_by_role("link", name="Add to the evaluation questions")
    day.follow(add, "new evaluation question")
    day.pick(day.page.locator(".field-document .select2-selection").first, DOCUMENT)
    day.shot("filled in")
    day.save()
    open_evaluation(day)
    run_evaluation(day, "before the answer")


def open_evaluation(day: Day) -> None:
    day.open("/admin/", "home")
    day.follow(day.link("Is the site better or worse than before?"), "runs")
    day.follow(day.link("Questions"), "questions")


def run_evaluation(day: Day, note: str) -> None:
    day.follow(day.link("Run an evaluation"), "start")
    day.page.get_by_label("What was changed").fill(note)
    day.follow(day.button("Run"), "run")
    expect(day.page.locator("#evaluation-run [role=status]")).to_contain_text("Done")
    day.shot("done")


def answer_it(day: Day) -> None:
    day.follow(group_of_question(day).get_by_role("link", name="Write an answer"), "new answer")
    day.page.get_by_label("Answer", exact=False).first.fill(ANSWER)
    day.page.get_by_label("Team").fill("Facilities")
    day.pick(day.page.locator(".field-document .select2-selection").first, DOCUMENT)
    day.page.get_by_label("Words of the document").first.fill("level 2 of car park P3")
    day.shot("filled in")
    day.save("Save and continue editing")
    day.follow(day.link("Which questions get it?"), "who gets it")


def ask_it(day: Day) -> None:
    with day.as_person("person0"):
        day.open("/", "portal")
        day.page.get_by_label("Your question").fill(OTHER_WORDING)
        day.click(day.button(re.compile("Send|Ask")))
        expect(day.page.get_by_text("Verified by Facilities").locator("visible=true").first).to_be_visible()
        expect(day.page.locator(".answer[data-state=complete]")).to_be_visible()
        day.shot("answer")


def add_word(day: Day) -> None:
    day.follow(group_of_question(day).get_by_role("link", name="Add a word"), "new word")
    day.page.get_by_label("Word", exact=False).first.fill("electric car")
    day.page.get_by_label("Other words", exact=False).first.fill("battery vehicle")
    day.shot("filled in")
    day.save()


def evaluation_after(day: Day) -> None:
    open_evaluation(day)
    run_evaluation(day, "with the answer and the word")
    day.follow(day.button("Compare"), "compared")


def widen(day: Day) -> None:
    day.open("/admin/", "home")
    day.follow(day.listed("Documents"), "documents")
    day.page.locator("#searchbar").fill(NARROW)
    day.follow(day.button("Search"), "found")
    day.follow(day.page.locator("#result_list tbody th a").first, "document")
    day.pick(day.page.locator(".field-groups .select2-selection").first, "Facilities Bremen")
    day.shot("filled in")
    day.save()
    day.open("/admin/", "home")
    day.follow(day.listed("Audit log"), "audit log")
    expect(day.page.locator("#result_list")).to_contain_text("→ Facilities Bremen, Facilities Hamburg")


def retire(day: Day) -> None:
    day.open("/admin/", "home")
    day.follow(day.listed("Documents"), "documents")
    day.page.locator("#searchbar").fill("Archive/2019")
    day.follow(day.button("Search"), "found")
    day.click(day.page.locator("#action-toggle"))
    day.click(day.page.get_by_text(re.compile("Select all")).first)
    day.page.locator("select[name=action]").select_option(label="Change or delete the chosen documents…")
    day.shot("chosen")
    day.follow(day.page.get_by_role("button", name="Go", exact=True), "change")
    day.page.get_by_label("Last day").first.fill(f"{date.today() - timedelta(days=1)}")
    day.shot("filled in")
    day.follow(day.button("Set last day"), "begun")
    expect(day.page.locator("#bulk-progress [role=status]")).to_contain_text(f"{RETIRED} of {RETIRED}")
    expect(day.page.locator("#bulk-progress [role=status]")).to_contain_text("Done")
    day.shot("done")


def explain(day: Day) -> None:
    day.open("/admin/", "home")
    day.follow(day.link("Why can somebody read a document, and what would they find?"), "form")
    day.page.get_by_role("combobox", name="Person").fill("Anna No. 0")
    day.page.get_by_role("combobox", name="Document").fill(NARROW)
    day.follow(day.button("Show"), "may not")
    expect(day.page.locator("#content")).to_contain_text("person0 may not read")
    day.page.get_by_role("combobox", name="Person").fill("Carla Content")
    day.follow(day.button("Show"), "may")
    expect(day.page.locator("#content")).to_contain_text("carla may read")


def export_and_erase(day: Day) -> None:
    with day.as_person("paula"):
        day.open("/", "portal")
        day.follow(day.link("Settings"), "settings")
        day.follow(day.link("Your data"), "her data")
        with day.page.expect_download() as download:
            day.click(day.page.get_by_text(re.compile("Download|Save everything")).first)
        download.value.save_as(day.folder / "paula.zip")
    with day.as_person("admin", "/admin/"):
        day.open("/admin/", "home")
        day.follow(day.listed("Users"), "people")
        day.page.locator("#searchbar").fill("paula")
        day.follow(day.button("Search"), "found")
        day.follow(day.page.locator("#result_list tbody th a").first, "person")
        day.follow(day.link("Delete"), "what goes")
        day.page.get_by_label("Documents that others read").select_option("hand over")
        day.pick(day.page.locator(".select2-selection").first, "carla")
        day.click(day.page.get_by_label("Erase this person"))
        day.shot("filled in")
        day.follow(day.button("Erase"), "erased")


def read_audit_log(day: Day) -> None:
    day.open("/admin/", "home")
    day.follow(day.listed("Audit log"), "audit log")
    day.follow(day.link("Today"), "today")
    day.follow(day.page.locator("#result_list tbody th a").first, "entry")


STEPS = {
    "a. what was asked in vain": what_was_asked_in_vain,
    "d1. into the evaluation, and a run before": evaluation_before,
    "b. answer it": answer_it,
    "b2. ask it as somebody": ask_it,
    "c. add a word": add_word,
    "d2. a run after, and the difference": evaluation_after,
    "e. widen one right": widen,
    "f. retire 300 documents": retire,
    "g. explain an access": explain,
    "h. export and erase a person": export_and_erase,
    "i. read the audit log": read_audit_log,
}


def spend_day(address: str, password: str, folder: Path, only: list[str], meter: Meter | None = None) -> Day:
    """Run all steps, or those whose letters are in `only`."""
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=NAVIGATION_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(base_url=address, viewport=WIDE)
        context.set_default_timeout(ACTION_MS)
        day = Day(context.new_page(), folder, address, password, meter)
        day.sign_in("carla")
        for name, function in STEPS.items():
            if not only or name.partition(".")[0] in only:
                with day.step(name):
                    function(day)
        browser.close()
    return day


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("password")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="letters of the steps to run")
    options = parser.parse_args()
    day = spend_day(options.address, options.password, options.folder, options.only)
    print(day.table(), day.page_table(), sep="\n\n")


if __name__ == "__main__":
    main()
