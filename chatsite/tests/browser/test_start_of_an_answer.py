"""The question stays visible above an answer that arrives in one piece, in headless Chromium."""

import shutil

import pytest

from chatsite.tests.chromium import PHONE
from chatsite.tests.portal_pages import ask, signed_in, wait_for_state
from chatsite.tests.server import Site, prepared, temporary_folder, wait_for_documents

pytestmark = [pytest.mark.browser, pytest.mark.server]

# Whether the last question is between the bar and the question box.
IN_VIEW = """() => {
    const [bar, dock] = ['.bar', '.dock'].map(name => document.querySelector(name).getBoundingClientRect());
    const box = [...document.querySelectorAll('.question')].at(-1).getBoundingClientRect();
    return box.top >= bar.bottom && box.bottom <= dock.top;
}"""


@pytest.fixture(scope="module")
def prompt_site():
    """A site whose answers come in one piece, as they do without a language model."""
    folder = temporary_folder()
    try:
        with Site(prepared(folder), CHATSITE_QUOTING_WORDS_PER_SECOND="0") as site:
            wait_for_documents(site)
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "screen", [PHONE, {"viewport": {"width": 1280, "height": 500}}], ids=["phone", "desk"]
)
def test_an_answer_that_comes_at_once_is_shown_from_its_question(chromium, prompt_site, screen):
    with signed_in(chromium, prompt_site, **screen) as page:
        for question in ("How many days of holiday do I get each year?", "How many days can I carry over?"):
            ask(page, question)
            wait_for_state(page, "complete")
            page.wait_for_timeout(500)  # the follow-up questions come later
            assert page.evaluate("document.documentElement.scrollHeight > innerHeight + 100")
            assert page.evaluate(IN_VIEW)
        page.goto("/")
        page.go_back()
        page.goto(page.url.partition("#")[0] + "#latest")
        assert page.evaluate(IN_VIEW)
