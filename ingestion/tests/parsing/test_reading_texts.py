"""Text files: encoding, language, JSON records, CSV of people and programs."""

import json
import os
from pathlib import Path
from unittest import skipUnless

from django.test import SimpleTestCase

from ingestion.parsing.encodings import decode
from ingestion.parsing.language import language_of
from ingestion.parsing.workspace import sweep, workspace
from ingestion.tests.parsing.test_reading_formats import reading

ENCODED = {
    "Der Fährplan für Übernachtungen gilt auch für große Schiffe.": "cp1252 utf-16-le utf-16-be utf-8",
    "Les congés payés sont accordés après l'accord écrit. Ça coûte 5 € de plus.": "cp1252 utf-16-le",
    "休暇は翌年に五日まで繰り越すことができます。カタカナもあります。": "shift_jis euc_jp iso2022_jp",
    "员工每年可以休二十五天年假,其中五天可以结转到下一年。请提前向主管申请。": "gb18030 gbk utf-16-le",
    "員工每年可以休二十五天年假,其中五天可以結轉到下一年。請提前向主管申請。": "big5 utf-16-be",
    "직원은 매년 이십오 일의 연차 휴가를 사용할 수 있으며, 다음 해로 이월할 수 있습니다.": "euc_kr cp949",
    "Сотрудники могут перенести пять дней отпуска на следующий год.": "koi8-r cp1251 utf-16-le iso8859_5",
    "Pracownik może przenieść pięć dni urlopu na następny rok. Żółć gęślą jaźń.": "cp1250 iso8859_2",
    "Café": "cp1252",
    "Straße 5, 20 € – “ok”": "cp1252",
    "Die Wohnfläche beträgt 85 m², die Miete¹ 12,50 €/m² im Monat.": "cp1252",
    "Le loyer est très cher pour 85 m², à côté.": "cp1252",
    "The office has 120 m² and a café for £12, with SAP® software.": "cp1252",
    "Raum;Fläche in m²;Miete je m²\nBüro groß;20,5;12,50 €": "cp1252",
    "120 kWh/m²a für die Nª 3": "cp1252",
    "Wałęsa;Łódź;mężczyzna": "cp1250",
    "Numer;Nazwa;Kwota\n1;Opłata roczna;20 zł\n2;Książka;15 zł\n": "cp1250 iso8859_2",
    "Cennik: dorosły 20 zł, dziecko 10 zł": "cp1250 iso8859_2",
    "Knjižnica je otvorena od ponedjeljka do petka. Šifra, žena, đak.": "cp1250 iso8859_2",
    "Vážení zákazníci, otevírací doba je od pondělí do pátku.": "cp1250",
    "Name;Straße;Ort\nMüller;Königstraße 5;Köln\n": "cp1252",
    "Nom;Prénom;Coût\nLefèvre;Hélène;5 €\nBenoît;Loïc;œuvre\n": "cp1252",
    "Navn;By;Pris\nJørgen;Tromsø;20 kr\nBjørn;Bodø;3\n": "cp1252",
}
LANGUAGES = {
    "english": "Employees may carry over five days of leave until 31 March.",
    "german": "Mitarbeiter können fünf Tage in das nächste Jahr übertragen, wenn die Leitung zustimmt.",
    "french": "Les salariés peuvent reporter cinq jours de congé sur l'année suivante avec l'accord.",
    "portuguese": "Os funcionários podem transferir cinco dias para o ano seguinte, mas não mais.",
    "danish": "Denne politik gælder for alle ansatte, og den skal læses af nye medarbejdere.",
    "greek": "Οι εργαζόμενοι μπορούν να μεταφέρουν πέντε ημέρες στο επόμενο έτος με την έγκριση.",
    "arabic": "يجوز للموظفين ترحيل خمسة أيام من الإجازة إلى السنة التالية بموافقة المدير.",
    "hindi": "कर्मचारी प्रबंधक की अनुमति से पाँच दिन की छुट्टी अगले वर्ष में ले जा सकते हैं।",
    "indonesian": "Karyawan dapat membawa lima hari cuti ke tahun berikutnya dengan persetujuan atasan.",
    "polish": "Pracownik może przenieść pięć dni, jeżeli kierownik wyrazi zgodę na to i się podpisze.",
    "simple": "Zamestnanec si môže preniesť päť dní do ďalšieho roka, ak s tým vedúci súhlasí a podpíše sa.",
}


class TextsTests(SimpleTestCase):
    def texts(self, name, data):
        return {section.anchor: section.text for section in reading(name, data).sections}

    def test_the_encoding_of_a_short_text_is_recognised(self):
        wrong = [
            (text[:20], name)
            for text, names in ENCODED.items()
            for name in names.split()
            if decode(text.encode(name)) != text
        ]
        self.assertEqual(wrong, [])

    def test_utf_16_text_is_not_a_binary_file(self):
        self.assertEqual(self.texts("a.txt", "Some words.".encode("utf-16-le")), {"": "Some words."})

    def test_languages_are_recognised_from_one_sentence(self):
        self.assertEqual(
            {name: language_of(text) for name, text in LANGUAGES.items()}, {n: n for n in LANGUAGES}
        )

    def test_languages_without_a_stemmer_get_the_simple_configuration(self):
        for text in ("", "1234", "休暇は翌年に繰り越す", "Oslo Bergen", "พนักงานสามารถลาพักร้อนได้"):
            self.assertEqual(language_of(text), "simple", text)

    def test_each_record_of_json_lines_can_be_cited_and_names_itself(self):
        lines = "\n".join(json.dumps({"name": f"Port {n}", "calls": n}) for n in (1, 2))
        for ending in ("jsonl", "ndjson", "json"):
            found = reading(f"a.{ending}", lines).sections
            self.assertEqual(
                [(section.anchor, section.heading, section.text) for section in found],
                [
                    ("record=1", "Port 1", "name: Port 1; calls: 1"),
                    ("record=2", "Port 2", "name: Port 2; calls: 2"),
                ],
            )

    def test_nested_records_of_json_have_their_path_as_heading(self):
        data = {"title": "Fleet", "year": 2026, "crew": {"masters": [{"name": "Ada"}, {"name": "Bo"}]}}
        found = reading("a.json", json.dumps(data))
        self.assertEqual(found.title, "Fleet")
        self.assertEqual(
            [(section.anchor, section.heading) for section in found.sections],
            [
                ("", ""),
                ("record=crew.masters/1", "crew.masters › Ada"),
                ("record=crew.masters/2", "crew.masters › Bo"),
            ],
        )

    def test_many_tiny_records_share_sections(self):
        found = reading("a.json", json.dumps([{"n": number} for number in range(3_000)]))
        self.assertLess(len(found.sections), 1_100)
        self.assertIn("n: 2999", found.sections[-1].text)

    def test_csv_with_years_as_columns_ragged_rows_and_quoted_lines(self):
        data = 'Region,2025,2026\nNorth,"1,000",1200\nSouth,7\n"West\nEnd",1,2,3\n'
        self.assertEqual(
            self.texts("a.csv", data)[""].split("\n"),
            [
                "Region: North; 2025: 1,000; 2026: 1200",
                "Region: South; 2025: 7",
                "Region: West End; 2025: 1; 2026: 2; 3",
            ],
        )

    def test_csv_that_says_its_separator_or_never_closes_a_quotation(self):
        self.assertEqual(self.texts("a.csv", "sep=;\na;b\n1,5;2\n")[""], "a: 1,5; b: 2")
        data = 'a,b\n5 inch,"no end\n1,2\n' + "\n" * 210_000
        lines = self.texts("a.csv", data)[""].split("\n")
        self.assertEqual(lines[:2], ['a: 5 inch; b: "no end', "a: 1; b: 2"])

    def test_csv_with_semicolons_is_not_split_at_the_commas_of_its_values(self):
        for data, text in {
            "52,5;13,4\n48,8;2,3\n": "52,5; 13,4\n48,8; 2,3",
            "Bolt, M6;1,50\nNut, large;5,-\n": "Bolt, M6; 1,50\nNut, large; 5,-",
            "From, to;Rate, net\n0,5;1,5\n": "From, to: 0,5; Rate, net: 1,5",
        }.items():
            self.assertEqual(self.texts("a.csv", data)[""], text)

    def test_csv_with_commas_is_not_split_at_the_semicolons_of_its_values(self):
        for data, cell in {
            "Port,Notes\nEllery,old;new\n": "Notes: old;new",
            "Ellery,old;new\nCarrow,red;blue\n": "old;new",
            'Ellery,"old; new",5\nCarrow,"red; blue",6\n': "old; new",
            "10,Agent/5 (X11; Linux)\n11,Agent/5 (X11; Linux)\n": "Agent/5 (X11; Linux)",
        }.items():
            self.assertIn(cell, self.texts("a.csv", data)[""])

    def test_a_form_of_names_and_values_has_no_header(self):
        self.assertEqual(self.texts("a.csv", "Name:,Ann\nTown:,Bath\n")[""], "Name: Ann\nTown: Bath")

    def test_underlined_lines_of_a_text_are_headings(self):
        text = "Guide\n*****\n\nHello.\n\n1 Use\n=====\n\n1.1 Start\n---------\n\nPress it.\n\n2 End\n=====\n"
        self.assertEqual(
            [(section.heading, section.text) for section in reading("a.txt", f"{text}Bye.\n").sections],
            [
                ("Guide", "Hello."),
                ("Guide › 1 Use › 1.1 Start", "Press it."),
                ("Guide › 2 End", "Bye."),
            ],
        )

    def test_a_text_of_one_underlined_line_is_kept(self):
        self.assertEqual(self.texts("a.txt", "Guide\n*****\n"), {"": "Guide"})

    def test_items_of_a_markdown_list_are_counted_from_its_first_number(self):
        text = "1. One\n1. Two\n   1) Three\n   1) Four\n   * Five\n1. Six\n\nText.\n\n7. Seven\n"
        self.assertEqual(
            self.texts("a.md", text)[""].split("\n\n"),
            ["1. One", "2. Two", "1. Three", "2. Four", "- Five", "3. Six", "Text.", "7. Seven"],
        )

    def test_character_references_in_html_blocks_of_markdown_are_characters(self):
        text = "<p align=center>M&uuml;ller &amp; Co.: 3 &lt; 5 &euro;</p>\n"
        self.assertEqual(self.texts("a.md", text)[""], "M\u00fcller & Co.: 3 < 5 \u20ac")

    def test_a_heading_with_nothing_under_it_is_text(self):
        self.assertEqual(self.texts("a.md", "# Only this\n")["only-this"], "Only this")

    def test_only_the_folder_of_a_killed_reader_is_removed(self):
        with workspace() as folder:
            path = self._aged(folder)
            sweep()
            self.assertTrue(path.exists())
        left = self._aged(f"{folder}x")
        sweep()
        self.assertFalse(left.exists())

    @skipUnless(os.geteuid() == 0, "Only root can give a folder away.")
    def test_a_folder_of_another_user_is_left_alone(self):
        with workspace() as folder:
            foreign = self._aged(f"{folder}y")
        os.chown(foreign, 1, 1)
        self.addCleanup(foreign.rmdir)
        sweep()
        self.assertTrue(foreign.exists())

    def _aged(self, folder):
        path = Path(folder)
        path.mkdir(exist_ok=True)
        os.utime(path, (0, 0))
        return path
