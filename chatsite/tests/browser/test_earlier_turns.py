"""Loading earlier turns of a conversation in Chromium: by scrolling, by the link, and by keyboard."""

import json

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, violations
from chatsite.tests.portal_pages import WIDE, signed_in, wait_until

pytestmark = [pytest.mark.server, pytest.mark.browser]

TURNS = 120  # two pages of 50, and 20 before them
PLACE = "number => document.querySelector(`#e-${2 * number}`).getBoundingClientRect().top"
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SHOWN = "document.querySelectorAll('.turn').length === {}"


@pytest.fixture(scope="module")
def address(site):
    """A long conversation of the employee."""
    session = site.sign_in("employee")
    conversation = session.post_json("/chat-history", {"title": "Long"}).json()["id"]
    messages = [
        {
            "id": f"{role}-{number}",
            "role": role,
            "content": f"{words} number {number}, with a few words more.",
        }
        for number in range(TURNS)
        for role, words in (("user", "Question"), ("assistant", "Answer"))
    ]
    reply = session.request(
        "PUT",
        f"/chat-history/{conversation}",
        json.dumps({"messages": messages}).encode(),
        session.headers({"Content-Type": "application/json"}),
    )
    assert reply.status == 200, reply.text
    return f"/c/{conversation}/"


def numbers(page):
    return page.evaluate("[...document.querySelectorAll('.turn')].map(turn => Number(turn.id.slice(2)) / 2)")


def place(page, number):
    """The position of a question in the window, after the page was painted."""
    page.evaluate(FRAMES)
    return page.evaluate(PLACE, number)


@pytest.mark.parametrize("device", [WIDE, PHONE], ids=["desk", "phone"])
def test_the_link_inserts_earlier_turns_above_without_moving_the_view(chromium, site, address, device):
    with signed_in(chromium, site, **device) as page:
        page.goto(address)
        assert numbers(page) == list(range(70, 120))
        assert violations(page) == []
        before = place(page, 70)
        page.get_by_role("link", name="Earlier questions").click()
        wait_until(page, SHOWN.format(100))
        assert abs(place(page, 70) - before) <= 1
        assert numbers(page) == list(range(20, 120))
        assert page.url.endswith(address)
        assert violations(page) == []


def test_scrolling_up_loads_every_turn_page_by_page_without_a_jump(chromium, site, address):
    with signed_in(chromium, site, **WIDE) as page:
        page.goto(f"{address}#latest")
        page.mouse.move(700, 300)
        page.evaluate("document.querySelector('#e-140').scrollIntoView()")
        for first, shown in ((70, 100), (20, 120)):
            with page.expect_response(lambda response: "?at=" in response.url):
                page.mouse.wheel(0, -50)
            wait_until(page, SHOWN.format(shown))
            assert numbers(page)[0] == max(0, first - 50)
            assert 0 < place(page, first) < 800  # the turn that was at the top of the window is still visible
            page.evaluate(f"document.querySelector('#e-{2 * max(0, first - 50)}').scrollIntoView()")
        assert numbers(page) == list(range(TURNS))
        expect(page.get_by_role("link", name="Earlier questions")).to_have_count(0)
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(node => node.id)")
        assert len(ids) == len(set(ids))


def test_by_keyboard_the_focus_moves_to_the_question_above_and_is_announced(chromium, site, address):
    with signed_in(chromium, site, **WIDE) as page:
        page.goto(address)
        page.evaluate("document.querySelector('#older').focus({preventScroll: true})")
        before = place(page, 70)
        page.keyboard.press("Enter")
        wait_until(page, SHOWN.format(100))
        expect(page.locator("#q-138")).to_be_focused()
        assert abs(place(page, 70) - before) <= 1
        expect(page.locator("#announcer")).to_contain_text("Earlier questions shown: 50")


def test_if_loading_fails_the_link_opens_the_page(chromium, site, address):
    with signed_in(chromium, site, with_problems=True, **WIDE) as page:
        page.goto(address)
        refused = []
        page.route(
            "**/c/**?at=*",
            lambda route: route.continue_() if refused else (refused.append(1), route.abort()),
        )
        page.evaluate("document.querySelector('#older').click()")
        page.wait_for_url("**?at=*")
        assert numbers(page) == list(range(20, 70))


def test_the_buttons_of_earlier_answers_work(chromium, site, address):
    with signed_in(chromium, site, **WIDE) as page:
        page.goto(address)
        page.evaluate("document.querySelector('#older').click()")
        wait_until(page, SHOWN.format(100))
        turn = page.locator("#e-80")
        turn.locator("[data-edit]").click()
        box = turn.locator("form.edit textarea")
        expect(box).to_be_focused()
        expect(box).to_have_value("Question number 40, with a few words more.")
