"""Markdown to safe HTML: what is kept and removed, however a streamed text is split."""

import random
import re
import time
from html.parser import HTMLParser

from django.test import SimpleTestCase

from chat.portal.rendering.markdown import (
    BlockRenderer,
    BlockSplitter,
    Chip,
    Citations,
    render,
    split,
)

HANDBOOK = "handbook.pdf#page=3"
GONE = "pay/salaries.xlsx#sheet=2026"

LONG = f"""## Working abroad

You may work from another country for **20 days** [{HANDBOOK}].
The line manager agrees [{GONE}], and [this] is text.

1. First

   with a paragraph [{HANDBOOK}]

2. Second

   ```python
   def days():

       return "```"
   ```

After the list.

| Who | Days |
|-----|-----:|
| staff [{HANDBOOK}] | 20 |

```
a fence

- with [{HANDBOOK}]

```

- a
- b


Last words *without an end [{HANDBOOK}
"""

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![words](https://evil.example/leak.png)",
    "[![a](https://evil.example/a.png)](https://evil.example/)",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "[click](//evil.example/)",
    "[click](/accounts/sign-out/)",
    "<javascript:alert(1)>",
    "<a href='javascript:alert(1)' onclick='alert(1)'>x</a>",
    '```"><script>alert(1)</script>\ncode\n```',
    '[x](https://ok.example "\\"onmouseover=alert(1) x=")',
    "| <img src=x onerror=alert(1)> |\n|---|\n| <style>*{}</style> |",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "[handbook.pdf#page=3]: https://evil.example",
)


def citations() -> Citations:
    return Citations(3, {HANDBOOK: Chip("Handbook, page 3"), GONE: Chip()})


class Elements(HTMLParser):
    """Collects the elements and attributes that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


class RenderingTests(SimpleTestCase):
    def test_a_citation_becomes_a_numbered_link_with_the_name_of_its_source(self) -> None:
        page = render(f"Twenty days [{HANDBOOK}].", citations())
        self.assertIn('href="?source=3.1&amp;s=1#marked"', page)
        self.assertIn('aria-label="1: Handbook, page 3"', page)

    def test_the_last_word_the_chip_and_the_full_stop_stay_together(self) -> None:
        page = render(f"Up to twenty days [{HANDBOOK}]. More.", citations())
        self.assertRegex(page, r'twenty <span class="nowrap">days <a [^>]+>1</a>\.</span> More\.')

    def test_a_deleted_source_keeps_its_number_and_loses_its_name(self) -> None:
        page = render(f"A [{HANDBOOK}] and b [{GONE}].", citations())
        self.assertIn('class="cite gone" href="?source=3.2&amp;s=2#marked"', page)
        self.assertNotIn("salaries", page)

    def test_chips_of_one_source_carry_their_own_statements_in_order_of_the_text(self) -> None:
        page = render(f"A [{HANDBOOK}].\n\n`[{HANDBOOK}]`\n\n- b [{GONE}]\n- c [{HANDBOOK}]", citations())
        links = [attributes["href"] for tag, attributes in Elements(page).found if tag == "a"]
        self.assertEqual(
            links, [f"?source=3.{source}&s={number}#marked" for source, number in ((1, 1), (2, 2), (1, 3))]
        )

    def test_other_brackets_stay_text(self) -> None:
        self.assertEqual(render("See [1] and [x].", citations()), "<p>See [1] and [x].</p>")

    def test_the_numbers_of_a_finished_answer_are_those_of_its_row(self) -> None:
        known = Citations(3, citations().chips, [GONE, HANDBOOK])
        self.assertIn(">2</a>", render(f"Only [{HANDBOOK}].", known))

    def test_cells_of_a_stacked_table_have_the_names_of_their_columns_and_stay_a_table(self) -> None:
        row = "| W20 | **a < b** | Monday to Friday, except on public holidays |\n"
        page = render(f'| Sailing | Depart & "go" | Days |\n|---|--:|---|\n{row}', citations())
        self.assertIn('<table role="table">', page)
        self.assertIn('<th scope="col" class="to-end" role="columnheader">', page)
        self.assertIn('<td role="cell" data-label="Sailing">W20</td>', page)
        self.assertIn('data-label="Depart &amp; &quot;go&quot;"><strong>a &lt; b</strong></td>', page)
        self.assertNotIn("data-label", render("| A | B |\n|---|---|\n| 1 | 2 |\n", citations()))

    def test_a_row_of_many_columns_is_cited_in_its_first_cell(self) -> None:
        head = "| V | A | B | C | D | E |\n|---|---|---|---|---|---|\n"
        page = render(head + f"| Tern | 1 | 2 | 3 | 4 | 54 [{HANDBOOK}] |\n", citations())
        self.assertIn('<div class="block wide">', page)
        self.assertIn("Table with 6 columns", page)
        first, *_, last = page.split("<tbody")[1].split("</td>")[:-1]
        self.assertIn('href="?source=3.1&amp;s=1#marked"', first)
        self.assertTrue(last.endswith(">54 "), last)
        both = render(head + f"| Tern [{GONE}] | 1 | 2 | 3 | 4 | 54 [{HANDBOOK}] |\n", citations())
        self.assertIn(">2</a>", both.split("</td>")[5])

    def test_a_table_has_a_name_can_be_reached_by_keyboard_and_is_no_landmark(self) -> None:
        page = render("| Who | Days |\n|---|---|\n| a | 1 |", citations())
        self.assertIn('<div class="table" tabindex="0" role="group" aria-label="Table: Who, Days">', page)

    def test_an_image_is_reduced_to_its_text(self) -> None:
        self.assertEqual(render("![a plan](https://evil.example/p.png)", citations()), "<p>a plan</p>")

    def test_headings_stand_below_the_question(self) -> None:
        self.assertEqual(render("# A\n\n### B\n\n#### C", citations()), "<h3>A</h3>\n<h4>B</h4>\n<h5>C</h5>")

    def test_a_title_cannot_leave_its_attribute(self) -> None:
        chips = {HANDBOOK: Chip('"><script>alert(1)</script>')}
        page = render(f"x [{HANDBOOK}]", Citations(1, chips))
        self.assertEqual([tag for tag, _ in Elements(page).found], ["p", "span", "a"])


class HostileTests(SimpleTestCase):
    def check(self, page: str) -> None:
        for tag, attributes in Elements(page).found:
            self.assertNotIn(tag, {"script", "img", "style", "svg", "iframe", "object", "form", "math"})
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on") or name in {"src", "style", "srcset"}, page)
                if name == "href":
                    self.assertRegex(value or "", r"^(https?://|mailto:|\?source=)", page)

    def test_no_markup_of_a_model_runs_or_loads_anything(self) -> None:
        for text in HOSTILE:
            with self.subTest(text):
                self.check(render(text, citations()))

    def test_no_streamed_markup_of_a_model_runs_or_loads_anything(self) -> None:
        text = "\n\n".join(HOSTILE)
        for cut in range(0, len(text), 3):
            self.check(render(text[:cut], citations()))


class BlockTests(SimpleTestCase):
    def test_the_blocks_do_not_depend_on_the_split_of_the_text(self) -> None:
        chance = random.Random(11)
        text = LONG + "\n\n".join(HOSTILE)
        whole = render(text, citations())
        for _ in range(60):
            renderer, blocks, at = BlockRenderer(citations()), [], 0
            while at < len(text):
                size = chance.choice((1, 2, 3, 7, 40, 200))
                blocks += renderer.feed(text[at : at + size])
                at += size
            self.assertEqual("\n".join(blocks + renderer.finish()), whole)

    def test_splitting_into_blocks_loses_no_text(self) -> None:
        self.assertEqual(re.sub(r"\s", "", "".join(split(LONG))), re.sub(r"\s", "", LONG))

    def test_fences_lists_and_tables_are_not_split(self) -> None:
        heads = [block.strip().split("\n")[0] for block in split(LONG)]
        self.assertEqual(
            [head[:6] for head in heads],
            ["## Wor", "You ma", "1. Fir", "After ", "| Who ", "```", "- a", "Last w"],
        )

    def test_a_paragraph_is_finished_at_its_blank_line(self) -> None:
        splitter = BlockSplitter()
        self.assertEqual(splitter.feed("One.\n"), [])
        self.assertEqual(splitter.feed("\nTw"), ["One.\n"])
        self.assertEqual(splitter.tail, "Tw")

    def test_the_open_block_shows_numbers_and_never_a_half_written_label(self) -> None:
        renderer = BlockRenderer(citations())
        renderer.feed(f"Twenty **days** [{HANDBOOK}] and [pay/sal")
        self.assertEqual(
            renderer.open,
            "<p>Twenty <strong>days</strong>&nbsp;"
            '<span class="nowrap"><span class="cite">1</span></span> and</p>',
        )

    def test_deeply_nested_markup_takes_little_time(self) -> None:
        for text in (">" * 3000 + "x", "[" * 3000, "*" * 3000, "- " * 1000, "`" * 3000):
            self.assertLess(len(render(text, citations())), 200_000)

    def test_an_unfinished_block_of_spaces_takes_little_time(self) -> None:
        before = time.thread_time()
        for space in " \t":
            renderer = BlockRenderer(citations())
            for _ in range(100):
                renderer.feed(space * 2000)
                self.assertEqual(renderer.open.strip(), "")
        self.assertLess(time.thread_time() - before, 10)

    def test_an_endless_hostile_block_takes_little_time_and_is_shown_as_source(self) -> None:
        before = time.thread_time()
        for unit in ("![", "[", "*a ", "- a\n"):
            text = unit * 60_000
            rendered = render(text, citations())
            self.assertEqual(rendered, f"<p>{text.strip()}</p>")
        self.assertLess(time.thread_time() - before, 10)
