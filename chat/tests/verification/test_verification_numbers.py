"""Numbers, units, times and tables in statements against the sources that they cite."""

from chat.tests.sources import source
from chat.tests.verdict_case import FAIRS, FARES, SAFETY, VerdictCase
from chat.verification import verify, verify_anew
from chat.verification.terms.facts import tokens
from chat.verification.terms.words import Kind, number_value


class NumberTests(VerdictCase):
    def test_a_number_or_name_without_another_in_its_place_may_be_written_otherwise(self):
        office = source(
            9,
            "o.md",
            "The OA contacts you soon after the form was accepted. Sick pay lasts eight weeks after 3 to 5 "
            "years of service. Core hours are 10:00 to 15:30; the house is open between 07:00 and 19:00. "
            "Only the clerk can change the contract.",
        )
        self.assert_verdicts_in(
            office,
            "supported",
            "The core hours are between 10:00 and 15:30",
            "Nobody but the clerk can change the contract",
        )
        for statement, unclear in (
            ("After four years of service sick pay lasts eight weeks [o.md]", True),
            ("After seven years of service sick pay lasts eight weeks [o.md]", False),
            ("The Office of Acquisition contacts you soon after the form was accepted [o.md]", True),
            ("The Office of Recruitment contacts you soon after the form was accepted [o.md]", False),
        ):
            with self.subTest(statement):
                (found,) = verify(statement, (office,))
                self.assertEqual((found.verdict, found.unclear), ("not_found", unclear))

    def test_in_other_words_only_a_number_beside_the_same_words_is_in_its_place(self):
        hall = source(
            9,
            "h.md",
            "Members book the hall with their card at the desk. Lockers for visitors cost £3. "
            "The deposit for a key is £20.",
        )
        for statement, unclear in (
            ("Members get into the hall with a card and pay £5 [h.md]", True),
            ("Whoever borrows a key leaves a deposit of £25 [h.md]", False),
        ):
            with self.subTest(statement):
                (found,) = verify(statement, (hall,))
                self.assertEqual((found.verdict, found.unclear), ("not_found", unclear))

    def test_a_number_of_one_unit_is_not_one_of_another(self):
        office = source(
            9,
            "u.md",
            "After ten or more days or five occasions of sick leave your manager checks in with you. Members "
            "may withdraw for up to 3 months. The term of office of members is one to three years. xz -6 "
            "uses 8 MiB of memory. The hour-long sessions are "
            "open to all.",
        )
        self.assert_verdicts_in(
            office,
            "supported",
            "After ten days or five occasions of sick leave your manager checks in with you",
            "The sessions last 60 minutes and are open to all",
        )
        accounts = source(9, "a.md", "Free accounts are cancelled after 365 days without a visit.")
        self.assert_verdicts_in(accounts, "supported", "Free accounts are cancelled after one year")
        self.assert_verdicts_in(
            office,
            "not_found",
            "After five days of sick leave your manager checks in with you",
            "Members may withdraw for up to 3 years",
            "xz -6 uses 6 MiB of memory",
        )

    def test_numbers_of_sections_amounts_and_factors_are_distinguished(self):
        found = [
            (token.value, token.unit)
            for token in tokens("§§ 23 bis 25, Abs. 2, $96.05, 10x, 2k 5 and am 3.10.")
        ]
        numbers = [each for each in found if each[0].replace(".", "").isdigit()]
        self.assertEqual(
            numbers,
            [
                ("23", "§"),
                ("25", "§"),
                ("2", "§"),
                ("96.05", "$"),
                ("10", ""),
                ("2000", ""),
                ("5", ""),
                ("3", "date"),
            ],
        )
        law = source(9, "l.md", "Der Zuschlag beträgt 3,4 Prozent. Die §§ 23 bis 25 gelten für den Zuschlag.")
        self.assert_verdicts_in(law, "not_found", "Der Zuschlag beträgt 25 Prozent")

    def test_a_number_of_another_sentence_does_not_support_the_best_one(self):
        leave = source(
            9,
            "l.md",
            "A parent may take 18 weeks of unpaid leave for each child until the 18th birthday. Parents give "
            "21 days of notice.",
        )
        (found,) = verify("A parent may take unpaid leave for each child until it turns 21 [l.md]", (leave,))
        self.assertEqual(found.verdict, "not_found")

    def test_the_opening_of_a_list_counts_for_each_of_its_numbers(self):
        loans = source(
            9,
            "l.md",
            "Die Frist beträgt für Bücher drei Wochen, für Filme und Spiele zwei Wochen, für Zeitungen eine "
            "Woche.",
        )
        self.assert_verdicts_in(
            loans,
            "supported",
            "Bücher haben eine Frist von 21 Tagen",
            "Zeitungen haben eine Frist von sieben Tagen",
        )
        (found,) = verify("Die Frist für Filme beträgt drei Wochen [l.md]", (loans,))
        self.assertEqual(found.verdict, "not_found")

    def test_dates_with_a_month_between_dashes_and_halves_in_german(self):
        kinds = [(token.kind.value, token.value) for token in tokens("10-Nov-2026, zweieinhalb, Aug-2016")]
        self.assertEqual(
            kinds,
            [
                ("number", "10"),
                ("name", "month11"),
                ("number", "2026"),
                ("number", "2.5"),
                ("name", "month8"),
                ("number", "2016"),
            ],
        )

    def test_a_missing_number_is_reported_if_the_rest_or_nothing_occurs(self):
        fees = source(
            9,
            "f.md",
            "The fee for guests between 61 and 90 is £300. Members are told of a rise twelve months before.",
        )
        for statement, unclear in (
            ("The fee for guests between 61 and 90 is £350 [f.md]", False),
            ("A party of 75 people pays £300 [f.md]", True),
            ("A company owns seven red lorries and four barges for members [f.md]", False),
        ):
            with self.subTest(statement):
                (found,) = verify(statement, (fees,))
                self.assertEqual((found.verdict, found.unclear), ("not_found", unclear))

    def test_one_statement_may_combine_several_rows(self):
        needs = source(
            9,
            "r.md",
            "Resource: CPU; Minimum: 1 GHz\nResource: RAM; Minimum: 6 GiB\nResource: Disk; Minimum: 20 GiB\n",
        )
        (found,) = verify(
            "It needs a processor of 1 GHz, 6 GiB of memory, and 20 GiB of disk space [r.md]", (needs,)
        )
        self.assertFalse(found.verdict == "not_found" and not found.unclear)
        self.assert_verdicts_in(needs, "not_found", "The Disk minimum is 6 GiB")

    def test_one_is_a_number_like_any_other(self):
        rule = source(9, "r.md", "Damage must be reported within one day.")
        verdict = verify_anew("Damage is reported within three days [r.md].", [rule])[0]
        self.assertEqual((verdict.verdict, verdict.proofs[0].unclear), ("not_found", False))

    def test_german_adjectives_and_abbreviations_have_units(self):
        for said, verdict, rule in (
            ("Die Frist beträgt 30 Tage", "supported", "Es gilt eine 30-tägige Frist."),
            ("Die Frist beträgt 30 Monate", "not_found", "Es gilt eine 30-tägige Frist."),
            ("Die Frist beträgt 3 Tage", "not_found", "Die Frist beträgt 3 Std."),
            ("Es kostet 5 Millionen Euro", "supported", "Es kostet 5 Mio. Euro."),
        ):
            self.assert_verdicts_in(source(9, "r.md", rule), verdict, said)

    def test_cents_are_not_per_cent(self):
        fee = source(9, "f.md", "A copy costs 50 cents. Late copies cost 50 per cent more.")
        self.assert_verdicts_in(
            fee,
            "supported",
            "A copy costs 50 cent",
            "Late copies cost 50 % more",
            "Late copies cost 50 percent more",
        )
        self.assert_verdicts_in(
            source(9, "f.md", "A copy costs 50 percent of the fee."), "not_found", "A copy costs 50 cents"
        )
        self.assert_verdicts_in(
            source(9, "f.md", "Eine Kopie kostet 50 Cent."), "not_found", "Eine Kopie kostet 50 Prozent"
        )

    def test_numbers_in_words_are_numbers(self):
        facts = source(
            9,
            "n.md",
            "You can have up to 24 credit hours. The top salary in FY22 was $176,300. Rates are reviewed "
            "quarterly. Half the cost is refunded. The permit expires one year after it was issued.",
        )
        self.assert_verdicts_in(
            facts,
            "supported",
            "You can have up to two dozen credit hours",
            "Every three months the rates are reviewed",
            "50 per cent of the cost is refunded",
        )
        self.assert_verdicts_in(
            facts,
            "not_found",
            "You can have up to three dozen credit hours",
            "Every six months the rates are reviewed",
            "Half of the cost is paid, 40 per cent of the cost is refunded",
            "The permit expires one month after it was issued",
        )

    def test_another_number_date_or_unit_is_not_found(self):
        self.assert_verdict(
            "not_found",
            "You can carry over six days of leave until 31 March [a.md#x].",
            "You can carry over five days of leave until 30 April [a.md#x].",
            "You can carry over five weeks of leave until 31 March [a.md#x].",
            "The meal allowance is £30 [a.md#x].",
            "Der jährliche Urlaub beträgt mindestens 20 Werktage [c.md].",
        )

    def test_a_row_of_a_pdf_is_read_with_its_header_and_alone(self):
        self.assert_verdicts_in(
            SAFETY,
            "supported",
            "A continuous bell means fire",
            "A Class B vessel carries four life rafts",
            "Fleece jackets are replaced every 24 months",
            "Explosives are not carried on any vessel",
            "Water must never be used on burning oil, fuel or paint",
        )
        self.assert_verdicts_in(
            SAFETY,
            "not_found",
            "A continuous bell means person overboard",
            "A Class A vessel carries four life rafts",
            "Fleece jackets are replaced every 36 months",
            "Water may be used on burning oil, fuel or paint",
        )

    def test_numbers_that_follow_from_the_statement_or_the_source_agree(self):
        code = source(
            8,
            "code.md",
            "Format version numbers start at 1. There are four test harnesses, each maintained separately "
            "from the others. The log was added with version 3.7.0 (2010-07-21). The source code is over 35% "
            "comment. The page size may be changed in journal mode only.",
        )
        self.assert_verdicts_in(
            code,
            "supported",
            "To change the page size, switch to journal mode first",
            "Each of the four test harnesses is maintained separately from the other three",
            "The log was added in July 2010",
            "More than 33 % of the source code is comment",
        )
        self.assert_verdicts_in(
            code,
            "not_found",
            "More than 50 % of the source code is comment",
            "Each of the five test harnesses is maintained separately from the other four",
            "The log was added in July 2012",
        )

    def test_numbers_that_stand_beside_letters_in_order_belong_to_them(self):
        self.assert_verdicts_in(SAFETY, "supported", "On Class B everyone is counted within ten minutes")
        self.assert_verdicts_in(SAFETY, "not_found", "On Class B everyone is counted within 15 minutes")

    def test_a_number_of_a_sentence_that_says_less_of_the_statement_is_another_one(self):
        self.assert_verdicts_in(SAFETY, "supported", "The office will answer you on extension 3100")
        self.assert_verdicts_in(SAFETY, "not_found", "Extension 2200 answers for the office")

    def test_bounds_and_units_may_be_put_in_other_words(self):
        self.assert_verdicts_in(
            SAFETY,
            "supported",
            "Phone your manager at least one hour before your shift begins",
            "A waterproof coat is replaced after three years",
            "A day at sea lasts no longer than 12 hours",
        )
        self.assert_verdicts_in(
            SAFETY,
            "not_found",
            "Phone your manager at most one hour before your shift begins",
            "A day at sea may exceed 12 hours",
        )

    def test_a_bound_in_the_opposite_direction_is_not_found(self):
        for content, *others in (
            ("up to 30 minutes", "at least 30 minutes", "more than 30 minutes", "no less than 30 minutes"),
            ("at least 30 minutes", "up to 30 minutes"),
            ("under 30 minutes", "over 30 minutes"),
        ):
            found = source(1, "p.md", f"Visitors may park in the yard for {content}.")
            statements = (f"Visitors may park in the yard for {other}" for other in others)
            self.assert_verdicts_in(found, "not_found", *statements)
        for content, *others in (
            ("bis zu 30 Minuten", "mindestens 30 Minuten", "mehr als 30 Minuten"),
            ("mindestens 30 Minuten", "bis zu 30 Minuten"),
            ("unter 30 Minuten", "über 30 Minuten"),
        ):
            found = source(1, "p.md", f"Besucher dürfen {content} im Hof parken.")
            statements = (f"Besucher dürfen {other} im Hof parken" for other in others)
            self.assert_verdicts_in(found, "not_found", *statements)

    def test_a_bound_in_the_same_direction_is_supported(self):
        for content, *others in (
            (
                "Trips of up to 5 days are paid.",
                "Trips of at most 5 days are paid",
                "Trips of no more than 5 days are paid",
                "Trips of 5 days or less are paid",
            ),
            ("Reisen bis zu 5 Tagen werden bezahlt.", "Reisen von höchstens 5 Tagen werden bezahlt"),
            (
                "Employees may carry over five days of leave.",
                "At most five days of leave may be carried over",
            ),
            ("Die Reise dauert 3 bis zu 5 Tage.", "Die Reise dauert 3 bis 5 Tage"),
            ("Der Vertrag läuft über 12 Monate.", "Der Vertrag läuft mindestens 12 Monate"),
            ("The deposit may not exceed 900 euros.", "The deposit is at most 900 euros"),
        ):
            self.assert_verdicts_in(source(1, "p.md", content), "supported", *others)

    def test_what_may_be_exceeded_is_not_what_may_not(self):
        for one, other in (
            ("The contract may exceed 900 euros", "The contract may not exceed 900 euros"),
            (
                "Die Last des Wagens darf auf der Brücke 12 Tonnen überschreiten",
                "Die Last des Wagens darf auf der Brücke 12 Tonnen nicht überschreiten",
            ),
            (
                "Auf der Brücke dürfen 12 Tonnen überschritten werden",
                "Auf der Brücke dürfen 12 Tonnen nicht überschritten werden",
            ),
        ):
            self.assert_verdicts_in(source(1, "p.md", f"{one}."), "not_found", other)
            self.assert_verdicts_in(source(1, "p.md", f"{other}."), "not_found", one)

    def test_a_deadline_before_a_date_is_no_limit_of_the_time_before_it(self):
        for content, *others in (
            (
                "Rooms can be cancelled free of charge up to 14 days before the event.",
                "Rooms can be cancelled free of charge at least 14 days before the event",
                "Rooms can be cancelled free of charge no later than 14 days before the event",
            ),
            (
                "Eine Stornierung ist bis zu 30 Tage vor Reisebeginn kostenlos.",
                "Eine Stornierung ist mindestens 30 Tage vor Reisebeginn kostenlos",
            ),
        ):
            self.assert_verdicts_in(source(1, "p.md", content), "supported", *others)

    def test_a_denial_without_a_negation_does_not_reverse_a_bound(self):
        for content, *others in (
            ("Files over 20 MB are rejected.", "Files may have up to 20 MB"),
            (
                "Unter 18 Jahren ist die Teilnahme am Tauchkurs verboten.",
                "Für die Teilnahme am Tauchkurs muss man mindestens 18 Jahre alt sein",
            ),
        ):
            self.assert_verdicts_in(source(1, "p.md", content), "supported", *others)
        found = source(1, "p.md", "Files over 20 MB are rejected.")
        self.assert_verdicts_in(found, "not_found", "Files under 20 MB are rejected")

    def test_a_telephone_number_or_a_length_is_no_bound(self):
        for content, other in (
            ("Die Störungsstelle ist unter 4711 erreichbar.", "Die Störungsstelle ist über 4711 erreichbar"),
            ("Der Kurs geht über 12 Wochen.", "Der Kurs geht höchstens 12 Wochen"),
            (
                "The instalments are spread over 12 months.",
                "The instalments are spread over up to 12 months",
            ),
        ):
            self.assert_verdicts_in(source(1, "p.md", content), "supported", other)
        found = source(1, "p.md", "Firmen unter 5.000 Kunden zahlen nichts.")
        self.assert_verdicts_in(found, "not_found", "Firmen über 5.000 Kunden zahlen nichts")

    def test_what_is_below_is_not_above(self):
        found = source(1, "p.md", "The alarm E42 means that the pressure exceeds 6.5 bar.")
        self.assert_verdicts_in(found, "not_found", "E42 means that the pressure is below 6.5 bar")
        found = source(1, "p.md", "The alarm E42 means that the pressure is below 6.5 bar.")
        self.assert_verdicts_in(found, "supported", "E42 means that the pressure is less than 6.5 bar")

    def test_the_year_of_a_date_is_no_rival_of_an_edition(self):
        self.assert_verdicts_in(
            SAFETY, "supported", "The manual takes effect on 1 January 2026 and is edition 2026.1"
        )

    def test_many_comparisons_in_one_sentence_take_limited_time(self):
        text = "nobody may take more of 3 " * 3_000
        self.assertEqual(len(tokens(text)), 4 * 3_000)

    def test_a_difference_may_be_worked_out(self):
        self.assert_verdicts_in(
            FARES, "supported", "An adult pays £28 in summer, 6 more than the 22 in winter"
        )
        self.assert_verdicts_in(
            FARES, "not_found", "An adult pays £28 in summer, 9 more than the 22 in winter"
        )

    def test_thousands_may_be_shortened(self):
        site = source(9, "i.md", "Any site with fewer than 100K hits per day should work fine.")
        self.assert_verdicts_in(site, "supported", "Sites with fewer than 100,000 hits per day work fine")
        self.assert_verdicts_in(site, "not_found", "Sites with fewer than 10,000 hits per day work fine")

    def test_millions_may_be_abbreviated(self):
        for written in (
            "€14.2 million",
            "€14.2m",
            "EUR 14.2M",
            "14.2M EUR",
            "14,2m Euro",
            "€14,2m",
            "14.2\u00a0million euros",
            "€14,200,000",
        ):
            found = source(1, "p.md", f"Revenue in 2024 was {written} in all.")
            for other in ("€14.2m", "14.2 million euros", "€14.2 million", "EUR 14.2mn"):
                self.assert_verdicts_in(found, "supported", f"In 2024 revenue was {other}")
            for other in ("€14.2bn", "€14.2", "€14.3m", "€14.2k"):
                self.assert_verdicts_in(found, "not_found", f"In 2024 revenue was {other}")
        found = source(1, "p.md", "The budget is $2.5bn, of which $0.125k are left.")
        self.assert_verdicts_in(found, "supported", "The budget is $2.5 billion", "There are $125 left")
        self.assertEqual([token.value for token in tokens("a pool of 50m")], ["pool", "50m"])
        self.assertIn("50m", [token.value for token in tokens("a race of 50m £5")])
        found = source(1, "p.md", "Der Umsatz stieg 2024 auf 14,2\u00a0Mio.\u00a0€ insgesamt.")
        self.assert_verdicts_in(found, "supported", "2024 stieg der Umsatz auf 14,2 Millionen Euro")
        self.assert_verdicts_in(found, "not_found", "2024 stieg der Umsatz auf 14,3 Millionen Euro")

    def test_digits_may_be_grouped_by_spaces_beside_a_currency(self):
        for space in (" ", "\u00a0", "\u2009", "\u202f"):
            for written in (f"12{space}500 euros", f"EUR 12{space}500", f"12{space}500,00 €"):
                found = source(1, "p.md", f"The annual rent of the hall is {written}.")
                self.assert_verdicts_in(found, "supported", "The rent of the hall is 12,500 euros")
                for other in ("500 euros", "12 euros", "12,501 euros"):
                    self.assert_verdicts_in(found, "not_found", f"The rent of the hall is {other}")
        for text, values in (
            ("in 2024 300 people came", ["2024", "300"]),
            ("Life rafts 10 400 300", ["10", "400", "300"]),
            ("£45 120 300", ["45", "120", "300"]),
            ("rows 3 12 500 euros", ["3", "12", "500"]),
            ("1 200 300 euros", ["1200300"]),
            ("12 5000 euros", ["12", "5000"]),
            ("ein Preis von 12 500,00 €", ["12500"]),
            ("Price (12 500 €)", ["12500"]),
            ("Price: 12 500 €", ["12500"]),
        ):
            self.assertEqual([each.value for each in tokens(text) if each.kind is Kind.NUMBER], values, text)

    def test_a_label_and_an_amount_are_not_one_number(self):
        for text, values in (
            ("Zimmer 12 300 Euro, Zimmer 14 350 Euro", ["12", "300", "14", "350"]),
            ("Basic 12 300 €\nPremium 24 500 €", ["12", "300", "24", "500"]),
        ):
            self.assertEqual([each.value for each in tokens(text) if each.kind is Kind.NUMBER], values, text)
        found = source(1, "p.md", "Zimmer 12 300 Euro, Zimmer 14 350 Euro")
        self.assert_verdicts_in(found, "supported", "Zimmer 12 kostet 300 Euro")

    def test_a_time_may_be_put_in_another_unit(self):
        self.assert_verdicts_in(
            FAIRS,
            "supported",
            "You get your refund within a week",
            "Stays of half a year need a permit",
            "Rosters are published four weeks ahead",
        )
        self.assert_verdicts_in(
            FAIRS, "not_found", "Stays of half an hour need a permit", "You get your refund within a month"
        )

    def test_a_cell_belongs_to_its_label_and_to_the_first_cell_of_its_row(self):
        self.assert_verdicts_in(
            FARES,
            "supported",
            "In summer, an adult pays £28",
            "The night allowance is approved by the Duty Manager",
        )
        self.assert_verdicts_in(
            FARES,
            "not_found",
            "In winter, an adult pays £28",
            "In summer, a child pays £28",
            "The night allowance is approved by the Technical Director",
        )

    def test_the_time_of_a_number_must_match(self):
        grant = source(12, "l.md", "The travel grant is $150 per month. Guards work two nights a week.")
        self.assert_verdicts_in(grant, "supported", "The travel grant is 150 dollars a month")
        self.assert_verdicts_in(
            grant, "not_found", "The travel grant is $150 per week", "Guards work two nights a month"
        )

    def test_a_time_of_day_may_be_written_otherwise(self):
        hours = source(13, "m.md", "The desk opens at 09:00 every day. Deliveries arrive at 10:30 AM.")
        self.assert_verdicts_in(
            hours,
            "supported",
            "The desk opens at 9am every day",
            "The desk opens at nine o'clock every day",
            "Deliveries arrive at half past ten",
        )
        self.assert_verdicts_in(
            hours, "not_found", "The desk opens at 9pm every day", "Deliveries arrive at half past eleven"
        )

    def test_units_may_be_joined_to_their_numbers(self):
        disk = source(14, "n.md", "The server needs 16GB of memory. It listens on 53 over TCP/UDP.")
        self.assert_verdicts_in(
            disk, "supported", "The server needs 16 gigabytes of memory", "It listens on 53 over TCP and UDP"
        )
        self.assert_verdicts_in(disk, "not_found", "The server needs 16MB of memory")

    def test_the_day_of_a_numeric_date_is_not_another_number(self):
        table = source(
            15,
            "o.md",
            "Release: 22; Codename: Otter; First: 2024-04-24\n"
            "Release: 24; Codename: Heron; First: 2025-05-06",
        )
        self.assert_verdicts_in(table, "supported", "Release 24 has the codename Heron")
        self.assert_verdicts_in(table, "not_found", "Release 24 has the codename Otter")

    def test_numbers_have_one_spelling(self):
        for spellings, value in (
            (("1,204", "1.204", "1’204"), "1204"),
            (("2,5", "2.50"), "2.5"),
            (("007", "7"), "7"),
            (("1.234,50", "1,234.5"), "1234.5"),
        ):
            self.assertEqual({number_value(spelling) for spelling in spellings}, {value})
        values = [
            token.value for token in tokens("On 2026-03-31 or 31.03.2026, siebenundzwanzig or twenty-seven")
        ]
        self.assertEqual(values, ["31", "month3", "2026", "31", "month3", "2026", "27", "27"])
