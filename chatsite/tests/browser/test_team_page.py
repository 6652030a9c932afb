"""Answers of a language model's server in Chromium: by a team, for screen readers, for the clipboard."""

import shutil

import pytest
from playwright.sync_api import expect

from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import answer
from chatsite.tests.portal_pages import ask, ask_and_wait, signed_in, submit, wait_for_state, wait_until
from chatsite.tests.server import Site, prepared, temporary_folder, wait_for_documents

pytestmark = [pytest.mark.browser, pytest.mark.server]

QUESTION = "What must a claim for travel expenses contain?"
MARKDOWN = """The area is $x^2$, the mean \\(\\frac{n+1}{2}\\)[^1].

- [ ] open
- [x] closed

[^1]: See below.
"""
COLLECT_SAID = """
    window.said = '';
    addEventListener('DOMContentLoaded', () => new MutationObserver(changes => {
        for (const { addedNodes } of changes)
            for (const { textContent } of addedNodes) said += `${textContent} `;
    }).observe(document.querySelector('#announcer'), { childList: true }));
"""
WORDS = [f"Word {number} of an answer. " for number in range(20)]
SECONDS = 60
SECOND_HAS_TEXT = (
    "!!document.querySelectorAll('.answer')[1]?.querySelector('.prose')?.textContent.includes('Word 3')"
)


@pytest.fixture(scope="module")
def site():
    folder = temporary_folder()
    try:
        with FakeOpenAI() as fake:
            fake.script(*[answer(*WORDS, pause=0.1)] * 20)
            fake.script_for("words", answer("First.\n\n", *MARKDOWN.splitlines(keepends=True), pause=0.2))
            model = {"OPENAI_BASE_URL": fake.url, "OPENAI_API_KEY": "k", "CHAT_MODEL": "m"}
            with Site(prepared(folder), CHATSITE_DOCUMENT_QUESTIONS="0", **model) as site:
                wait_for_documents(site)
                yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask_the_team(page):
    page.goto("/")
    page.locator("#mode").select_option("team")
    ask(page, QUESTION)


def wait_for_all(page):
    wait_until(page, "document.querySelectorAll('.answer').length === 3", SECONDS)
    wait_for_state(page, "complete", SECONDS)


def assert_same_after_a_reload(page):
    shown = page.locator(".answer .prose").all_inner_texts()
    page.reload()
    assert page.locator(".answer .prose").all_inner_texts() == shown


def test_a_team_of_agents_answers_each_under_its_name(chromium, site):
    with signed_in(chromium, site) as page:
        ask_the_team(page)
        wait_for_all(page)
        assert page.locator(".agent").all_inner_texts() == ["Researcher", "Reviewer", "Editor"]
        assert_same_after_a_reload(page)


def test_a_reload_in_the_middle_of_a_team_repeats_nothing(chromium, site):
    with signed_in(chromium, site) as page:
        ask_the_team(page)
        wait_until(page, SECOND_HAS_TEXT, SECONDS)
        page.reload()
        wait_for_all(page)
        assert_same_after_a_reload(page)


def test_without_a_socket_no_agent_is_missing(chromium, site):
    with signed_in(chromium, site, with_problems=True) as page:
        page.route_web_socket("**/ws/**", lambda socket: socket.close())
        ask_the_team(page)
        wait_for_all(page)
        expect(page.locator("#stop")).to_be_hidden()
        assert page.locator(".agent").all_inner_texts() == ["Researcher", "Reviewer", "Editor"]
        expect(page.locator("#latest")).to_have_count(1)
        assert_same_after_a_reload(page)


def test_formulas_and_tasks_are_announced_and_copied_in_words(chromium, site):
    with signed_in(chromium, site) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.add_init_script(COLLECT_SAID)
        ask_and_wait(page, QUESTION)
        # In an open conversation, no text arrives before the page can announce it.
        submit(page, f"{QUESTION} (case words)")
        wait_until(page, "said.includes('Done: closed')", SECONDS)
        said = page.evaluate("said.replace(/\\s+/g, ' ')")
        for words in ("The area is x^2, the mean (n + 1)/2 note 1", "To do: open"):
            assert words in said, said
        wait_for_state(page, "complete", SECONDS)
        page.locator("[data-copy]").last.click()
        expect(page.locator("#toast")).to_contain_text("Copied")
        copied = page.evaluate(
            "navigator.clipboard.read().then(([item]) => item.getType('text/html')).then(html => html.text())"
        )
        assert "☐ open" in copied
        assert "☑ closed" in copied
