"""Other spellings and forms of the words of a question."""

from django.test import SimpleTestCase

from ingestion.search.word_variants import variants_of


class WordVariantTests(SimpleTestCase):
    def assert_variants(self, question, **variants):
        found = {phrase.replace(" ", "_"): list(words) for phrase, words in variants_of(question).items()}
        self.assertEqual(found, variants, question)

    def test_a_verb_and_its_particle_are_joined(self):
        self.assert_variants("Who helps if I locked myself out?", locked_out=["lockout"])
        self.assert_variants("How do we sign up?", sign_up=["signup"])
        self.assert_variants("Where are you logged in?", logged_in=["login"])
        self.assert_variants("Can I get in?")
        self.assert_variants("out")

    def test_hyphenated_words_are_joined(self):
        self.assert_variants("Is there wi-fi?", wi_fi=["wifi"])
        self.assert_variants("Darf ich eine E-Mail schreiben?", e_mail=["email"])

    def test_german_verbs_with_a_separable_prefix_have_one_form(self):
        self.assert_variants("Wann wird der Verein aufgelöst?", aufgelöst=["auflösen"])
        self.assert_variants("Wer ist ausgeschlossen?", ausgeschlossen=["ausschließen"])
        self.assert_variants("Wo ist der Antrag einzureichen?", einzureichen=["einreichen"])
        self.assert_variants("Muss ich den Hund anmelden?", anmelden=["angemeldet", "anzumelden"])
        self.assert_variants("Wann ist die Abholung?", abholung=["abgeholt", "abzuholen"])

    def test_a_german_verb_is_rejoined_with_its_prefix_at_the_end(self):
        self.assert_variants("Wie melde ich den Hund ab?", melde_ab=["abmelden", "abzumelden"])
        self.assert_variants("Wann fängt der Kurs an?", fängt_an=["anfangen", "anzufangen"])

    def test_a_word_of_the_question_is_not_a_variant(self):
        self.assert_variants("Is a lockout when I am locked out?")
        self.assert_variants("")
