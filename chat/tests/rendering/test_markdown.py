"""What people expect of Markdown, complete and while it is streamed."""

import re
import time
from html.parser import HTMLParser
from unittest.mock import patch

import pytest
from django.test import SimpleTestCase

from chat.portal.exported_page import as_page
from chat.portal.rendering.code_blocks import LANGUAGES, _known, code_block
from chat.portal.rendering.markdown import (
    BlockRenderer,
    Chip,
    Citations,
    RenderingBudget,
    render,
    with_marks,
)
from chat.portal.rendering.markdown_rules import mathml

LABEL = "a.md#x"
RICH = f"""# Leave

Some **bold**, *it*, `code`, ~~gone~~ and [a link](https://a.example/x). Cited [{LABEL}]. Both $5 and $10.

### How

- [ ] open
- [x] done **now**
  1. nested [{LABEL}]

| Who | Days | Mid |
|:---|---:|:-:|
| all who work on one of the vessels of the fleet | 5 | x |

> | In | quote |
> |----|-------|
> | a  | b     |

```python
def days(x):
    return 20  # each
```

Inline \\(x^2\\) and $a_1 < b$.

\\[ \\frac{{a}}{{b}} \\]

A note[^1].

[^1]: The note.

---

**Bold [{LABEL}] end** and *more*
"""
HOSTILE = (
    "<svg onload=alert(1)>",
    "<math><mtext><script>alert(1)</script></mtext></math>",
    "<b>x</b>",
    "$\\text{<script>alert(1)</script>}$",
    "$\\href{javascript:alert(1)}{x}$",
    "$\\text{<img src=x onerror=a>}$",
    "```\n</code></pre><script>alert(1)</script>",
    "[a](javascript:alert(1))",
    "![x](//evil.example/p.png)",
    "| <img src=x> |\n|---|\n| <b> |",
    "[^<script>]: x",
    "- [x] <img src=x onerror=alert(1)>",
    "<!--",
    "<![CDATA[x",
    "a\u202emoc.elpmaxe\u202c",
    "&lt;script&gt;",
    "[x](https://e.example 'a\" onclick=alert(1) x=')",
    "`<script>`",
    "<https://e.example/<script>>",
)
ALLOWED = re.compile(r"(?:https?://|mailto:|\?source=|#fn-)")


def citations():
    return Citations(1, {LABEL: Chip("A")})


class Elements(HTMLParser):
    """Collects the elements and the text of HTML."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


class ConstructTests(SimpleTestCase):
    def test_headings_have_levels_below_the_question(self):
        self.assertEqual(
            [tag for tag, _ in Elements(render("# A\n\n## B\n\n### C\n\n#### D", citations())).found],
            ["h3", "h3", "h4", "h5"],
        )

    def test_code_has_its_language_its_colours_and_a_button(self):
        page = render("```py\ndef f(): return 'x'  # c\n```", citations())
        self.assertIn("<span>Python</span><button", page)
        self.assertIn('aria-label="Code, Python, 1 line"', page)
        for kind, text in (("w", "def"), ("f", "f"), ("s", "&#x27;x&#x27;"), ("c", "# c")):
            self.assertIn(f'<span class="{kind}">{text}</span>', page.replace("'", "&#x27;"))
        self.assertIn("<code>&lt;b&gt;\n</code>", render("```weird\n<b>\n```", citations()))

    def test_every_language_of_the_list_has_its_lexer(self):
        self.assertEqual(set(_known()), set(LANGUAGES))

    def test_formulas_become_mathml_and_money_stays_money(self):
        for text in ("\\(x^2\\)", "$x^2$", "\\[x^2\\]", "$$\nx^2\n$$"):
            self.assertIn("<msup><mi>x</mi><mn>2</mn></msup>", render(text, citations()), text)
        self.assertEqual(render("$5 and $10", citations()), "<p>$5 and $10</p>")
        scrolled = '<span class="formula" tabindex="0" role="group" aria-label="Formula"><math'
        self.assertIn(scrolled, render("$$\\sum x$$", citations()))
        long = "word " * 500
        self.assertIn("<msup>", render(f"- {long} \\(x\n- {long} \\(x^2\\)", citations()))
        self.assertIn("<code>\\frac{</code>", render("\\(\\frac{\\)", citations()))

    def test_a_table_too_wide_for_a_phone_is_stacked_unless_it_is_long_and_wide(self):
        for columns, rows, cell, stacked in (
            (3, 9, "twenty minutes before", True),
            (3, 9, "09:05", False),
            (3, 0, "twenty minutes before", False),
            (2, 9, "twenty minutes before departure", False),
            (9, 3, "twenty minutes", True),
            (9, 4, "twenty minutes", False),
        ):
            row = "|" + f" {cell} |" * columns + "\n"
            page = render(row + "|" + "-|" * columns + "\n" + row * rows, citations())
            self.assertEqual('class="table stacked"' in page, stacked, (columns, rows, cell))
            self.assertEqual("data-label" in page, stacked, (columns, rows, cell))

    def test_columns_keep_their_alignment_without_styles(self):
        page = render(RICH, citations())
        self.assertIn('<th scope="col" class="to-end" role="columnheader">Days</th>', page)
        self.assertIn('<td class="to-middle" role="cell" data-label="Mid">x</td>', page)
        self.assertNotIn("style", page)

    def test_tasks_have_boxes_with_names(self):
        page = render(RICH, citations())
        self.assertIn('role="img" aria-label="To do"></span> open', page)
        self.assertIn('class="task done" role="img" aria-label="Done"></span> done', page)

    def test_a_footnote_and_its_mark_lead_to_each_other_within_their_answer(self):
        page = render(RICH, citations())
        self.assertIn('note<sup><a href="#fn-1-1"', page)
        self.assertIn('<span class="note-mark" id="fn-1-1">1</span> The note.', page)

    def test_a_link_shows_the_host_that_it_leads_to(self):
        for text, host in (
            ("[our portal](https://evil.example/login)", "evil.example"),
            ("[https://a.example](https://evil.example)", "evil.example"),
            ("[x](https://a.example@evil.example/)", "evil.example"),
            ("[x](https://b\u00fccher.example)", "xn--bcher-kva.example"),
            ("[**x**](mailto:a@evil.example)", "a@evil.example"),
        ):
            self.assertIn(f'</a> <span class="host">({host})</span>', render(text, citations()), text)
        self.assertNotIn("host", render("<https://a.example/x>", citations()))

    def test_marks_of_statements_without_proof_change_no_other_markup(self):
        text = (
            "# Head\n\n1. one\n2. **two** and on\n   - three\n\n> four\n> five\n\n- [x] six\n\n"
            "| a | b |\n|---|--:|\n| seven | 8 |\n"
        )
        plain = render(text, citations())
        lines = [match.span() for match in re.finditer(r"[^\n]+", text) if "|--" not in match[0]]
        whole_list, whole_quotation = (lines[1][0], lines[3][1]), (lines[4][0], lines[5][1])
        spans = [*lines, whole_list, whole_quotation]
        for start, end in spans:
            marked = render(with_marks(text, [(start, end)]), citations())
            self.assertIn("missing", marked)
            self.assertEqual(re.sub(r'<span class="missing">([^<]*)</span>', r"\1", marked), plain)

    def test_bidirectional_control_characters_are_removed(self):
        self.assertEqual(render("a\u202eb\u2066c", citations()), "<p>a\u200bb\u200bc</p>")

    def test_markup_nested_too_deeply_is_shown_as_source(self):
        for unit in ("> ", "- ", "1. "):
            self.assertIn("deep words", render(f"{1_000 * unit}deep words", citations()))


class OpenTests(SimpleTestCase):
    def assert_bare(self, shown, text):
        for mark in ("**", "```", "~~", "](", "|-", "$$", "\\(", "\\[", "[^", "- [", LABEL):
            self.assertNotIn(mark, shown, text)
        self.assertNotRegex(shown, r"(?m)^\s*(?:#|>|\||[-*+] |`)", text)

    def test_no_markup_shows_at_any_moment(self):
        renderer, done = BlockRenderer(citations()), []
        for place, character in enumerate(RICH):
            done += renderer.feed(character)
            self.assert_bare(
                Elements("".join(done) + renderer.open).text, RICH[max(0, place - 30) : place + 1]
            )

    def test_unfinished_emphasis_code_and_links_look_like_finished_ones(self):
        for text, shown in (
            ("Some **bold wor", "<p>Some <strong>bold wor</strong></p>"),
            ("Some **bold *and", "<p>Some <strong>bold <em>and</em></strong></p>"),
            ("Some `code", "<p>Some <code>code</code></p>"),
            ("See [the pl", "<p>See</p>"),
            ("See [the plan](https://a.ex", "<p>See the plan</p>"),
            ("# Tit", "<h3>Tit</h3>"),
            ("- one\n- ", "<ul>\n<li>one</li>\n</ul>"),
            ("Cited [a.md", "<p>Cited</p>"),
            ("It costs $5", "<p>It costs $5</p>"),
        ):
            renderer = BlockRenderer(citations())
            renderer.feed(text)
            self.assertEqual(renderer.open, shown, text)
        renderer = BlockRenderer(citations())
        renderer.feed("| Who | Da")
        self.assertIn("<th", renderer.open)

    def test_the_numbers_of_an_open_block_are_not_links_yet(self):
        renderer = BlockRenderer(citations())
        renderer.feed(f"Cited [{LABEL}] and")
        self.assertNotIn("href", renderer.open)
        self.assertIn('<span class="cite">1</span>', renderer.open)


class HostileTests(SimpleTestCase):
    def check(self, page):
        for tag, attributes in Elements(page).found:
            self.assertNotIn(
                tag, {"script", "img", "style", "svg", "iframe", "object", "form", "input"}, page
            )
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on") or name in {"src", "style", "srcset"}, page)
                if name == "href":
                    self.assertRegex(value or "", ALLOWED, page)

    @pytest.mark.slow
    def test_hostile_markup_neither_runs_nor_loads_whole_or_streamed(self):
        for text in HOSTILE:
            for around in ("{}", "**{}", "- {}", "> {}", "| {} |\n|---|\n| {} |", "[{}](https://a.example)"):
                whole = around.replace("{}", text)
                self.check(render(whole, citations()))
                renderer = BlockRenderer(citations())
                for character in whole:
                    renderer.feed(character)
                    self.check(renderer.open)

    def test_html_is_shown_as_text(self):
        for text in HOSTILE[:3]:
            self.assertEqual(Elements(render(text, citations())).text, text)

    def test_a_page_of_many_hostile_blocks_takes_a_bounded_time_and_loses_no_text(self):
        blocks = [f"{number} {'[' * 3_000}" for number in range(200)]
        for pages in (self.answers, self.export):
            before = time.thread_time()
            with patch("chat.portal.rendering.markdown.PAGE_SECONDS", 0.05):
                text = Elements(pages(blocks)).text
            self.assertLess(time.thread_time() - before, 5, pages)
            for number in (0, 100, 199):
                self.assertIn(blocks[number], text)

    def answers(self, blocks):
        budget = RenderingBudget()
        halves = ("\n\n".join(half) for half in (blocks[:100], blocks[100:]))
        return "\n".join(render(half, Citations(budget=budget)) for half in halves)

    def export(self, blocks):
        return as_page("Export", ["\n\n".join(blocks)])

    # A shorter limit than the product's makes the test faster.
    @pytest.mark.slow
    @patch("chat.portal.rendering.code_blocks.LONGEST_SECONDS", 0.01)
    def test_hostile_code_and_formulas_take_a_bounded_time(self):
        for language in LANGUAGES:
            for unit in ("\n", "a\n", "//", "!", "[](", "= ", "'", "<!--"):
                before = time.thread_time()
                code_block(language, (unit * 10_000)[:10_000])
                self.assertLess(time.thread_time() - before, 10, (language, unit))
        for unit in ("{", "^", "_{", "\\left(", "\\frac", "&", "\\\\", "\\begin{matrix}"):
            before = time.thread_time()
            mathml((unit * 2_000)[:2_000])
            self.assertLess(time.thread_time() - before, 10, unit)
