"""HTML pages: what is text, lists, definitions, headings and tables; tables in HTML in Markdown texts."""

from django.test import SimpleTestCase

from ingestion.indexing.splitting import passages_of
from ingestion.search.sentence_splitting import spans_of
from ingestion.tests.parsing.test_reading_formats import reading


class WebPagesTests(SimpleTestCase):
    def texts(self, name, data):
        return {section.anchor: section.text for section in reading(name, data).sections}

    def test_navigation_and_hidden_parts_of_html_are_left_out(self):
        page = (
            "<header><p>Logo</p><h1>Guide</h1></header>"
            "<div class='cookie-banner'>We use cookies<div>x</div></div>"
            "<div role=navigation>Menu</div><aside>Advert</aside><p hidden>Secret<p>Text.</p>"
            "<div class=navheader>Prev</div><div class=toc>1. Text</div>"
            "<div style='display: none'>Gone</div><ul><li><a hreflang=de lang=de>Deutsch</a></ul>"
            "<div class='plainlinks noprint'>Purge</div><div id=catlinks>Guides</div>"
            "<ul><li>One<li>Two</ul><pre>a = 1\nb = 2</pre>"
        )
        self.assertEqual(
            self.texts("a.html", page), {"guide": "Guide\n\nText.\n\n- One\n\n- Two\n\na = 1\nb = 2"}
        )

    def test_notes_and_warnings_beside_the_text_of_an_html_page_are_read(self):
        page = (
            "<h1>Oven</h1><aside class='note'>Cut the power first.</aside><p>Open it.</p>"
            "<aside>Advert</aside><aside class='sidebar-news'>News</aside>"
            "<aside class='sidebar tip-list'>Advert</aside>"
            "<aside class='admonition-warning'><p>Hot!</aside>"
            "<aside role='complementary' class='notes'>Related</aside>"
            "<aside role='doc-endnotes'><ol><li>For ovens of 2024.</ol></aside>"
        )
        self.assertEqual(
            self.texts("a.html", page),
            {"oven": "Oven\n\nCut the power first.\n\nOpen it.\n\nHot!\n\n1. For ovens of 2024."},
        )

    def test_html_ids_derived_from_headings_do_not_make_a_section_a_banner(self):
        page = (
            '<div id="cookie-consent">Accept all</div><h1>Privacy</h1>'
            '<h2 id="cookies">Cookies</h2><p>We use them.</p>'
            '<section id="consent"><h2>Consent</h2><p>It can be withdrawn.</p></section>'
            '<div class="section" id="gdpr"><h2>GDPR</h2><p>It applies.</p></div>'
            '<h2><span id="toc">Contents</span></h2><p>Three parts.</p>'
            '<section class="cookie-banner"><p>Accept</p></section>'
        )
        self.assertEqual(
            self.texts("a.html", page),
            {
                "cookies": "We use them.",
                "consent": "It can be withdrawn.",
                "gdpr": "It applies.",
                "contents": "Three parts.",
            },
        )
        page = '<main><div id="cookies"><p>We use them.</p></div><p class="cookie-banner">Accept</p></main>'
        self.assertEqual(self.texts("a.html", page), {"": "We use them."})

    def test_sections_of_an_html_page_about_cookies_are_not_banners(self):
        banners = (
            "<div id=cookies><h2>Cookies</h2><p>Accept?</p><button>Yes</button></div>",
            "<div class=cookie-notice><h2>We value your privacy</h2></div>",
            "<div class=consent>Accept all</div>",
            "<div id=gdpr><h2>Your data</h2><a role=button>Accept</a></div>",
            "<div id=cookie-info><h3>Cookies</h3><p>We use them.</p><a href=#>Accept</a></div>",
        )
        page = f"<body class=cookies>{''.join(banners)}<h1>Guide</h1><p>Text.</p>"
        self.assertEqual(self.texts("a.html", page), {"guide": "Guide\n\nText."})
        long = "We keep your answer. " * 20
        page = f"<h1>Policy</h1><div class=cookies><h2>Storage</h2><a href=#>More</a> {long}</div>"
        self.assertEqual(self.texts("a.html", page)["storage"], f"More {long}".strip())
        section = "<div class={0}><h2>Storage</h2><div class={0}__text>30 days.</div></div>"
        for name in ("cookies", "privacy-consent"):
            page = f"{banners[1]}<h1>Policy</h1><p>Text.</p>{section.format(name)}"
            self.assertEqual(self.texts("a.html", page), {"policy": "Policy\n\nText.", "storage": "30 days."})
            self.assertEqual(self.texts("a.html", f"<main>{page}</main>")["storage"], "30 days.")

    def test_an_html_page_with_a_table_of_contents_is_not_one(self):
        contents = "<div class=page-toc><h2>Contents</h2>Fees</div>"
        page = f"<div class='layout has-toc with_breadcrumbs'>{contents}<p>12 euros.</p></div>"
        self.assertEqual(self.texts("a.html", page), {"": "12 euros."})

    def test_a_button_after_the_text_of_a_heading_is_not_part_of_it(self):
        """As in pages that Rustdoc makes."""
        page = "<h1>Struct <span>Global</span> <button>Copy item path</button></h1><p>The allocator.</p>"
        found = reading("a.html", page.encode())
        self.assertEqual(
            (found.title, found.sections[0].text), ("Struct Global", "Struct Global\n\nThe allocator.")
        )

    def test_a_cell_that_spans_very_many_rows_and_columns_does_not_fill_the_memory(self):
        cell = "<td rowspan=999 colspan=999>x</td>"
        found = reading("a.html", f"<table>{f'<tr>{cell}</tr>' * 300}</table>".encode())
        self.assertLess(sum(len(section.text) for section in found.sections), 10_000)

    def test_html_elements_left_out_within_a_line_do_not_end_it(self):
        page = (
            '<h1><a class="anchor" aria-hidden="true"><svg/></a>Tool</h1>'
            "<h2><button>How long is the warranty?</button></h2><div>Two years.</div>"
            "<h2><svg></svg> Opening hours</h2><p>Nine to five.</p>"
            "<p>Phone<svg></svg>0123 456 or <button>call</button> us.</p>"
            "Open<nav>Menu</nav>daily<p hidden>x</p>now"
        )
        found = reading("a.html", page)
        self.assertEqual(found.title, "Tool")
        self.assertEqual(
            {section.anchor: section.text for section in found.sections},
            {
                "how-long-is-the-warranty": "Two years.",
                "opening-hours": "Nine to five.\n\nPhone 0123 456 or us.\n\nOpen\n\ndaily\n\nnow",
            },
        )

    def test_html_definitions_are_joined_with_their_terms(self):
        page = (
            "<p>Kinds:</p><dl><dt><b>Asset</b></dt><dd><p>You own it.</p><p>More.</p></dd><dt>A</dt>"
            "<dt>B:</dt><dd>Both</dd><dt>Parts</dt><dd><ul><li>One</ul></dd><dt>Last</dt></dl><dl><dt>Open<dd>Text</dl>"
        )
        self.assertEqual(
            self.texts("a.html", page)[""].split("\n\n"),
            [
                "Kinds:",
                "- Asset: You own it.",
                "More.",
                "- A, B: Both",
                "- Parts:",
                "- One",
                "Last",
                "- Open: Text",
            ],
        )

    def test_each_definition_in_an_html_page_has_its_term(self):
        page = (
            "<dl><dt>Leave<dd>30 days<dd>5 days more for parents<dt>Unpaid</dt><dd></dd><dd>10 days</dd>"
            "<dd>See:<ul><li>Rules</ul><dt><h2>Sick leave</h2><dd>Call<dd>Write<dt>Last</dl>"
            "<dl><dd>Indented</dl>"
        )
        self.assertEqual(
            "\n\n".join(self.texts("a.html", page).values()).split("\n\n"),
            [
                "- Leave: 30 days",
                "- Leave: 5 days more for parents",
                "- Unpaid: 10 days",
                "- Unpaid: See:",
                "- Rules",
                "Sick leave",
                "Call",
                "Write",
                "Last",
                "Indented",
            ],
        )

    def test_blocks_of_an_html_page_do_not_join_words(self):
        page = (
            "<fieldset><legend>Address</legend>High St 1</fieldset><center>Rules</center>"
            "<center>2024</center><hgroup>Tool<p>Manual</hgroup>After"
        )
        self.assertEqual(
            self.texts("a.html", page)[""].split("\n\n"),
            ["Address", "High St 1", "Rules", "2024", "Tool", "Manual", "After"],
        )
        page = "<nav>Home</nav><dialog>Yes</dialog><menu><li>Cut<li>Copy</menu><footer>Imprint</footer>"
        self.assertEqual(self.texts("a.html", page)[""], "Home\n\nYes\n\n- Cut\n\n- Copy\n\nImprint")

    def test_a_table_that_defines_a_term_of_an_html_page_follows_it(self):
        table = "<table><tr><th>Item<th>Price<tr><td>Bread<td>3 €</table>"
        place = "<dt>Place</dt><dd>Ellery</dd>"
        page = f"<dl><dt>Costs</dt><dd>{table}</dd>{place}<dt>Fees</dt><dd>As here:{table}</dl>"
        row = "Item: Bread; Price: 3 €"
        self.assertEqual(
            self.texts("a.html", page)[""].split("\n\n"),
            ["- Costs:", row, "- Place: Ellery", "- Fees: As here:", row],
        )

    def test_items_of_html_lists_keep_their_numbers(self):
        page = (
            "<ol><li>Open the door.</li>"
            "<li><p>Close it:</p><ol type=a><li>Pull.<li>Turn.</ol><ul><li>Gently</ul></li>"
            "<li hidden>Gone</li><li></li><li value=7>Lock it.</li><li>Leave.</li></ol><p>Then:</p>"
            "<ol start=3 style='list-style-type: upper-roman'><li>Call.</ol>"
            "<ol style='list-style: none'><li>Wait.</ol>"
            "<ol reversed><li>Last</ol><table><tr><td>Steps<td><ol><li>Sit.<li>Stand.</ol></table><li>Alone"
        )
        self.assertEqual(
            self.texts("a.html", page)[""].split("\n\n"),
            [
                "1. Open the door.",
                "2. Close it:",
                "a. Pull.",
                "b. Turn.",
                "- Gently",
                "7. Lock it.",
                "8. Leave.",
                "Then:",
                "III. Call.",
                "- Wait.",
                "- Last",
                "Steps 1. Sit. 2. Stand.",
                "- Alone",
            ],
        )

    def test_headings_in_a_numbered_html_list_have_its_numbers(self):
        page = "<h1>Guide</h1><ol><li><h2>Open</h2><p>Push.</p><li><h2>Close</h2><p>Pull.</p></ol>"
        self.assertEqual(
            [(section.anchor, section.heading, section.text) for section in reading("a.html", page).sections],
            [("open", "1. Open", "Push."), ("close", "2. Close", "Pull.")],
        )

    def test_each_item_of_a_numbered_html_list_is_quotable_with_others_in_its_passage(self):
        words = "one", "two", "three", "four", "five"
        items = [f"Step {word} of the way to the ferry is short." for word in words]
        found = reading("a.html", "<ol><li>" + "<li>".join(items * 4) + "</ol>").sections
        spans = [span for passage in passages_of(found) for span in spans_of(passage.content)]
        self.assertEqual(len(spans), 20)
        self.assertTrue(all(span.is_item for span in spans))
        for label in ("99. ", "100. ", "iii. ", "XIV. "):
            spans = spans_of(f"Before.\n\n{label}Take the ferry. Then walk.")
            self.assertEqual(
                [span.text for span in spans], ["Before.", f"{label}Take the ferry.", "Then walk."]
            )

    def test_html_tables_whose_cells_reach_over_rows_and_columns(self):
        rows = "<tr><th>Route<th>Season<th>Fare<tr><td rowspan=2>R1<td>Winter<td>22<tr><td>Summer<td>28"
        page = f"<table><caption>Fares</caption>{rows}<tr><td colspan=2>R2<td>30</table>"
        self.assertEqual(
            self.texts("a.html", page)[""].split("\n"),
            [
                "Fares",
                "",
                "Route: R1; Season: Winter; Fare: 22",
                "Route: R1; Season: Summer; Fare: 28",
                "Route: R2; Fare: 30",
            ],
        )

    def test_an_html_cell_over_rows_and_columns_keeps_all_its_columns(self):
        page = (
            "<table><tr><th rowspan=2 colspan=2></th><th colspan=2>2025</th><th colspan=2>2026</th></tr>"
            "<tr><th>Men</th><th>Women</th><th>Men</th><th>Women</th></tr>"
            "<tr><td>North</td><td>Full time</td><td>10</td><td>20</td><td>30</td><td>40</td></tr></table>"
        )
        self.assertEqual(
            self.texts("a.html", page)[""],
            "North; Full time; 2025 Men: 10; 2025 Women: 20; 2026 Men: 30; 2026 Women: 40",
        )

    def test_the_names_of_the_rows_of_an_html_table_do_not_name_columns(self):
        rows = "<tr><th>Address:</th><td>High St 1</td></tr><tr><th>Phone<td>0123 456</tr>"
        for title in ("", "<tr><th colspan=2>Contact</th></tr>"):
            lines = self.texts("a.html", f"<table>{title}{rows}</table>")[""].split("\n")
            self.assertEqual(lines[-2:], ["Address: High St 1", "Phone: 0123 456"])
            self.assertEqual(lines[:-2], ["Contact"] if title else [])
        page = (
            "<table><tr><th rowspan=2>Monday</th><td>Ellery</td><td>9:00</td></tr>"
            "<tr><td>Sennick</td><td>10:00</td></tr><tr><th>Sunday</th><td colspan=2>closed</td></tr></table>"
        )
        self.assertEqual(
            self.texts("a.html", page)[""].split("\n"),
            ["Monday; Ellery; 9:00", "Monday; Sennick; 10:00", "Sunday: closed"],
        )

    def test_a_row_of_names_of_html_columns_is_one_also_above_names_of_rows(self):
        for first in (
            "<tr><td></td><th>Fare</th><th>Weight</th></tr>",
            "<tr><th></th><td>Fare</td><td>Weight</td></tr>",
            "<tr><th>Route<th>Fare<th>Weight",
        ):
            rows = (
                "<tr><th>Ellery</th><td>22</td><td>5</td></tr><tr><th>Sennick</th><td>28</td><td>6</td></tr>"
            )
            self.assertIn("Fare: 28; Weight: 6", self.texts("a.html", f"<table>{first}{rows}</table>")[""])

    def test_an_html_cell_that_is_left_out_does_not_move_other_cells(self):
        for left_out in ("aria-hidden=true", 'style="visibility:hidden"', "class=no-print"):
            names = f"<tr><th {left_out}>x</th><th>Monday</th><th>Sunday</th></tr>"
            rows = (
                f"{names}<tr><td>8:00</td><td>Art<td {left_out}>x<tr><td>9:00<td {left_out}>x</td><td>Music"
            )
            self.assertEqual(
                self.texts("a.html", f"<table>{rows}</table>after")[""],
                "8:00; Monday: Art\n9:00; Sunday: Music\n\nafter",
            )
        for removed in ("hidden", 'style="display: none"'):
            rows = f"<tr><th>A<th {removed}>x<th>B<tr><td>1<td {removed}>x<td>2"
            self.assertEqual(self.texts("a.html", f"<table>{rows}</table>")[""], "A: 1; B: 2")
        row = "<tr><td aria-hidden=true>x</td><th>{}</th><td>{}</td></tr>"
        rows = row.format("Address", "High St 1") + row.format("Phone", "0123 456")
        self.assertEqual(
            self.texts("a.html", f"<table>{rows}</table>")[""], "Address: High St 1\nPhone: 0123 456"
        )

    def html_table(self, rows, head=""):
        """The lines of an HTML table without `th`, of rows such as "Address | High St 1"."""
        cells = (f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.split(' | '))}</tr>" for row in rows)
        return self.texts("a.html", f"<table>{head}{''.join(cells)}</table>")[""].split("\n")

    def test_the_first_of_the_properties_in_an_html_table_does_not_name_columns(self):
        for rows in (
            ["Address: Ellery", "Phone: 0221", "Open: 8-12"],
            ["Length: 5 m", "Width: 3 m"],
            ["Chair: Ann Hall", "Treasurer: Bo Lee"],
            ["Contact: Ann Hall", "Phone: 01632 960118", "Mobile: 07700 900461", "Fax: 0221-4", "Desk: 0221"],
            ["Monday: closed", "Tuesday: 9-13", "Wednesday: 9-13", "Thursday: 9-18", "Friday: 9-13"],
            ["<b>Length</b>: 5 m", "<b>Colour</b>: green", "<b>Weight</b>: 120 kg"],
        ):
            lines = [row.replace("<b>", "").replace("</b>", "") for row in rows]
            self.assertEqual(self.html_table([row.replace(": ", " | ") for row in rows]), lines)
            titled = self.html_table(
                [row.replace(": ", " | ") for row in rows], "<tr><th colspan=2>Facts</th>"
            )
            self.assertEqual(titled, ["Facts", *lines])

    def test_a_first_row_of_names_in_an_html_table_names_the_two_columns(self):
        rows = ["France | Paris", "Spain | Madrid"]
        named = ["Country: France; Capital: Paris", "Country: Spain; Capital: Madrid"]
        self.assertEqual(self.html_table(["<p><b>Country</b></p> | <strong>Capital</strong>", *rows]), named)
        head = "<thead><tr><td>Country</td><td>Capital</td></tr></thead>"
        self.assertEqual(self.html_table(rows, head), named)
        fares = ["Ellery | 45.00 €", "Carrow | 5 €", "Sennick | 1 250 €", "Dunmore | 38 €"]
        self.assertEqual(self.html_table(["Port | Fare", *fares])[1], "Port: Carrow; Fare: 5 €")
        self.assertEqual(
            self.html_table(["Departs | Arrives", "8:00 | 9:30"]), ["Departs: 8:00; Arrives: 9:30"]
        )
        bold = "<p style='font-weight:700'>{}</p>".format
        self.assertEqual(self.html_table([f"{bold('Country')} | {bold('Capital')}", *rows]), named)
        head = "<tr {}><td style='{}'>Country<td style='{}'>Capital</tr>"
        for row in ('class="header"', 'bgcolor="#ccc"', ""):
            style = "" if row else "font-weight: bold"
            self.assertEqual(self.html_table(rows, head.format(row, style, style)), named)
        striped = "<tr bgcolor=#eee><td>Chair<td>Ann<tr><td>Clerk<td>Bo<tr bgcolor=#eee><td>Cook<td>Cy"
        self.assertEqual(self.html_table([], striped), ["Chair: Ann", "Clerk: Bo", "Cook: Cy"])
        dates = ["3 May | Fair", "7 June | Market"]
        self.assertEqual(self.html_table(["Date | Event", *dates])[1], "Date: 7 June; Event: Market")

    def test_marks_of_footnotes_do_not_change_the_names_of_columns_in_an_html_table(self):
        fares = ["Ellery | 45 €", "Carrow | 5 €", "Sennick | 12 €", "Dunmore | 38 €"]
        for rows in (
            ["Port | Fare<sup>1</sup>", *fares],
            ["Port | Fare", "Ellery | 45 €<sup>2</sup>", *fares[1:]],
        ):
            self.assertEqual(self.html_table(rows)[1].replace("¹", ""), "Port: Carrow; Fare: 5 €")
        head = "<tr><th>Year<th>2024<sup>1</sup><th>2025"
        self.assertEqual(self.html_table(["Profit | 7 | 9"], head), ["Year: Profit; 2024¹: 7; 2025: 9"])

    def test_an_html_element_that_is_left_out_ends_also_without_an_end_tag(self):
        for page, text in {
            "<p class=breadcrumb>Start<h1>Fees</h1><div>12 euros.</div>": "Fees\n\n12 euros.",
            "<p hidden>x<ul><li>Children<li>Adults</ul>": "- Children\n\n- Adults",
            "<p hidden>x<table><tr><td>A<td>B<tr><td>1<td>2</table>": "A: 1; B: 2",
            "<div><p hidden>x</div>after": "after",
            "<ul><li hidden><div>x</div>x<ul><li>x</ul>x<li>One<li hidden>x</ul>after": "- One\n\nafter",
            "<ul><li hidden><div>x</li><li>One</ul>": "- One",
            "<dl><dt>A<dd hidden><dl><dt>x<dd>x</dl>x<dt>B</dt><dd>Two</dl>": "A\n\n- B: Two",
            "<table><tr><td>A<td aria-hidden=true>x</table>after": "A\n\nafter",
            "<table><tr><td>A<td><table><tr><td aria-hidden=true>x</table><td>B</table>C": "A\n\nB\n\nC",
            "<table><tr hidden><td><table><tr><td>x</table>x<tr><td>A</table>": "A",
        }.items():
            with self.subTest(page):
                self.assertEqual("\n\n".join(self.texts("a.html", page).values()), text)
        page = "<main><div hidden><article>x</article></div>text</main>"
        self.assertEqual(self.texts("a.html", page), {"": "text"})

    def test_an_html_heading_is_one_also_if_its_text_is_in_blocks(self):
        page = (
            "<h1><div>Rules</div></h1><h2> <div>§ 5</div><div>Fees</div></h2><div>12 euros.</div>"
            "<h2>Refunds<p>None.</p><h2><p>Other</p></h2><p>One.</p><p>Two.</p>"
        )
        self.assertEqual(
            [(section.heading, section.text) for section in reading("a.html", page).sections],
            [("§ 5 Fees", "12 euros."), ("Refunds", "None."), ("Other", "One.\n\nTwo.")],
        )

    def test_a_table_in_html_is_one_also_in_a_markdown_text(self):
        names = "<tr>\n<th>Port</th>\n<th>Fare</th>\n</tr>"
        table = f"<table>\n{names}\n\n<tr><td>\n\n**Ellery** & co.\n\n</td><td>22</td></tr>\n</table>"
        text = f"# Guide\n\n## Fares\n\nAll:\n\n{table}\n\nMore.\n\n```\n<table><tr><td>x\n```\n"
        self.assertEqual(
            self.texts("a.md", text),
            {"fares": "All:\n\nPort: Ellery & co.; Fare: 22\n\nMore.\n\n<table><tr><td>x"},
        )
        text = "<table><tr><td>One\n\nTwo.\n\n# Three\n\nFour.\n"
        self.assertEqual(self.texts("a.md", text), {"": "One\n\nTwo.", "three": "Three\n\nFour."})

    def test_struck_text_of_an_html_page_is_not_valid(self):
        for page, text in {
            "<p>Within <del>14</del><ins>30</ins> days, <s>19</s>25 € or <strike>2 h</strike>1 h</p>": (
                "Within 30 days, 25 € or 1 h"
            ),
            "<p>Now <span style='color:red;text-decoration: solid line-through'>19</span>25 €": "Now 25 €",
            "<p>Rule</p><del><p>old<p>old</del><p>New": "Rule\n\nNew",
            "<ul><li>A <s>old<li>B</ul><p><del>x</p>C": "- A\n\n- B\n\nC",
            "<p>A <span style='text-decoration:line-through'>old</p><p>B": "A\n\nB",
            "<p>A <b hidden>x<b>x</b>x</b>B<a hidden><div><p>x</div>x</a><div>C": "A B\n\nC",
            "<table><tr><td>A<td><s>x<td>B</table>C": "A B\n\nC",
            "<p>Use <code>a<s>b</s>c</code></p><pre>a <del>b</del></pre><p>D": "Use abc\n\na b\n\nD",
            "<p>Use <code>a</p><p><s>14</s>30": "Use a\n\n30",
        }.items():
            with self.subTest(page):
                self.assertEqual(self.texts("a.html", page)[""], text)
