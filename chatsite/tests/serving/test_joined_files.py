"""The joined styles and scripts that production serves instead of the source files."""

import re

import pytest

from chatsite.joined_files import ENTRIES, CannotJoin, join
from chatsite.tests.server import BASE

STATIC = BASE / "static"
MAX_LINES = 500


def read(name):
    return (STATIC / name).read_text(encoding="utf-8")


def joined(files, entry="page.js"):
    return join(entry, files.__getitem__)[0]


def refusal(files, entry="page.js"):
    with pytest.raises(CannotJoin) as caught:
        joined(files, entry)
    return str(caught.value)


def test_a_module_comes_after_those_that_it_imports_and_once():
    text = joined(
        {
            "page.js": "import { show } from './parts/show.js';\nimport './parts/words.js';\nshow();\n",
            "parts/show.js": "// About it.\nimport { t as word } from './words.js';\n\n"
            "export function show() {\n  return word();\n}\n",
            "parts/words.js": "export const t = () => 'word';\nconst inside = 1;\n"
            "export async function late() {}\n",
        }
    )
    words, show = text.index("const parts_words = (() => {"), text.index("const parts_show = (() => {")
    assert words < show < text.index("const { show } = parts_show;\n") < text.index("\nshow();")
    assert text.count("() => 'word'") == 1
    assert "const { t: word } = parts_words;\n" in text
    assert "return { t, late };\n})();" in text
    assert "return { show };\n})();" in text
    assert "About it" not in text
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)


def test_an_entry_keeps_what_it_exports():
    text = joined({"page.js": "import './part.js';\n\nexport function begin() {}\n", "part.js": "let a;\n"})
    assert text.endswith("\nexport function begin() {}\n")


@pytest.mark.parametrize(
    "line",
    [
        "export default 1;",
        "export let changing;",
        "export { a };",
        "import a from './a.js';",
        "import * as a from './a.js';",
    ],
)
def test_an_unsupported_form_of_import_is_named(line):
    assert line in refusal({"page.js": "import './part.js';\n", "part.js": f"{line}\n"})


def test_modules_that_import_each_other_are_named():
    files = {"page.js": "import './a.js';\n", "a.js": "import './b.js';\n", "b.js": "import './a.js';\n"}
    assert refusal(files) == "a.js imports itself by way of b.js."


def test_sheets_keep_their_order_and_their_addresses():
    files = {
        "page.css": '/* About it. */\n@import "./parts/first.css";\n@import "./parts/second.css";\n',
        "parts/first.css": 'a {\n  background: url("../mark.svg");\n}\n',
        "parts/second.css": 'b {\n  background: url("data:image/gif;base64,AA");\n}\n',
    }
    assert joined(files, "page.css") == (
        '/* About it. */\na {\n  background: url("mark.svg");\n}\n'
        'b {\n  background: url("data:image/gif;base64,AA");\n}\n'
    )
    assert "first.css imports a sheet" in refusal(
        {**files, "parts/first.css": '@import "./third.css";\n'}, "page.css"
    )


def test_each_part_belongs_to_one_entry_and_has_a_beginning_that_says_what_it_is():
    parts = [part for entry in ENTRIES for part in join(entry, read)[1]]
    assert len(parts) == len(set(parts))
    folders = [*STATIC.glob("styles/*/*.css"), *STATIC.glob("scripts/*/*.js")]
    assert set(parts) == {path.relative_to(STATIC).as_posix() for path in folders}
    for name in parts:
        text = read(name)
        assert text.startswith("/* " if name.endswith(".css") else "// "), name
        assert text.count("\n") <= MAX_LINES, name
