"""The counts of the benchmark of everyday tasks, on a page that does nothing."""

from unittest.mock import MagicMock, patch

import pytest

from benchmarks.tasks.hand import DIALOG, SCROLL, B, H, Hand, K, M, P


class Control:
    """A control of the page, with or without the focus."""

    def __init__(self, focused=False, in_sight=True, at_end=True):
        self.focused, self.in_sight, self.at_end = focused, in_sight, at_end

    def evaluate(self, script):
        if "activeElement" in script:
            return self.focused
        return self.at_end if "selectionEnd" in script else self.in_sight

    def get_attribute(self, name):
        return None

    def click(self):
        self.focused = True


@pytest.fixture
def hand():
    with patch.object(Hand, "see"):
        yield Hand(MagicMock())


def test_a_question_typed_into_the_focused_field_is_two_steps(hand):
    hand.type(Control(focused=True), "Why?")
    hand.press("Enter")
    assert hand.steps == 2
    assert hand.acting == pytest.approx(M + 4 * K + M + K)


def test_the_hand_moves_to_the_mouse_once(hand):
    hand.click(Control())
    hand.click(Control())
    assert hand.steps == 2
    assert hand.acting == pytest.approx(H + 2 * (M + P + 2 * B))


def test_a_control_outside_the_view_costs_a_scroll(hand):
    hand.click(Control(in_sight=False))
    assert hand.steps == 2
    assert hand.acting == pytest.approx(SCROLL + H + M + P + 2 * B)


def test_a_caret_before_the_text_costs_a_key(hand):
    hand.type(Control(focused=True, at_end=False), "x")
    assert hand.steps == 2
    assert hand.acting == pytest.approx(K + M + K)


def test_files_are_a_click_and_a_choice(hand):
    hand.choose(Control(), ["one", "two"])
    assert hand.steps == 2
    assert hand.acting == pytest.approx(H + M + P + 2 * B + M + DIALOG)
