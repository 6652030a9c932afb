"""The published front ends, unchanged, in a browser: two questions in a row, and every panel."""

import contextlib
import json
import re
import shutil
import unicodedata

import pytest
from playwright.sync_api import expect

from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import KEY, answer
from chatsite.tests.front_ends import Origin, driven_chromium, front_end, opened, share_with_guests
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.server import Site, prepared, temporary_folder, wait_for_documents

pytestmark = [pytest.mark.server, pytest.mark.browser, pytest.mark.timeout(LONG_SECONDS)]

SHARED = ("parental-leave.md", "employee-handbook.pdf", "working-abroad.md")
QUESTION = "How many weeks of leave do partners have?"
SECOND = "Which form do partners need for a block of leave?"
CITED = re.compile(r"parental-leave\S*\.md")  # the employee can read two of this name, so theirs has digits
WEB_COMPONENT = ("/chat", "/ask", "/content")
RAG_CHAT = ("/chat", "/ask", "/content", "/auth_setup", "/config")
# In current Chromium the React front end fails because of scrollIntoView's return value.
SCROLL = """
    const scroll = Element.prototype.scrollIntoView;
    Element.prototype.scrollIntoView = function (...options) { scroll.apply(this, options); };
"""


@pytest.fixture(scope="module")
def chromium():
    with driven_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def model():
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture(autouse=True)
def well_behaved(model):
    """Reset the model's script after each test."""
    yield
    model.script()


def run_site(**environment):
    """A site that serves guests, with its samples read."""
    folder = temporary_folder()
    try:
        with Site(prepared(folder), CHATSITE_LOGIN_REQUIRED="0", **environment) as site:
            share_with_guests(site, *SHARED)
            wait_for_documents(site)
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def offline():
    yield from run_site()


@pytest.fixture(scope="module")
def scripted(model):
    yield from run_site(OPENAI_BASE_URL=model.url, OPENAI_API_KEY=KEY, CHAT_MODEL="fake")


@pytest.fixture(params=["guest", "employee"])
def person(request):
    """The user of the front end."""
    return request.param


@pytest.fixture(params=["offline", "scripted"])
def site(request):
    """A site without a model, and one with a scripted model."""
    return request.getfixturevalue(request.param)


def session_of(site, person):
    return None if person == "guest" else site.sign_in(person)


def well(origin, count):
    """Assert that every question was accepted, also with the cookies that earlier answers have set."""
    assert origin.asked() + origin.asked("/ask") == [200] * count


# The web component


@pytest.fixture
def web_component(chromium):
    folder = front_end("web-component")

    @contextlib.contextmanager
    def at(site, person):
        origin = Origin(folder, WEB_COMPONENT, site.url)
        with origin, opened(chromium, origin, session_of(site, person)) as page:
            yield origin, page

    return at


def ask_component(page, question):
    page.get_by_test_id("question-input").fill(question)
    page.get_by_test_id("submit-question-button").click()


def entry(page, number):
    """The answer with this number, from 0."""
    return page.locator("chat-thread-component li.chat__listItem:not(.user-message)").nth(number)


def written(page, number):
    """The answer, after waiting for its end."""
    expect(entry(page, number).get_by_test_id("citation").first).to_be_visible()
    expect(page.get_by_test_id("submit-question-button")).to_be_enabled()
    return entry(page, number)


def without_stream(page):
    """Switch streaming off in the settings."""
    page.get_by_text("Developer settings").click()
    page.get_by_text("Stream chat completion responses").click()
    page.get_by_role("button", name="Close").last.click()
    # A closing panel may take the focus from the question box, so that typed text is lost.
    expect(page.get_by_text("Stream chat completion responses")).to_have_count(0)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_the_web_component_answers_two_questions_and_opens_every_panel(web_component, site, person, streamed):
    with web_component(site, person) as (origin, page):
        page.goto(origin.url)
        if not streamed:
            without_stream(page)
        ask_component(page, QUESTION)
        first = written(page, 0)
        expect(first.locator("sup.citation").first).to_have_text("1")
        expect(first.get_by_test_id("citation").first).to_have_text(CITED)
        assert "full pay" in first.inner_text()
        assert not re.search(r"\[|<<|&[a-z]+;", first.inner_text())

        # The thought process, what supports the answer, and the cited file
        first.get_by_title("Show thought process").click()
        aside = page.get_by_test_id("aside-thought-process")
        expect(aside.get_by_text("Original user query")).to_be_visible()
        expect(aside.get_by_text("Generated search query")).to_be_visible()
        aside.get_by_title("Support Context").click()
        expect(aside.locator("teaser-list-component").get_by_text(CITED).first).to_be_visible()
        aside.get_by_title("Hide thought process").click()
        first.get_by_test_id("citation").first.click()
        expect(aside.get_by_role("heading", name="Parental leave", exact=True)).to_be_visible()
        aside.get_by_title("Hide thought process").click()

        # A click puts a follow-up question into the question box.
        questions = first.get_by_test_id("followUpQuestion")
        if site.environment.get("CHAT_MODEL"):
            expect(questions).to_have_text(["What then?", "And why?", "Who decides?"])
        if questions.count():
            questions.first.click()
            expect(page.get_by_test_id("question-input")).to_have_value(questions.first.inner_text())
        ask_component(page, SECOND)
        expect(written(page, 1).locator("sup.citation").first).to_be_visible()
        well(origin, 2)
        assert page.faults == []


def test_the_web_component_shows_numbers_lists_and_what_looks_like_markup(web_component, scripted, model):
    steps = (
        "Of 25 days, ",
        "do this:\n\n1",
        ". Ask <b>them</b> ",
        "[parental-leave.md#partner].\n2. Next, wait 10 days.\n\nDone.",
    )
    model.script(answer(*steps))
    with web_component(scripted, "guest") as (origin, page):
        page.goto(origin.url)
        ask_component(page, QUESTION)
        expect(page.locator("ol.steps li")).to_have_count(2)
        shown = entry(page, 0)
        expect(shown.locator("ol.steps li").nth(1)).to_have_text(re.compile("Next, wait .+ days"))
        expect(shown).to_contain_text("<b>them</b>")
        expect(shown).to_contain_text("Done.")
        text = unicodedata.normalize("NFKC", shown.inner_text())
        assert "Of 25 days" in text
        assert "10 days" in text
        # The component sends the model's own text back as the earlier answer.
        expect(page.get_by_test_id("submit-question-button")).to_be_enabled()
        ask_component(page, SECOND)
        expect(page.get_by_test_id("submit-question-button")).to_be_enabled()
        expect(entry(page, 1)).to_be_visible()
        assert "Of 25 days, do this:" in model.streams[-1].prompt
        assert "Ask <b>them</b>" in model.streams[-1].prompt


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_the_web_component_shows_its_error_messages(web_component, scripted, model, streamed):
    with web_component(scripted, "guest") as (origin, page):
        page.goto(origin.url)
        if not streamed:
            without_stream(page)
        model.script("filtered_prompt", "error_500")
        ask_component(page, QUESTION)
        expect(page.locator("p.chat__txt.error")).to_contain_text("Unable to generate answer for this query")
        ask_component(page, SECOND)
        expect(page.locator("p.chat__txt.error").nth(1)).to_contain_text("we are having some problems")


# The React front end of 2025


@contextlib.contextmanager
def react(chromium, site, person):
    folder = front_end("rag-chat-2025")
    origin = Origin(folder, RAG_CHAT, site.url)
    with origin, opened(chromium, origin, session_of(site, person), SCROLL) as page:
        page.goto(origin.url)
        yield origin, page


def ask_react(page, question):
    page.locator("textarea[placeholder]").fill(question)
    page.keyboard.press("Enter")


def answers(page):
    return page.locator("[class*=answerContainer]")


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_the_react_front_end_answers_two_questions_and_opens_every_panel(chromium, site, person, streamed):
    with react(chromium, site, person) as (origin, page):
        page.get_by_role("button", name="Developer settings").click()
        page.get_by_text("Suggest follow-up questions").click()
        if not streamed:
            page.get_by_text("Stream chat completion responses").click()
        page.get_by_role("button", name="Close").last.click()
        ask_react(page, QUESTION)
        first = answers(page).first
        expect(first.locator("sup").first).to_have_text("1")
        expect(first).to_contain_text("full pay")
        expect(page.get_by_role("button", name="Show thought process").first).to_be_enabled()

        # The citation first: the front end fetches the file only when its panel opens.
        first.locator("[class*=citation]").filter(has_text=CITED).first.click()
        frame = page.frame_locator("iframe[title=Citation]")
        expect(frame.locator("body")).to_contain_text("Partners have four weeks at full pay")
        page.get_by_role("button", name="Show thought process").first.click()
        expect(page.get_by_text("Original user query")).to_be_visible()
        expect(page.get_by_text("Generated search query")).to_be_visible()
        page.get_by_role("button", name="Show supporting content").first.click()
        expect(page.get_by_role("heading", name=CITED).first).to_be_visible()

        ask_react(page, SECOND)
        expect(answers(page)).to_have_count(2)
        expect(answers(page).nth(1).locator("sup").first).to_be_visible()
        well(origin, 2)
        first_body, second_body = map(json.loads, origin.bodies())
        assert second_body["session_state"]
        assert isinstance(first_body["context"]["overrides"]["vector_fields"], str)
        assert page.faults == []


def test_the_react_front_end_asks_a_follow_on_and_keeps_its_history(chromium, scripted, person):
    with react(chromium, scripted, person) as (origin, page):
        page.get_by_role("button", name="Developer settings").click()
        page.get_by_text("Suggest follow-up questions").click()
        expect(page.get_by_label("Suggest follow-up questions")).to_be_checked()
        page.get_by_role("button", name="Close").last.click()
        ask_react(page, QUESTION)
        page.get_by_text("And why?").click()
        expect(answers(page)).to_have_count(2)
        expect(page.get_by_role("button", name="Show thought process").nth(1)).to_be_enabled()
        assert json.loads(origin.bodies()[1])["messages"][-1]["content"] == "And why?"
        page.get_by_role("button", name=re.compile("chat history")).click()
        expect(page.get_by_text(QUESTION).first).to_be_visible()
        well(origin, 2)


def test_a_script_in_a_cited_html_file_does_not_run_in_the_react_front_end(chromium, scripted, tmp_path):
    file = tmp_path / "freight-lift.html"
    file.write_text(
        "<!doctype html><title>Freight lift</title><h1>Freight lift</h1>"
        "<p>The freight lift is booked with the form LIFT-7 of the harbour office.</p>"
        "<script>parent.document.title = document.title = 'taken'</script>"
    )
    share_with_guests(scripted, file)
    wait_for_documents(scripted)
    with react(chromium, scripted, "guest") as (_, page):
        ask_react(page, "With which form is the freight lift booked?")
        cited = answers(page).first.locator("[class*=citation]").filter(has_text="freight-lift")
        cited.first.click()
        # The front end shows the file from a blob: URL, a page of its own origin.
        shown = page.frame_locator("iframe[title=Citation]").locator("body")
        expect(shown).to_contain_text("LIFT-7")
        assert "taken" not in page.title()
        expect(shown).to_contain_text("<script>")


def test_the_ask_tab_of_the_react_front_end_answers_with_its_settings(chromium, site, person):
    with react(chromium, site, person) as (origin, page):
        page.goto(f"{origin.url}/#/qa")
        page.get_by_role("button", name="Developer settings").click()
        page.get_by_label(re.compile("Retrieve this many search results")).fill("2")
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Close").last.click()
        for number, question in enumerate((QUESTION, SECOND), start=1):
            ask_react(page, question)
            expect(page.locator("sup").first).to_be_visible()
            well(origin, number)
        assert [json.loads(body)["context"]["overrides"]["top"] for body in origin.bodies()] == [2, 2]
        page.get_by_role("button", name="Show thought process").first.click()
        expect(page.get_by_text("Original user query")).to_be_visible()


def test_the_react_front_end_shows_errors(chromium, scripted, model):
    with react(chromium, scripted, "guest") as (_, page):
        model.script("reset")
        ask_react(page, QUESTION)
        expect(page.get_by_text("The answer was interrupted.")).to_be_visible()
        page.get_by_role("button", name="Retry").click()
        expect(answers(page).first.locator("sup").first).to_be_visible()


def test_the_react_front_end_shows_no_unsupported_features(chromium, offline):
    with react(chromium, offline, "guest") as (_, page):
        page.get_by_role("button", name="Developer settings").click()
        expect(page.get_by_text("Suggest follow-up questions")).to_be_visible()
        for feature in ("semantic ranker", "GPT vision", "query rewriting", "Login", "Manage file uploads"):
            expect(page.get_by_text(feature)).to_have_count(0)
