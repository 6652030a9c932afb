"""Glossary words: what they add to a search, who may see them, and their import and export."""

import codecs
import contextlib
import csv
import io
from unittest import mock

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TestCase
from hypothesis import given, settings
from hypothesis.strategies import characters, lists, sampled_from, sets, text, tuples

from chatsite.accounts.models import AuditEntry, User
from chatsite.db.sql_files import rows
from chatsite.http.csv_cells import MAX_FILE_BYTES, BadFile
from ingestion.glossary import glossary_csv
from ingestion.glossary.glossary_csv import ImportCounts, read_csv, write_csv
from ingestion.glossary.lookup import Glossary, Lookup
from ingestion.glossary.models import HouseWord, names_of
from ingestion.search.retrieval import search
from ingestion.search.tokens import plain_words
from ingestion.tests.documents import principal_of
from ingestion.tests.factories import make_document, make_user

WORDS = "/admin/ingestion/houseword/"
RIGHTS = [f"{act}_houseword" for act in ("add", "change", "delete", "view")]
HEADER = "word,other words,meaning,groups,kind\n"
# Fields as the admin's form stores them, with all characters that are special in CSV or a spreadsheet.
CELL = text(
    sampled_from("abÄ1'\"=+-@|;,\\\t\r\n ") | characters(exclude_categories=["Cs"], exclude_characters="\0"),
    max_size=12,
).map(str.strip)
LISTED = tuples(CELL.filter(plain_words), CELL, CELL, sets(sampled_from(range(4))))


def make_word(term, synonyms="", meaning="", *, kind="term", groups=()):
    word = HouseWord.objects.create(
        term=term, synonyms=synonyms, meaning=meaning, kind=kind, restricted=bool(groups)
    )
    word.groups.set(groups)
    return word


class ExpansionTests(TestCase):
    def setUp(self):
        self.reader = make_user("rita")
        self.reader_rights = principal_of(self.reader)

    def added(self, question):
        lookup = Lookup(self.reader_rights, question)
        found = lookup.expansion(rows("known_words", lookup.parameters))
        return list(found.terms), [phrase for phrases in found.everyday.values() for phrase in phrases]

    def test_a_term_finds_documents_that_use_another_of_its_names(self):
        text = "Requests for the Halcyon roster are made in spring."
        make_document("others.md", ["The canteen opens at noon.", "Ships sail at six."], everyone=True)
        make_document("roster.md", [text], everyone=True)
        self.assertEqual(search(self.reader_rights, "zorbly", mode="text").passages, ())
        make_word("Halcyon roster", "zorbly, summer wheel")
        for question in ("zorbly", "How do I ask for the summer wheel?"):
            found = search(self.reader_rights, question, mode="text")
            self.assertEqual(found.passages[0].content, text, question)
            self.assertIn("halcyon", found.expanded)

    def test_the_longest_name_applies_and_no_word_of_the_question_is_added(self):
        make_word("zorb", "sun")
        make_word("zorb off", "leave zorb")
        self.assertEqual(self.added("A zorb off?"), (["leave"], []))

    def test_everyday_words_of_the_site_replace_the_built_in_ones(self):
        self.assertIn("salary", self.added("When is payday?")[1])
        make_word("payday", "remittance", kind="everyday")
        self.assertEqual(self.added("When is payday?"), ([], ["remittance"]))

    def test_built_in_everyday_words_are_recognised_in_other_forms(self):
        self.assertIn("lateness", self.added("They turn up late")[1])
        self.assertEqual(self.added("They turned up late"), self.added("They turn up late"))

    def test_a_day_finds_the_weekend(self):
        self.assertIn("weekend", self.added("Can I come in on Saturday?")[1])
        self.assertIn("wochenende", self.added("Ist am Sonntag offen?")[1])

    def test_a_german_article_is_not_an_english_everyday_word(self):
        self.assertIn("bereavement", self.added("Did his father die?")[1])
        self.assertNotIn("bereavement", self.added("Wann macht die Kita in den Sommerferien zu?")[1])

    def test_everyday_words_without_other_words_disable_the_built_in_entry(self):
        make_word("payday, pay day", kind="everyday")
        self.assertEqual(self.added("When is payday?"), ([], []))
        self.assertEqual(self.added("When is pay day?"), ([], []))

    def test_a_phrase_of_documents_is_found_only_as_a_whole(self):
        make_word("brolly", "rain shelter", kind="everyday")
        make_document("parted.md", ["Shelter is given. No rain is likely."], everyone=True)
        make_document("whole.md", ["Each rain shelter is numbered."], everyone=True)
        found = search(self.reader_rights, "brolly", mode="text").passages
        self.assertEqual([each.sourcefile for each in found], ["whole.md"])

    def test_a_word_of_documents_counts_less_than_the_everyday_one(self):
        make_word("brolly", "parasol, sunshade", kind="everyday")
        make_document("asked.md", ["The brolly desk opens at noon."], everyone=True)
        make_document("added.md", ["The parasol desk opens at noon."], everyone=True)
        found = search(self.reader_rights, "brolly", mode="text").passages
        self.assertEqual([each.sourcefile for each in found], ["asked.md", "added.md"])

    def test_words_of_documents_do_not_add_everyday_words(self):
        make_word("brolly", "parasol", kind="everyday")
        self.assertEqual(self.added("Where is the parasol?"), ([], []))

    def test_an_added_word_counts_less_than_a_word_of_the_question(self):
        make_word("zorbly", "halcyon")
        make_document("asked.md", ["The zorbly desk opens at noon."], everyone=True)
        make_document("added.md", ["The halcyon desk opens at noon."], everyone=True)
        found = [each.sourcefile for each in search(self.reader_rights, "zorbly", mode="text").passages]
        self.assertEqual(found, ["asked.md", "added.md"])

    def test_a_change_applies_from_the_next_search(self):
        word = make_word("zorbly", "halcyon")
        self.assertEqual(self.added("zorbly")[0], ["halcyon"])
        word.synonyms = "pelican"
        word.save()
        self.assertEqual(self.added("zorbly")[0], ["pelican"])
        word.delete()
        self.assertEqual(self.added("zorbly")[0], [])

    def test_long_questions_add_a_bounded_number_of_words(self):
        for number in range(30):
            make_word(f"word{number}", ", ".join(f"other{number}x{name}" for name in range(20)))
        asked = " ".join(f"word{number}" for number in range(30))
        self.assertLessEqual(len(self.added(asked)[0]), 12)


class ClosedWordTests(TestCase):
    """A group's word neither widens other people's searches nor is explained to them."""

    def setUp(self):
        self.crew = Group.objects.create(name="Crew")
        self.member, self.other = make_user("mia", groups=["Crew"]), make_user("otto", groups=["Office"])
        self.word = make_word("zorbly", "CANARYWORD", "CANARYMEANING", groups=[self.crew])
        make_document("open.md", ["The canaryword opens at noon."], everyone=True)

    def seen(self, user):
        rights = principal_of(user)
        found = search(rights, "zorbly", mode="text")
        explained = Glossary(rights).explain("Bring a zorbly.")
        return f"{[each.content for each in found.passages]} {found.expanded} {explained}".lower()

    def test_members_search_with_the_word_and_get_its_meaning(self):
        seen = self.seen(self.member)
        for part in ("opens at noon", "zorbly: canaryword", "canarymeaning"):
            self.assertIn(part, seen)

    def test_others_get_neither_even_if_they_may_read_the_document(self):
        self.assertNotIn("canary", self.seen(self.other))

    def test_leaving_the_group_removes_the_word_immediately(self):
        self.member.groups.clear()
        self.assertNotIn("canary", self.seen(self.member))

    def test_a_word_whose_last_group_is_deleted_is_visible_to_nobody(self):
        self.crew.delete()
        self.assertNotIn("canary", self.seen(self.member))
        self.assertNotIn("canary", self.seen(self.other))


class MeaningTests(TestCase):
    def explained(self, *texts):
        glossary = Glossary(principal_of(make_user()))
        return [[(each.name, each.text) for each in glossary.explain(text)] for text in texts]

    def test_each_term_of_a_text_is_explained_once_in_order_under_any_name(self):
        make_word("Annual closing", "year end, YE", "When the books are closed.")
        make_word("VPN", "", "The way in from home.")
        make_word("plain", "simple")
        make_word("noon", "midday", kind="everyday")
        self.assertEqual(
            self.explained("Use the VPN before the year end, a plain YE at noon.", "Nothing here."),
            [[("vpn", "The way in from home."), ("year end", "When the books are closed.")], []],
        )

    def test_a_term_within_another_word_is_not_explained(self):
        make_word("art", "", "The pictures.")
        self.assertEqual(self.explained("A party starts."), [[]])


class FileTests(TestCase):
    def setUp(self):
        self.manager = make_user("ines", groups=["Crew", "Deck | Port"])
        self.crew = Group.objects.get(name="Crew")

    def take(self, text):
        return read_csv(self.manager, text.encode() if isinstance(text, str) else text)

    def rows(self):
        return [
            (word.term, word.synonyms, word.meaning, [group.name for group in word.groups.all()])
            for word in HouseWord.objects.all()
        ]

    def test_csv_files_of_a_spreadsheet_are_imported(self):
        text = (
            '\ufeffWord;Other words;Meaning;Groups;\r\n"PTO";"paid time off, Urlaub";"Leave; paid, '
            '""in full"".";Crew;\r\n"VPN";;"The way in";;\r\n;;;;\r\n'
        )
        self.assertEqual(self.take(text), ImportCounts(2, 0))
        expected = [
            ("PTO", "paid time off, Urlaub", 'Leave; paid, "in full".', ["Crew"]),
            ("VPN", "", "The way in", []),
        ]
        self.assertEqual(self.rows(), expected)

    def test_csv_files_of_python_are_imported_with_line_breaks_in_cells(self):
        written = io.StringIO()
        writer = csv.writer(written)
        writer.writerows(
            [["meaning", "word", "kind"], ["Two\nlines", "VPN", "term"], ["", "beer", "everyday"]]
        )
        self.assertEqual(self.take(written.getvalue()), ImportCounts(2, 0))
        self.assertEqual(self.rows()[0][:2], ("VPN", ""))

    def test_an_exported_file_is_imported_without_changes(self):
        make_word("=PTO", "-leave, Ürlaub", 'Some "leave", paid', groups=[self.crew])
        make_word("beer, wine", "alcohol", kind="everyday")
        before = self.rows()
        written = write_csv(self.manager)
        self.assertNotIn("\n=PTO", written)
        self.assertEqual(self.take(written), ImportCounts(0, 0))
        HouseWord.objects.all().delete()
        self.assertEqual(self.take(written), ImportCounts(2, 0))
        self.assertEqual(self.rows(), before)

    def test_group_names_with_separators_and_quotes_are_restored(self):
        names = [
            "Deck | Port",
            "A|B",
            "|",
            "||",
            '"Quoted"',
            'a "b" | c',
            "ACME\\Sales",
            "'=HR",
            "=HR",
            "x, y; z",
        ]
        groups = [Group.objects.get_or_create(name=name)[0] for name in names]
        self.manager.groups.add(*groups)
        make_word("PTO", "leave", groups=groups)
        for group in groups:
            make_word(f"word {group.pk}", "leave", groups=[group])
        before = self.rows()
        written = write_csv(self.manager)
        self.assertEqual(self.take(written), ImportCounts(0, 0))
        HouseWord.objects.all().delete()
        self.assertEqual(self.take(written), ImportCounts(len(names) + 1, 0))
        self.assertCountEqual(self.rows(), before)

    def test_an_excel_file_in_utf_16_with_tabs_is_imported(self):
        text = "word\tother words\tmeaning\r\nPTO\tUrlaub, Größe\tbezahlt\r\n"
        for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
            HouseWord.objects.all().delete()
            self.assertEqual(read_csv(self.manager, mark + text.encode(encoding)), ImportCounts(1, 0))
            self.assertEqual(self.rows()[0][1], "Urlaub, Größe")

    def test_groups_may_have_spaces_around_the_separator(self):
        self.take(HEADER + 'PTO,leave,,Crew | "Deck | Port" ,\n')
        self.assertEqual(set(self.rows()[0][3]), {"Crew", "Deck | Port"})

    def test_apostrophes_before_a_formula_are_kept(self):
        for meaning in ("=1", "'=1", "''=1", "'a", "'", "+1", "'-1", "'@x"):
            HouseWord.objects.all().delete()
            make_word("PTO", "leave", meaning)
            written = write_csv(self.manager)
            self.assertNotIn(",=", written)
            HouseWord.objects.all().delete()
            self.take(written)
            self.assertEqual(self.rows()[0][2], meaning)

    @pytest.mark.slow
    def test_any_words_are_restored_as_they_were_exported(self):
        groups = [Group.objects.create(name=name) for name in ("a|b", '"c"', "d\\e", "'=f")]
        self.manager.groups.add(*groups)

        @settings(max_examples=60, deadline=None, database=None, derandomize=True)
        @given(lists(LISTED, max_size=6, unique_by=lambda word: plain_words(word[0])))
        def hold(words):
            HouseWord.objects.all().delete()
            for term, synonyms, meaning, chosen in words:
                word = HouseWord(term=term, synonyms=", ".join(names_of(synonyms)), meaning=meaning)
                with contextlib.suppress(ValidationError):
                    word.full_clean()
                    word.restricted = bool(chosen)
                    word.save()
                    word.groups.set(groups[number] for number in chosen)
            before = self.rows()
            if not before:
                return
            written = write_csv(self.manager)
            assert self.take(written) == ImportCounts(0, 0)
            HouseWord.objects.all().delete()
            assert self.take(written) == ImportCounts(len(before), 0)
            assert sorted(self.rows()) == sorted(before)

        hold()

    def test_a_german_excel_file_is_imported_or_refused_with_a_message(self):
        text = "word;other words;meaning;groups\r\nKüche;Kantine, Mensa;Wo man „kocht“;Crew\r\n"
        text += "Büro;;Größer als 3;\r\n"
        self.assertEqual(self.take(text.encode("utf-8-sig")), ImportCounts(2, 0))
        self.assertEqual(self.rows()[1], ("Küche", "Kantine, Mensa", "Wo man „kocht“", ["Crew"]))
        with self.assertRaisesMessage(BadFile, "Line 2: this is not UTF-8. Save the file as “CSV UTF-8”."):
            self.take(text.encode("cp1252"))
        self.assertEqual(self.take("sep=;\r\n" + text), ImportCounts(0, 0))

    def test_separate_entries_of_two_groups_for_one_word_are_restored(self):
        board = Group.objects.create(name="Board")
        self.manager.groups.add(board)
        for group, meaning in ((self.crew, "Port of call"), (board, "Place of contact")):
            make_word("POC", meaning=meaning, groups=[group])
        before = self.rows()
        written = write_csv(self.manager)
        self.assertEqual(self.take(written), ImportCounts(0, 0))
        self.assertEqual(self.take(HEADER + "poc,,Point of contact,Board,\n"), ImportCounts(0, 1))
        self.assertCountEqual([row[2] for row in self.rows()], ["Port of call", "Point of contact"])
        HouseWord.objects.all().delete()
        self.assertEqual(self.take(written), ImportCounts(2, 0))
        self.assertCountEqual(self.rows(), before)

    def test_an_existing_word_is_changed(self):
        make_word("PTO", "leave")
        self.assertEqual(self.take(HEADER + "pto,holiday,,Crew,\n"), ImportCounts(0, 1))
        self.assertEqual(self.rows(), [("pto", "holiday", "", ["Crew"])])
        self.assertTrue(HouseWord.objects.get().restricted)

    def test_one_invalid_line_is_named_and_nothing_is_imported(self):
        for line, reason in (
            ("PTO,,,,", "needs a meaning"),
            (",leave,,,", "cannot be blank"),
            ("PTO,leave,,Nobodies,", "not in a group named “Nobodies”"),
            ("PTO,leave,,,nickname", "the kind must be"),
            ("PTO,leave,,,,more", "number of columns is 6"),
            ("…,leave,,,", "at least one word"),
            ("VPN,leave,,,", "in line 2"),
            ("PTO,le\0ave,,,", "NUL"),
            (f"PTO,leave,{'x' * 501},,", "500"),
            ('PTO,"leave,,,', "unexpected end"),
            ("beer,ale,A drink,,everyday", "not explained"),
            ("a b c d e f g,leave,,,", "at most 6 words"),
        ):
            with self.subTest(line=line[:40]):
                with self.assertRaises(BadFile) as refused:
                    self.take(HEADER + "VPN,,The way in,,\n" + line + "\n")
                self.assertIn("Line 3: ", str(refused.exception))
                self.assertIn(reason, str(refused.exception))
                self.assertFalse(HouseWord.objects.exists())

    def test_other_files_are_refused_with_a_message(self):
        for content, reason in (
            (b"", "no words"),
            (HEADER.encode(), "no words"),
            (b"PTO,leave\n", "must name the columns"),
            (b"word,meaning\nK\xfcche,Where one cooks\n", "Line 2: this is not UTF-8"),
            (b"x" * (MAX_FILE_BYTES + 1), "larger than 1 MB"),
        ):
            with self.subTest(content=content[:20]), self.assertRaisesMessage(BadFile, reason):
                self.take(content)


class AdminTests(TestCase):
    def setUp(self):
        self.manager = make_user("ines", is_staff=True, groups=["Crew"])
        self.manager.user_permissions.set(Permission.objects.filter(codename__in=RIGHTS))
        self.crew, self.board = Group.objects.get(name="Crew"), Group.objects.create(name="Board")
        self.client.force_login(self.manager)

    def entries(self):
        return list(AuditEntry.objects.filter(action="words_changed").values_list("subject", flat=True))

    def test_a_word_for_a_group_of_the_manager_is_in_the_audit_log_without_its_name(self):
        values = {"kind": "term", "term": "zorbly", "synonyms": "halcyon\nwheel", "groups": [self.crew.pk]}
        response = self.client.post(f"{WORDS}add/", values)
        self.assertRedirects(response, WORDS)
        word = HouseWord.objects.get()
        self.assertEqual(
            (word.restricted, word.synonyms, word.keys),
            (True, "halcyon, wheel", ["zorbly", "halcyon", "wheel"]),
        )
        self.assertEqual(self.entries(), [f"Added glossary entry number {word.pk}: for Crew"])

    def test_groups_of_others_and_existing_words_are_refused(self):
        values = {"kind": "term", "term": "zorbly", "synonyms": "wheel"}
        self.client.post(f"{WORDS}add/", values | {"groups": [self.board.pk]})
        self.assertFalse(HouseWord.objects.exists())
        self.client.post(f"{WORDS}add/", values)
        self.assertContains(
            self.client.post(f"{WORDS}add/", values | {"term": "Zorbly"}), "already in the list"
        )

    def test_a_word_may_have_one_entry_for_each_set_of_groups(self):
        self.manager.groups.add(self.board)
        of_crew = make_word("POC", meaning="Port of call", groups=[self.crew])
        make_word("POC", meaning="Place of contact", groups=[self.board])
        values = {"kind": "term", "term": "POC", "synonyms": "", "meaning": "Last port"}
        page = f"{WORDS}{of_crew.pk}/change/"
        self.assertRedirects(self.client.post(page, values | {"groups": [self.crew.pk]}), WORDS)
        of_crew.refresh_from_db()
        self.assertEqual(of_crew.meaning, "Last port")
        self.assertContains(self.client.post(page, values | {"groups": [self.board.pk]}), "already in the")

    def test_a_word_whose_groups_are_deleted_stays_hidden_until_groups_are_chosen(self):
        self.client.force_login(User.objects.create_superuser("root"))
        word = make_word("Project X", meaning="takeover", groups=[self.board])
        self.board.delete()
        page = f"{WORDS}{word.pk}/change/"
        values = {"kind": "term", "term": "Project X", "synonyms": "", "meaning": "take-over"}
        self.assertContains(self.client.post(page, values, follow=True), "stays hidden")
        self.assertEqual(HouseWord.objects.get().meaning, "take-over")
        for groups, restricted in (([], True), ([self.crew.pk], True), ([], False)):
            self.client.post(page, values | {"groups": groups})
            self.assertEqual(HouseWord.objects.get().restricted, restricted)

    def test_words_of_other_groups_are_hidden_from_a_manager(self):
        closed = make_word("CANARYONE", "wheel", "CANARY", groups=[self.board, self.crew])
        pages = [WORDS, f"{WORDS}?q=canaryone", f"{WORDS}words.csv"]
        for page in pages:
            self.assertNotContains(self.client.get(page), "CANARY")
        self.assertEqual(self.client.get(f"{WORDS}{closed.pk}/change/").status_code, 302)
        # A new word of the same name is not refused, and does not change the hidden one.
        self.client.post(f"{WORDS}add/", {"kind": "term", "term": "CANARYONE", "synonyms": "other"})
        self.assertEqual(HouseWord.objects.filter(term="CANARYONE").count(), 2)
        self.manager.groups.add(self.board)
        for page in pages:
            self.assertContains(self.client.get(page), "CANARYONE")

    def test_an_import_is_one_audit_entry_and_an_invalid_file_imports_nothing(self):
        def send(text):
            return self.client.post(f"{WORDS}file/", {"upload": SimpleUploadedFile("w.csv", text.encode())})

        self.assertContains(send("word,meaning\nVPN,\n"), "Line 2: A term needs")
        self.assertEqual((HouseWord.objects.count(), self.entries()), (0, []))
        self.assertRedirects(send("word,meaning\nVPN,The way in\n"), WORDS)
        self.assertEqual(self.entries(), ["Imported words from a file: 1 new, 0 changed"])

        def read_slowly(user, content):
            counts = read_csv(user, content)
            user.user_permissions.clear()
            return counts

        with mock.patch.object(
            glossary_csv, "read_csv", read_slowly
        ):  # the permission is withdrawn meanwhile
            self.assertEqual(send("word,meaning\nLAN,The cable\n").status_code, 403)
        self.assertEqual((HouseWord.objects.count(), len(self.entries())), (1, 1))

    def test_built_in_words_can_be_found_and_changed(self):
        page = self.client.get(f"{WORDS}built-in/?q=payday").content.decode()
        self.assertIn("payday, pay day", page)
        self.assertNotIn("doctor", page)
        form = self.client.get(f"{WORDS}add/?kind=everyday&term=payday,+pay+day&synonyms=salary+payment")
        self.assertContains(form, "payday, pay day")

    def test_users_who_may_only_view_change_nothing(self):
        self.manager.user_permissions.set(Permission.objects.filter(codename="view_houseword"))
        self.assertEqual(self.client.get(f"{WORDS}words.csv").status_code, 200)
        for page in ("file/", "add/"):
            self.assertEqual(self.client.get(f"{WORDS}{page}").status_code, 403)
        self.manager.user_permissions.clear()
        for page in ("words.csv", "built-in/"):
            self.assertEqual(self.client.get(f"{WORDS}{page}").status_code, 403)
