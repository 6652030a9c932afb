"""The language model's second look in Chromium: it delays no text, and removes the mark on an open page."""

import asyncio
import re
import shutil

import pytest
from playwright.sync_api import expect

from chat.tests.fake_openai import FakeOpenAI, completion_for
from chat.tests.upstream_faults import answer, completion
from chatsite.tests.portal_pages import ask, signed_in, wait_for_state
from chatsite.tests.server import Site, prepared, temporary_folder, wait_for_documents

pytestmark = [pytest.mark.browser, pytest.mark.server]

WORDS = "Employees take leftover days of leave along to the coming spring"
LOOK_SECONDS = 3


async def paraphrasing(exchange):
    """An answer in other words than its source, which the rules leave unclear."""
    label = re.search(r"^Sources:\n(.+?): ", exchange.request.prompt, re.M)[1]
    await answer(*re.findall(r"\s*\S+", f"{WORDS} [{label}]."))(exchange)


def slowly(request):
    system, user = (message["content"] for message in request.body["messages"][:2])
    if "whether its passage says the same" not in system:
        return completion_for(request)
    lines = re.findall(r"^Statement (\d+) \(passage \d+\): (.*)", user, re.M)
    reply = completion("\n".join(f"{number}: {'yes' if WORDS in text else 'no'}" for number, text in lines))

    async def late(exchange):
        await asyncio.sleep(LOOK_SECONDS)
        await reply(exchange)

    return late


@pytest.fixture(scope="module")
def site():
    folder = temporary_folder()
    try:
        with FakeOpenAI() as fake:
            fake.side = slowly
            fake.script(paraphrasing)
            model = {"OPENAI_BASE_URL": fake.url, "OPENAI_API_KEY": "k", "CHAT_MODEL": "m"}
            with Site(prepared(folder), CHATSITE_DOCUMENT_QUESTIONS="0", **model) as site:
                wait_for_documents(site)
                yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_note_disappears_after_the_second_look(chromium, site):
    with signed_in(chromium, site) as page:
        ask(page, "How many days of leave may employees carry over?")
        wait_for_state(page, "complete")
        last = page.locator(".answer").last
        expect(last.locator(".sources-head")).to_contain_text("1 statement in other words")
        expect(last.locator(".prose .missing")).to_have_count(0)
        expect(page.locator("#send")).to_be_visible()  # while the model is still looking
        expect(last.locator(".sources-head")).to_contain_text(
            "1 statement checked again by the language model", timeout=(LOOK_SECONDS + 10) * 1000
        )
        expect(last.locator(".prose")).to_contain_text(WORDS)
        last.locator(".prose .cite").click()
        expect(page.locator(".facts .checked")).to_contain_text("Checked again by the language model")
        page.reload()
        expect(page.locator(".answer").last.locator(".sources-head")).not_to_contain_text("in other words:")
