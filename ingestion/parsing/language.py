"""Which language a text is in, as the name of a text-search configuration of PostgreSQL."""

import re

UNKNOWN = "simple"
SAMPLE_CHARACTERS = 60_000
FEWEST_WORDS = 4  # known words below which nothing is said

COMMON = {
    "danish": "og i at det er en til af på de med der ikke den som et har for ikke jeg",
    "dutch": "de het een en van in is dat op te zijn met voor niet aan er om ook als dan",
    "english": "the and of to in is that for it with as on are be this by from or an at",
    "finnish": "ja on ei se että oli hän joka mutta niin kun ovat tai myös kuin ole tämä sen voi vain",
    "french": "le la les des et en un une du est que pour dans qui par sur pas au avec sont",
    "german": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als",
    "hungarian": "a az és hogy nem is egy van ez meg de csak volt már mint vagy még el kell",
    "italian": "il di e la che in un è per una sono con non del le si da della come più",
    "norwegian": "og i det er en til av på de med som ikke den et har for jeg du men også",
    "portuguese": "o a de que e do da em um para é com não uma os no se na por mais",
    "romanian": "și de în a la cu pe nu o este din că un pentru care mai sunt fi sau ce",
    "russian": "и в не на что с по это как из для но от за так все или его быть при",
    "spanish": "de la que el en y a los se del las un por con no una para es al lo",
    "swedish": "och i att det är en till av på de med som inte den ett har för jag du men",
    "turkish": "ve bir bu için ile da de olarak daha çok olan gibi ne ama en kadar sonra var mı ya",
}
LANGUAGES_OF: dict[str, list[str]] = {
    word: [language for language, words in COMMON.items() if word in words.split()]
    for word in set(" ".join(COMMON.values()).split())
}


def language_of(text: str) -> str:
    """The language whose common words are most frequent; "simple" where there are hardly any.

    A word that several languages share counts for each by its share.
    """
    votes: dict[str, float] = {}
    words = re.findall(r"[^\W\d_]+", text[:SAMPLE_CHARACTERS].lower())
    known = 0
    for word in words:
        languages = LANGUAGES_OF.get(word, ())
        known += bool(languages)
        for language in languages:
            votes[language] = votes.get(language, 0) + 1 / len(languages)
    if known < max(FEWEST_WORDS, len(words) * 0.05):
        return UNKNOWN
    return max(votes, key=lambda language: votes[language])
