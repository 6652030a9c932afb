"""One conversation as a file."""

from unittest import mock

from django.test import TestCase
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import override
from markdown_it import MarkdownIt

from chatsite.http import checked_transfer
from chatsite.tests.code.test_linear_time import assert_linear
from history import conversation_lists, long_exports, recording
from history.conversation_export import _harmless, as_markdown
from history.conversation_lists import messages_shown
from history.tally import UNSURE
from history.tests.chat_history_case import LABEL, ChatHistoryCase
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document
from ingestion.tests.factories import command_principal, make_user


def links(text):
    """The addresses of the links in Markdown, for a viewer that follows any scheme."""
    viewer = MarkdownIt("commonmark")
    viewer.validateLink = lambda url: True
    inner = [token for block in viewer.parse(text) for token in block.children or ()]
    return [token.attrs["href"] for token in inner if token.type == "link_open"]


class ExportTests(ChatHistoryCase):
    def setUp(self):
        super().setUp()
        self.mine = self.conversation("Carrying over leave")
        self.answered(self.mine, text=f"Five days [{LABEL}], I said five [{LABEL}].")

    def test_markdown_has_questions_answers_and_their_sources(self):
        recording.append(self.mine, "user", "And\nthen?")
        recording.append(
            self.mine, "assistant", "So", state="failed", error_code="upstream_timeout", agent_name="Editor"
        )
        response = self.call("GET", f"/{self.mine.pk}/export")
        self.assertEqual(response.headers["Content-Type"], "text/markdown; charset=utf-8")
        self.assertEqual(
            response.headers["Content-Disposition"], 'attachment; filename="carrying-over-leave.md"'
        )
        day = date_format(localtime(self.mine.created_at), "j M Y")
        self.assertEqual(
            response.content.decode(),
            f"# Carrying over leave\n\n{day}\n\n## May I carry leave over?\n\n"
            "Five days [1], I said five [1].\n\n### Sources\n\n1. Leave guide, page 3\n\n"
            "## And then?\n\n**Editor**\n\nSo\n\n*The language model took too long to answer.*\n",
        )

    def test_an_export_is_refused_if_a_right_is_withdrawn_while_it_is_rendered(self):
        Document.objects.update(owner=make_user("keeper"))
        for path in ("export", "export?format=json", "messages"):
            set_audience(self.document, Audience(everyone=True))
            with mock.patch.object(checked_transfer, "CHECK_SECONDS", -1):
                self.assertIn("Leave guide", self.call("GET", f"/{self.mine.pk}/{path}").content.decode())

                def shown(*arguments, **options):
                    found = messages_shown(*arguments, **options)
                    set_audience(self.document, Audience())
                    return found

                with mock.patch.object(conversation_lists, "messages_shown", shown):
                    refused = self.call("GET", f"/{self.mine.pk}/{path}")
            with self.subTest(path):
                self.assertEqual(refused.status_code, 503)
                self.assertEqual(refused.json()["error"]["code"], "busy")
                self.assertTrue(int(refused.headers["Retry-After"]) > 0)
                again = self.call("GET", f"/{self.mine.pk}/{path}")
                self.assertEqual(again.status_code, 200)
                self.assertNotIn("Leave guide", again.content.decode())

    def test_one_long_export_is_rendered_at_a_time_and_short_ones_do_not_wait(self):
        for path in ("export", "export?format=json"):
            with (
                self.subTest(path),
                long_exports._running,
                mock.patch.object(long_exports, "WAIT_SECONDS", 0.01),
            ):
                self.assertEqual(self.call("GET", f"/{self.mine.pk}/{path}").status_code, 200)
                with mock.patch.object(long_exports, "LONG_MESSAGES", 1):
                    refused = self.call("GET", f"/{self.mine.pk}/{path}")
                self.assertEqual(refused.status_code, 503)
                self.assertEqual(refused.json()["error"]["code"], "busy")
                self.assertTrue(int(refused.headers["Retry-After"]) > 0)
        with mock.patch.object(long_exports, "LONG_MESSAGES", 1):
            self.assertEqual(self.call("GET", f"/{self.mine.pk}/export").status_code, 200)

    def test_texts_of_the_export_are_in_the_language_of_the_exporter(self):
        recording.append(self.mine, "assistant", "So", state="failed", error_code="upstream_timeout")
        with override("de"):
            exported = as_markdown(self.principal, self.mine)
        self.assertIn("### Quellen\n\n1. Leave guide, Seite 3\n", exported)
        self.assertIn(f"\n\n{localtime(self.mine.created_at):%-d.} ", exported)
        self.assertIn("*Das Sprachmodell hat", exported)

    def test_citations_of_passages_that_do_not_answer_confirm_nothing(self):
        rows = [{"start": 0, "end": 3, "citations": [LABEL], "verdict": "quoted"}]
        for notice, ticked in (("", True), (f"{UNSURE}\n\n", False)):
            self.answered(self.mine, text=f"{notice}> So [{LABEL}].", verification=rows)
            exported = as_markdown(self.principal, self.mine)
            self.assertEqual(exported.count("All citations found in the text"), int(ticked), notice)
            self.mine.messages.all().delete()

    def test_sources_are_listed_with_the_addresses_they_came_from(self):
        listed = {
            "https://wiki.example/leave?id=3&v=*1*": ": <https://wiki.example/leave?id=3&v=*1*>\n",
            "": "\n",
            "javascript:alert(1)": "\n",
            "https://wiki.example/<b> [x](y)": "\n",
        }
        for address, shown in listed.items():
            Document.objects.filter(pk=self.document.pk).update(source_url=address)
            exported = as_markdown(self.principal, self.mine)
            self.assertIn(f"### Sources\n\n1. Leave guide, page 3{shown}", exported)

    def test_quotations_are_named_as_such(self):
        for grade in ("given", ""):
            self.mine.messages.filter(role="assistant").update(grade=grade)
            exported = as_markdown(self.principal, self.mine)
            self.assertEqual(
                exported.count("*Quoted from the documents, without a language model*"), len(grade) // 5
            )

    def test_json_has_what_the_api_sends(self):
        response = self.call("GET", f"/{self.mine.pk}/export?format=json")
        self.assertEqual(
            response.headers["Content-Disposition"], 'attachment; filename="carrying-over-leave.json"'
        )
        body = response.json()
        self.assertEqual(body["messages"], self.get(f"/{self.mine.pk}/messages"))
        self.assertEqual(body | self.get()[0], body)
        self.assertEqual((body["mode"], len(body["messages"])), ("standard", 2))

    def test_a_name_without_letters(self):
        recording.rename(self.principal, self.mine.pk, '"; \r\n 年')
        header = self.call("GET", f"/{self.mine.pk}/export/").headers["Content-Disposition"]
        self.assertEqual(header, 'attachment; filename="conversation.md"')


class HarmlessTests(TestCase):
    def test_text_of_a_model_loads_and_runs_nothing_in_an_export(self):
        principal = command_principal(make_user())
        conversation = recording.open_conversation(principal, title="<script>x</script>")
        recording.append(conversation, "user", "![a](http://evil.example/a.png)")
        text = "\\![a](http://evil.example/x) <img src=x> [b](javascript:alert(1)) [c]: data:text/html,x [d](https://fine.example)"
        recording.append(conversation, "assistant", text)
        exported = as_markdown(principal, conversation)
        self.assertNotIn("<", exported)
        self.assertNotIn("![", exported)
        schemes = {address.partition(":")[0] for address in links(exported)}
        self.assertEqual(schemes, {"http", "https"})
        self.assertIn("[d](https://fine.example)", exported)

    def test_no_viewer_finds_a_link_that_runs_something(self):
        principal = command_principal(make_user())
        for link in (
            "[a](javascript:alert(1))",
            "[a]( JavaScript:alert(1))",
            "[a](\njavascript:alert(1))",
            "[a](javascript&#58;alert(1))",
            "[a](javascript&colon;alert(1))",
            "[a](&#106;avascript:alert(1))",
            "[a](javascript\\:alert(1))",
            "[a](<javascript:alert(1)>)",
            "[a](\x01javascript:alert(1))",
            "[a](vbscript:x 'title')",
            "[a]\n\n[a]: javascript:alert(1)",
            "[a][]\n\n[a]:\n data&#58;text/html,x",
            "[a\\](javascript:alert(1))",
            f"[a]({'x' * 200}:alert(1))",
            "[a](< javascript:alert(1)>)",
            "[a](<&#106;avascript:alert(1)>)",
            "> [a]:\n> javascript:alert(1)\n\n[a]",
        ):
            conversation = recording.open_conversation(principal, title="Links")
            recording.append(conversation, "user", link)
            recording.append(conversation, "assistant", f"{link}\n\n[b](https://fine.example/a:b)")
            exported = as_markdown(principal, conversation)
            self.assertEqual(links(exported), ["https://fine.example/a:b"], link)

    def test_beginnings_of_links_are_checked_in_linear_time(self):
        for unit in ("[a](", "[a]: ", "]:", "](", "]:>", "`[a](`", "<https://a"):
            assert_linear(_harmless, ("", unit, ""), sizes=(2_000, 50_000, 200_000), name=unit)

    def test_code_blocks_are_found_in_linear_time(self):
        units = ("```\n", "~~~a\n", "```\nx\n```\n", "- ```\n", "> ```\n", "- ", "> ", "`x` ", "\n\n`")
        for unit in units:
            assert_linear(_harmless, ("```\n```\n", unit, "x"), sizes=(2_000, 20_000, 80_000), name=unit)


class CodeInExportTests(TestCase):
    """Code, comparisons and web addresses are exported as they are, and no HTML beside them."""

    def test_code_and_comparisons_contain_no_entities(self):
        for text in (
            "The limit is <100 EUR, if a < b <= c.",
            "Use `<name>`, or `![x]`:\n\n```java\nList<String> x = a[0](b:c); ![y](z)\n```\n\nDone.",
            "1. First:\n   ```html\n   <p>\n\n   </p>\n   ```\n2. Then `<b>`.",
            "> ~~~\n> <b>\n> ~~~",
            "````md\n```\n<b>\n```\n````",
            "| Tag | Meaning |\n|---|---|\n| `<b>` | bold |",
            "See <https://wiki.example/a?b=c> or <mailto:help@example.org>.",
        ):
            self.assertEqual(_harmless(text), text)

    def test_html_outside_of_code_is_text(self):
        for text in (
            "`a` <img src=x> `b`",
            "` <img src=x>\n\n`",
            "\\`<img src=x>`",
            "``<img src=x>`",
            "| ` | ` x ` <img src=x> ` |",
            '[a](https://fine.example "`") <img src=x> `',
            "[a]: https://fine.example '`' \n<img src=x> `",
            "<https://fine.example/`> <img src=x> `",
            "<https://fine.example onclick=x>",
            "```\n    ```\n```\n<img src=x>",
            "```\n~~~\n```\n<img src=x>\n```",
            "``` `\n<img src=x>\n```",
            "- ```\n<img src=x>\n  ```",
            "> ```\n<img src=x>\n> ```",
            "text\n    ```\n\n<img src=x>\n    ```",
            "~~~\r~~~\r<img src=x>\r~~~",
            "<!-- -->\n<?x ?>\n</p>",
        ):
            viewer = MarkdownIt("commonmark", {"html": True}).enable("table")
            found = [
                each for token in viewer.parse(_harmless(text)) for each in (token, *(token.children or ()))
            ]
            self.assertEqual([each.content for each in found if each.type.startswith("html")], [], text)

    def test_code_that_is_not_closed_ends_with_its_answer(self):
        principal = command_principal(make_user())
        for text in ("```", "```\nx\n    ```", "- ~~~~ js\n  x", "> ```\n> x"):
            conversation = recording.open_conversation(principal, title="Code")
            for content in (text, "```\n<img src=x>\n```"):
                recording.append(conversation, "assistant", content)
            exported = as_markdown(principal, conversation)
            self.assertIn("\n<img src=x>\n", exported)
            tokens = MarkdownIt("commonmark", {"html": True}).parse(exported)
            self.assertEqual([each.content for each in tokens if each.type.startswith("html")], [], text)

    def test_beside_formulas_code_is_text_because_viewers_differ(self):
        principal = command_principal(make_user())
        conversation = recording.open_conversation(principal, title="Formula")
        for content in ("$$\n```\n$$", "```\n<img src=x>\n```"):
            recording.append(conversation, "assistant", content)
        self.assertIn("&lt;img", as_markdown(principal, conversation))
