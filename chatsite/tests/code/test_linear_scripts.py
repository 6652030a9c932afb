"""The regular expressions of the portal's JavaScript, each on 200,000 characters in the browser."""

import contextlib
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[3] / "static"
# A literal follows a token that cannot end a value, and is not a comment.
LITERAL = re.compile(
    r"(?<=[=(,:!&|?;\s\[])/(?![/*\s])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+)/([dgimsuvy]*)(?=[\s.,;)\]])"
)
UNITS = [*" \t\n[]()<>\"'\\7a;=:/●…", "a ", " [", "\n\n ", "; ", "csrftoken", "; csrftoken"]
MAX_MILLISECONDS = 3_000  # for 200,000 characters; quadratic time would be minutes
MEASURE = """
([source, flags, unit]) => {
  const expression = new RegExp(source, flags.replace('g', '') + 'g');
  let worst = 0;
  for (const size of [4000, 200000]) {
    const text = unit.repeat(Math.ceil(size / unit.length)) + 'x';
    const begun = performance.now();
    text.replace(expression, '');
    worst = Math.max(worst, performance.now() - begun);
    if (worst > 30 && size === 4000) return 2500 * worst;
  }
  return worst;
}
"""


def literals():
    return [
        (str(path.relative_to(STATIC)), match[1], match[2])
        for path in sorted(STATIC.glob("**/*.js"))
        for match in LITERAL.finditer(path.read_text())
    ]


def test_no_expression_of_a_script_takes_longer_than_the_length_of_its_text(chromium):
    found = literals()
    assert {"api_docs.js", "scripts/answers/copying.js", "scripts/answers/terms.js"} <= {
        name for name, _, _ in found
    }
    with contextlib.closing(chromium.new_page()) as page:
        for name, source, flags in found:
            for unit in UNITS:
                spent = min(page.evaluate(MEASURE, [source, flags, unit]) for _ in range(2))
                assert spent < MAX_MILLISECONDS, f"{name}: /{source}/{flags} on {unit!r}: {spent:.0f} ms"


def test_no_expression_of_a_script_is_built_at_run_time():
    for path in STATIC.glob("**/*.js"):
        assert "RegExp(" not in path.read_text(), path
