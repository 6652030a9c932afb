"""The portal as a person meets it, in headless Chromium, on the server that `make run` uses."""

import pytest

from chatsite.tests.long_answer import LONG_QUESTION

pytestmark = [pytest.mark.browser, pytest.mark.server]

QUESTION = "When must carried days of leave be used?"
HR_QUESTION = "What is Project Halyard?"
NOTHING = "Nothing in the documents you may read answers this."
PROSE = ".answer:last-of-type .prose"
SECOND_HAS_A_BLOCK = "!!document.querySelectorAll('.answer')[1].querySelector('.prose > blockquote')"


def ask(page, question):
    """By the key on a desk, by the button on a phone, where Enter begins a new line."""
    page.type("#question", question)
    if page.run("matchMedia('(pointer: coarse)').matches"):
        page.click(".composer .send")
    else:
        page.press("Enter")
    page.wait_until("location.pathname.startsWith('/c/')")
    page.wait_for(".question", question)


def wait_for_state(page, state, seconds=30):
    page.wait_until(f"[...document.querySelectorAll('.answer')].at(-1)?.dataset.state === '{state}'", seconds)


def signed_in(browser, site, username, **view):
    page = browser.page(site.url, **view)
    page.sign_in(username, site.passwords[username])
    return page


def test_a_question_is_answered_with_a_citation_that_opens_the_very_page(browser, slow_site):
    with signed_in(browser, slow_site, "employee", width=1440) as page:
        page.go("/")
        ask(page, QUESTION)
        wait_for_state(page, "streaming")
        growing = [len(page.text(PROSE))]
        page.settle(1)
        growing.append(len(page.text(PROSE)))
        assert growing[1] > growing[0], "the text does not grow while it streams"
        wait_for_state(page, "complete")
        assert "31 March" in page.text(PROSE)
        page.click(".answer .cite")
        page.wait_for("#source mark", "31 March")
        assert "Employee Handbook" in page.text("#source")
        assert "page 4" in page.text("#source").lower()
        page.click("#source .tabs a:nth-of-type(2)")
        image = "document.querySelector('#source img')"
        page.wait_until(f"{image} && {image}.complete && {image}.naturalWidth > 400")
        assert page.problems == []


def test_a_reload_in_mid_answer_loses_nothing(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        ask(page, QUESTION)
        wait_for_state(page, "streaming")
        page.settle(0.8)
        page.reload()
        page.wait_for(".question", QUESTION)
        wait_for_state(page, "complete")
        streamed = page.text(PROSE)
        page.reload()
        assert page.text(PROSE) == streamed
        assert "31 March" in streamed
        assert page.count(".question") == 1
        page.go("/")
        assert any("leave" in title for title in page.texts("nav .row .text"))
        assert page.problems == []


def test_a_question_about_what_one_may_not_read_finds_nothing_and_its_reader_gets_the_answer(
    browser, slow_site
):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        ask(page, HR_QUESTION)
        wait_for_state(page, "complete")
        assert NOTHING in page.text(PROSE)
        assert "reorganisation" not in page.text().lower()
        assert page.count(".answer .cite") == 0
        page.go("/documents/")
        assert "reorganisation" not in page.text().lower()
    with signed_in(browser, slow_site, "hr") as page:
        page.go("/")
        ask(page, HR_QUESTION)
        wait_for_state(page, "complete")
        assert "Halyard" in page.text(".answer")


def test_a_stop_keeps_what_had_arrived(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        ask(page, LONG_QUESTION)
        page.wait_until(f"document.querySelector('{PROSE}')?.innerText.length > 10")
        page.click("#stop")
        wait_for_state(page, "stopped")
        assert "You stopped this answer." in page.text("main")
        assert len(page.text(PROSE)) > 10


def test_two_tabs_see_the_same_answer(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as one, signed_in(browser, slow_site, "employee") as two:
        one.go("/")
        ask(one, QUESTION)
        two.go(one.path)
        wait_for_state(one, "complete")
        wait_for_state(two, "complete", 5)
        assert one.text(PROSE) == two.text(PROSE)


def test_a_question_of_another_tab_is_shown_and_what_was_typed_here_is_kept(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as one, signed_in(browser, slow_site, "employee") as two:
        one.go("/")
        ask(one, QUESTION)
        wait_for_state(one, "complete")
        two.go(one.path)
        one.type("#question", LONG_QUESTION)
        one.press("Enter")
        wait_for_state(one, "streaming")
        two.type("#question", "And sick leave?")
        two.press("Enter")
        two.wait_for(".question", LONG_QUESTION)
        assert two.run("document.querySelector('#question').value") == "And sick leave?"


def test_who_is_signed_out_elsewhere_finds_the_way_back_and_what_was_typed(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        ask(page, QUESTION)
        wait_for_state(page, "complete")
        conversation = page.run("location.pathname")
        page.run(
            "fetch('/accounts/sign-out/', {method: 'POST', redirect: 'manual', body: new URLSearchParams("
            "{csrfmiddlewaretoken: document.querySelector('[name=csrfmiddlewaretoken]').value})})"
            ".then(() => true)"
        )
        page.type("#question", "And sick leave?")
        page.press("Enter")
        page.click("#banner a")
        page.type("input[name=username]", "employee")
        page.type("input[name=password]", slow_site.passwords["employee"])
        page.press("Enter")
        page.wait_until(
            f"location.pathname === '{conversation}' && document.querySelector('#question')?.value"
        )
        assert page.run("document.querySelector('#question').value") == "And sick leave?"


def test_the_focus_stays_in_the_question_box_after_a_first_question(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        ask(page, QUESTION)
        page.wait_until("document.activeElement.id === 'question'")
        wait_for_state(page, "complete")
        assert page.run("document.activeElement.id") == "question"


def test_a_link_to_a_source_shows_the_answer_that_cites_it(browser, slow_site):
    with signed_in(browser, slow_site, "employee", width=1440, height=500) as page:
        page.go("/")
        ask(page, QUESTION)
        wait_for_state(page, "complete")
        page.click(".next button")
        page.wait_until("document.querySelectorAll('.question').length === 2")
        wait_for_state(page, "complete")
        page.click(".answer:last-of-type .cite, article:last-of-type .cite")
        page.wait_for("#source mark")
        link = page.path
        page.go("/")
        page.go(link)
        chip = "document.querySelector('.cite[aria-current]').getBoundingClientRect()"
        page.wait_until(f"{chip}.top > 0 && {chip}.bottom < innerHeight")


def test_without_scripts_the_same_page_works(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.scripts(False)
        page.go("/")
        page.type("#question", QUESTION)
        page.click(".composer .send")
        page.wait_for(".question", QUESTION)
        wait_for_state(page, "complete")  # which reloads itself
        assert "31 March" in page.text(PROSE)
        page.click(".answer .cite")
        page.wait_for("#source mark", "31 March")


def test_the_question_box_is_one_tab_away_and_a_source_two(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        ask(page, QUESTION)
        wait_for_state(page, "complete")
        page.reload()
        page.press("Tab")
        page.press("Enter")
        assert page.run("document.activeElement.id") == "question"
        page.press("Shift+Tab")
        page.press("Shift+Tab")
        assert page.run("document.activeElement.matches('.source-row, .cite, .next button')")


def test_a_team_of_agents_answers_each_under_its_name(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        page.run("document.querySelector('#mode').value = 'team'")
        ask(page, QUESTION)
        page.wait_until("document.querySelectorAll('.answer').length === 3", 60)
        wait_for_state(page, "complete", 60)
        assert page.texts(".agent") == ["Researcher", "Reviewer", "Editor"]
        shown = page.texts(".answer .prose")
        page.reload()
        assert page.texts(".answer .prose") == shown
        assert page.problems == []


def test_a_reload_in_the_middle_of_a_team_repeats_nothing(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        page.go("/")
        page.run("document.querySelector('#mode').value = 'team'")
        ask(page, QUESTION)
        page.wait_until(f"document.querySelectorAll('.answer').length === 2 && {SECOND_HAS_A_BLOCK}", 60)
        page.reload()
        page.wait_until("document.querySelectorAll('.answer').length === 3", 60)
        wait_for_state(page, "complete", 60)
        shown = page.texts(".answer .prose")
        page.reload()
        assert page.texts(".answer .prose") == shown
        assert page.problems == []
