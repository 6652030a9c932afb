"""The composer counts characters as the server does, not UTF-16 units."""

import json
import shutil
import subprocess

import pytest
from django.conf import settings
from django.test import SimpleTestCase

STATE = settings.BASE_DIR / "static/scripts/composer/state.js"
# The few parts of a browser that the module needs: any element exists, and all elements are the same.
SCRIPT = """
const element = new Proxy({ value: TEXT, dataset: {} }, {
  get: (target, name) => target[name] ?? (() => undefined),
});
const dataset = {};
Object.assign(globalThis, {
  window: globalThis,
  document: { documentElement: { dataset }, body: { dataset }, querySelector: () => null, cookie: "" },
  location: { protocol: "https:", pathname: "/" },
  matchMedia: () => ({ matches: false }),
  addEventListener: () => undefined,
});
Object.defineProperty(globalThis, "navigator", { value: { onLine: true }, configurable: true });
const { composerState } = await import(STATE);
document.querySelector = selector => (selector === "[data-edit]" ? null : element);
const state = composerState({ dataset: { most: "10", hint: "rest", long: "{n} of {most}" }, action: "/" });
state.hinted();
console.log(JSON.stringify([state.count(TEXT), element.textContent]));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
class ComposerLengthTests(SimpleTestCase):
    def counted(self, text):
        script = SCRIPT.replace("TEXT", json.dumps(text)).replace("STATE", json.dumps(STATE.as_uri()))
        command = ["node", "--input-type=module", "-e", script]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def test_a_character_outside_the_basic_plane_counts_once(self):
        self.assertEqual(self.counted("🙂" * 9), [9, "rest"])
        self.assertEqual(self.counted("🙂" * 10), [10, "10 of 10"])
        self.assertEqual(self.counted("Grüße"), [5, "rest"])
