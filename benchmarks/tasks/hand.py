"""A simulated user: operates a page, and adds up the times of the keystroke-level model.

The times, in seconds, are those of Card, Moran and Newell (1980): K for a keystroke of an average typist, P
for pointing, B for pressing or releasing the mouse button, H for moving a hand between mouse and keyboard, M
for mental preparation. DIALOG, for choosing a file in the system's dialog, and SCROLL, for turning the wheel,
are our estimates. The time that the page takes to respond is measured and added.
"""

import itertools
import re
import time

from playwright.sync_api import expect

K, P, B, H, M, DIALOG, SCROLL = 0.28, 1.1, 0.1, 0.4, 1.35, 3.0, 1.1
MAX_TABS = 150
ARROWS = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")
SECONDS = 60.0  # long enough for a busy machine; reached only if an action is impossible
AT_END = "element => !('selectionEnd' in element) || element.selectionEnd === element.value.length"
# Whether arrow keys lead to the element: it is in the focused group, which has a single Tab stop.
ARROW_LEADS_THERE = """element => element.tabIndex < 0
    && Boolean(element.closest('[role=toolbar], .sources, .starts, .history')
        ?.contains(document.activeElement))"""
FOCUSED = "() => document.activeElement"
# A group remembers its Tab stop, so all stops are restored before each attempt.
KEEP_STOPS = "() => [...document.querySelectorAll('[tabindex]')].map(each => [each, each.tabIndex])"
RESTORE = "([stops, element]) => { for (const [each, at] of stops) each.tabIndex = at; element.focus(); }"
IN_SIGHT = """element => {
    const { top, bottom } = element.getBoundingClientRect();
    return (top + bottom) / 2 > 0 && (top + bottom) / 2 < innerHeight;
}"""


def name(words):
    """A pattern for accessible names that begin with these words."""
    return re.compile(rf"^\s*{re.escape(words)}", re.IGNORECASE)


class Hand:
    """Counts `steps`, and the `seconds` spent acting and waiting; with `keys_only`, never uses the mouse.

    With `shortcuts`, the tasks also use the keyboard shortcuts that the product's help lists.
    """

    def __init__(self, page, keys_only=False, shortcuts=False):
        self.page, self.keys_only, self.shortcuts = page, keys_only, shortcuts
        self.steps = 0
        self.acts = []  # the kind of each step
        self.acting = self.waiting = 0.0
        self._on_keys = True

    @property
    def seconds(self):
        return self.acting + self.waiting

    def get(self, role, words, last=False):
        found = self.page.get_by_role(role, name=name(words))
        return found.last if last else found.first

    def see(self, target):
        """Wait until the page shows the element."""
        started = time.monotonic()
        expect(target).to_be_visible(timeout=SECONDS * 1000)
        self.waiting += time.monotonic() - started

    def gone(self, target):
        """Wait until the page no longer shows the element."""
        self._timed(lambda: expect(target).to_have_count(0, timeout=SECONDS * 1000))

    def click(self, target):
        self.see(target)
        if self.keys_only:
            if target.get_attribute("type") == "radio":
                self._choose_by_arrows(target)
                return
            self.reach(target)
            self._press("Space" if target.get_attribute("type") == "checkbox" else "Enter")
            return
        if not target.evaluate(IN_SIGHT):
            self._step("scroll", SCROLL)
        self._step("click", M + P + 2 * B + (H if self._on_keys else 0))
        self._on_keys = False
        self._timed(target.click)

    def type(self, target, text):
        """Type into a field, after clicking it if it does not have the focus."""
        self.see(target)
        if not has_focus(target):
            if self.keys_only:
                self.reach(target)
            else:
                self.click(target)
        self._step("type", M + K * len(text) + (0 if self._on_keys else H))
        self._on_keys = True
        if not target.evaluate(AT_END):
            self._step("end", K)
            self.page.keyboard.press("Control+End")
        self.page.keyboard.type(text)

    def press(self, key):
        self._press(key)

    def choose(self, target, files):
        """Choose files in the system's dialog that the target opens."""
        with self.page.expect_file_chooser() as chooser:
            self.click(target)
        self._step("choose", M + DIALOG)
        self._timed(lambda: chooser.value.set_files(files))

    def _press(self, key):
        self._step(key, M + K * len(key.split("+")) + (0 if self._on_keys else H))
        self._on_keys = True
        self._timed(lambda: self.page.keyboard.press(key))

    def reach(self, target):
        """Move the focus to the target with the fewest keys, forwards or backwards; each key is a step.

        Within a group with a single Tab stop, arrow keys move the focus.
        """
        start, stops = (self.page.evaluate_handle(each) for each in (FOCUSED, KEEP_STOPS))
        ways = []
        for key, arrow in itertools.product(("Shift+Tab", "Tab"), ARROWS):
            self.page.evaluate(RESTORE, [stops, start])
            most = min([MAX_TABS, *(len(way) for way in ways if way)])
            ways.append(self._keys_to(target, key, arrow, most))
        found = [way for way in ways if way is not None]
        if not found:
            raise AssertionError("The element cannot be reached by keyboard.")
        best = min(found, key=len)
        target.focus()
        for _ in best:
            self._step("reach", K)

    def _keys_to(self, target, key, arrow, most):
        """The keys that lead to the target; None if it takes more than `most`."""
        pressed = []
        while not has_focus(target):
            if len(pressed) == most:
                return None
            pressed.append(arrow if target.evaluate(ARROW_LEADS_THERE) else key)
            self.page.keyboard.press(pressed[-1])
        return pressed

    def _choose_by_arrows(self, radio):
        """Choose a radio button with the arrow keys, because Tab reaches only the checked one."""
        self.reach(self.page.locator(f"[name={radio.get_attribute('name')}]:checked"))
        for _ in range(MAX_TABS):
            if radio.is_checked():
                return
            self._press("ArrowDown")
        raise AssertionError("The radio button cannot be reached by arrow keys.")

    def _step(self, kind, seconds):
        self.steps += 1
        self.acts.append(kind)
        self.acting += seconds

    def _timed(self, act):
        started = time.monotonic()
        act()
        self.waiting += time.monotonic() - started


def has_focus(target):
    return target.evaluate("element => element === document.activeElement")
