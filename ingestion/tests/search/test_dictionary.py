"""Words that the list of translations lacks are looked up in a dictionary, if there is one."""

import logging
import tempfile
from pathlib import Path

from django.test import TestCase, override_settings

from ingestion.search.dictionary import NAME, compile_dictionary, dictionary, prepare_dictionary
from ingestion.search.retrieval import search
from ingestion.search.translations import question_in_english, translations_of_form
from ingestion.tests.documents import make_document, principal_of
from ingestion.tests.factories import make_user

DING = """\
# Version :: devel
Fundsache {f}; Fundgegenstand {m} | Fundsachen {pl} :: lost property | lost properties
Zebra {n} [zool.] | Zebras {pl} :: zebra | zebras
Pferd {n} :: horse; nag [slang]
Zebra {n} (Kommunikationsnetz) :: crossing of pedestrians
Zebra {n} [zool.] :: zebra (an animal)
etw. striegeln {vt} (Pferd) | gestriegelt :: to curry sth.; to groom sb./sth. | curried
Gehege {n} | Gehege {pl} :: enclosure | enclosures
ein Satz ohne Trennung
"""


class DictionaryTests(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.source = self.folder / "de-en"
        self.source.write_text(DING, encoding="utf-8")
        overridden = override_settings(DICTIONARY=str(self.source), DATA_DIR=self.folder)
        overridden.enable()
        self.addCleanup(overridden.disable)
        translations_of_form.cache_clear()
        self.addCleanup(translations_of_form.cache_clear)

    def prepared(self):
        self.assertTrue(prepare_dictionary())
        return dictionary()

    def test_a_word_has_the_translations_of_its_form_with_common_ones_first(self):
        known = self.prepared()
        self.assertEqual(known.english_of("fundsache"), ("lost property",))
        self.assertEqual(known.english_of("zebra"), ("zebra", "crossing of pedestrians"))
        self.assertEqual(known.german_of("horse"), ("pferd",))
        self.assertEqual(known.english_of("quagga"), ())

    def test_remarks_placeholders_and_slang_are_left_out(self):
        known = self.prepared()
        self.assertEqual(set(known.english_of("striegeln")), {"curry", "groom"})
        self.assertEqual(known.english_of("pferd"), ("horse",))

    def test_other_forms_are_found_by_their_stems_in_both_languages(self):
        known = self.prepared()
        self.assertEqual(known.english_of("geheges"), known.english_of("gehege"))
        self.assertIn("striegeln", known.german_of("grooms"))

    def test_the_dictionary_is_compiled_once_and_again_after_it_was_replaced(self):
        self.assertIn("zebra", self.prepared().english_of("zebra"))
        self.assertFalse(prepare_dictionary())
        self.source.write_text("Zebra {n} :: stripy horse\n", encoding="utf-8")
        self.assertTrue(prepare_dictionary())
        self.assertEqual(dictionary().english_of("zebra"), ("stripy horse",))

    def test_an_invalid_dictionary_is_logged_and_ignored(self):
        for content in (b"", b"no entry\n", "Gehäge :: enclosure\n".encode("latin-1")):
            self.source.write_bytes(content)
            with self.assertLogs("ingestion.search.dictionary", logging.WARNING):
                self.assertFalse(prepare_dictionary(), content)
            self.assertIsNone(dictionary())
        self.source.write_text(DING, encoding="utf-8")
        self.assertTrue(prepare_dictionary())

    def test_a_truncated_compiled_file_is_compiled_again(self):
        self.assertTrue(prepare_dictionary())
        (self.folder / NAME).write_bytes(b"SQLite format 3\0 torn")
        self.source.touch()
        self.assertIsNone(dictionary())
        self.assertTrue(prepare_dictionary())
        self.assertIsNotNone(dictionary())

    def test_without_a_setting_there_is_no_dictionary(self):
        with override_settings(DICTIONARY=""):
            self.assertFalse(prepare_dictionary())
            self.assertIsNone(dictionary())

    def test_very_long_lines_and_words_take_linear_time(self):
        spaces = " " * 200_000
        self.source.write_text(
            f"{'(' * 200_000}{spaces} :: {'[' * 200_000}\nZebra :: zebra\n", encoding="utf-8"
        )
        self.assertEqual(compile_dictionary(self.source, self.folder / NAME), 2)
        self.assertEqual(translations_of_form("zebra" * 100_000), ())

    def test_the_built_in_list_comes_first(self):
        self.source.write_text("Urlaub {m} :: furlough\n", encoding="utf-8")
        self.prepared()
        self.assertEqual(question_in_english("Wann ist mein Urlaub?"), "when leave")

    def test_compounds_are_translated_part_by_part(self):
        self.prepared()
        self.assertEqual(
            {*translations_of_form("zebragehege")},
            {"zebra", "crossing", "of", "pedestrians", "enclosure", "enclosures"},
        )

    def test_a_german_question_finds_an_english_document_by_the_dictionary(self):
        principal = principal_of(make_user("ann"))
        text = "Keepers groom the zebra before the enclosure opens."
        make_document("zoo.txt", [text, "Invoices are kept for ten years."], language="english")
        question = "Wer darf die Zebras im Gehege striegeln?"
        with override_settings(DICTIONARY=""):
            self.assertFalse(search(principal, "Wann ist Zebrafütterung?").passages)
        translations_of_form.cache_clear()
        self.prepared()
        self.assertEqual([each.content for each in search(principal, question).passages][:1], [text])

    def test_an_english_question_finds_a_german_document_by_the_dictionary(self):
        self.prepared()
        principal = principal_of(make_user("ann"))
        text = "Die Pferde werden am Morgen gestriegelt."
        make_document("zoo.txt", [text, "Rechnungen werden zehn Jahre aufbewahrt."], language="german")
        found = search(principal, "When is a horse curried?").passages
        self.assertEqual([each.content for each in found][:1], [text])
