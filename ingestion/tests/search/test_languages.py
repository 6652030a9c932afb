"""Sentences, questions and language detection for common languages."""

import snowballstemmer
from django.test import SimpleTestCase

from ingestion.parsing.language import language_of
from ingestion.search.sentence_splitting import split_sentences
from ingestion.search.stems import LANGUAGES, stem
from ingestion.search.stopwords import without_question_words

# Two sentences each; the first has a full stop that does not end a sentence.
SENTENCES = {
    "english": ["Dr. Miller leaves on 3 May, i.e. next week.", "Call her before nine."],
    "german": ["Die Frist beträgt ca. 14 Tage, vgl. Abs. Drei der Ordnung.", "Danach gilt sie als versäumt."],
    "french": ["La réunion avec Mme. Durand dure env. 2 heures.", "Elle est obligatoire pour tous."],
    "spanish": ["Consulte la pág. 12 con la Sra. Gómez antes del viaje.", "¿Quién firma el informe?"],
    "italian": ["Il modulo va inviato al sig. Rossi entro la pag. 3 del registro.", "La scadenza è venerdì."],
    "dutch": ["Vraag dhr. Jansen om bijv. Een kopie van de pas.", "De balie is open tot vijf uur."],
    "portuguese": ["Fale com a Sra. Silva sobre a pág. 4 do manual.", "O prazo é de dez dias."],
    "swedish": ["Mötet börjar kl. 9 och gäller t.ex. Alla nya.", "Anmälan görs av chefen."],
    "polish": [
        "Wniosek zgodnie z ust. 2 składa się do ul. Długiej, tj. do biura.",
        "Termin upływa w piątek.",
    ],
    "russian": [
        "Заявление подают на ул. Ленина, см. Приложение.",
        "Срок составляет пять дней и не может быть продлён.",
    ],
    "turkish": [
        "Formu Sn. Yılmaz için bkz. Ek bölümünde doldurun.",
        "Süre beş gündür ve daha sonra uzatılmaz.",
    ],
    "arabic": ["هل يجوز ترحيل الإجازة إلى السنة التالية؟", "يجب تقديم الطلب قبل نهاية الشهر."],
    "chinese": ["每年可以休二十五天年假。", "请提前向主管申请！"],
    "japanese": ["休暇は翌年に五日まで繰り越せます。", "上司に申請してください。"],
}
# The words that remain of a question are searched for.
QUESTIONS = {
    "How many days of leave do I have?": "days of leave do I have?",
    "Wann endet die Frist?": "endet die Frist?",
    "Combien de jours de congé ?": "de jours de congé ?",
    "¿Cuántos días de vacaciones tengo?": "¿ días de vacaciones tengo?",
    "Quanti giorni di ferie?": "Quanti giorni di ferie?",
    "Hoe lang duurt de proeftijd?": "duurt de proeftijd?",
    "Onde fica o escritório?": "fica o escritório?",
    "Hur många semesterdagar har jag?": "semesterdagar har jag?",
    "Kiedy upływa termin wniosku?": "upływa termin wniosku?",
    "Сколько дней отпуска положено?": "дней отпуска положено?",
    "İzin süresi kaç gündür?": "İzin süresi gündür?",
    "متى تنتهي الإجازة؟": "تنتهي الإجازة؟",
    "年假什么时候开始？": "年假 开始？",
    "休暇はいつ始まりますか": "休暇は 始まり",
}
UNSTEMMED = ("chinese", "japanese")


class LanguageTests(SimpleTestCase):
    def test_sentences_are_split_correctly_in_each_language(self):
        for language, sentences in SENTENCES.items():
            found = [span.text for span in split_sentences(" ".join(sentences))]
            self.assertEqual(found, sentences, language)

    def test_the_question_words_of_each_language_are_not_searched_for(self):
        for question, rest in QUESTIONS.items():
            self.assertEqual(without_question_words(question).split(), rest.split(), question)

    def test_each_language_is_recognised_from_two_sentences_and_unknown_ones_are_simple(self):
        for language, sentences in SENTENCES.items():
            expected = "simple" if language in UNSTEMMED else language
            self.assertEqual(language_of(" ".join(sentences)), expected, language)

    def test_the_language_of_a_short_or_tabular_text_is_not_guessed(self):
        names = "\n".join(f"Name: Ada Berg {n}; Ort: An der Bucht; Preis: {n} pro Tag" for n in range(200))
        for text in ("Oslo", "the the the", "Menu of the day", names, "A: in\nB: on\nC: 12\nD: 4\nE: 5"):
            self.assertEqual(language_of(text), "simple", text[:40])


class StemTests(SimpleTestCase):
    def test_a_number_is_its_own_stem_as_in_the_stemming_algorithm(self):
        for language in LANGUAGES:
            algorithm = snowballstemmer.stemmer(language)
            for number in ("7", "007", "2026", "20260104", "12345678901234567890"):
                self.assertEqual(stem(number, language), algorithm.stemWord(number))
