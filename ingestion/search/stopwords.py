"""Question words, which are removed from a question before a search.

PostgreSQL's stop word lists lack many question words (“wer”, “whose”, “how many”), including all of those in
scripts without spaces. Question words are rare in documents, so they would get the highest weight.
"""

import functools
import re

from .tokens import units

_COUNTED = (
    "些里裡裏儿兒边邊个個种種年位国國家支项項条條所部座首块塊幅句类類场場份本名款只隻颗顆艘届屆段层層组組群队隊"
    "州市省城天月日次人样樣张張件间間门門"
)
# Chinese question words are removed together with a preceding “is” or “is called”, which would otherwise form
# a bigram with the word before it.
_CHINESE = (
    "(?:叫做|叫作|称为|稱為|是|叫)?"
    "(?:什么时候|什麼時候|什么样|什麼樣|什么|什麼|甚么|甚麼"
    f"|哪(?!吒)[一两兩三几幾]?(?:方面|年代|[{_COUNTED}])?"
    "|谁|誰|多少"
    "|(?<![许許很众眾诸諸])多[大长長久远遠高深快宽寬厚早晚]"
    "|第?[几幾][个個次支名位所种種年岁歲天码碼期月人家条條项項座部点點时時]"
    "|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|如何|啥|咋"
    "|为什么|為什麼|為甚麼|为何|為何|(?<!任)何[时時处處种種地人物事故国國年月日以为為方]|是否|请问|請問"
    r"|[吗嗎呢](?=\W*\Z))"
)
_JAPANESE = (
    "いつ|どこ|だれ|なぜ|どうして|どうやって|どのように|どのくらい|どれくらい|どの|どれ|どんな|いくつ|いくら"
    "|何ですか|ですか|ますか|でしょうか"
)
_KOREAN = "무엇|언제|어디|누가|누구|어떻게|어떤|얼마나|얼마|입니까|습니까"
_THAI = "อะไร|เมื่อไหร่|เมื่อไร|ที่ไหน|ใคร|ทำไม|อย่างไร|เท่าไหร่|เท่าไร"

# The question's language is unknown, so these lists omit words that are names or content words in
# another language.
_ENGLISH = "whose|how +(?:many|much|long|often|far|old|tall|high|deep|fast|soon|large|big)"
_GERMAN = (
    "wer|wem|wessen|wann|warum|wieso|weshalb|weswegen|wohin|woher|wieviel(?:e[nr]?)?"
    "|wo(?:durch|für|gegen|mit|nach|ran|rauf|raus|rin|rüber|rum|runter|von|vor|zu)"
    "|wie +(?:viel(?:e[nr]?)?|lange?|oft|weit|alt|hoch|groß|tief|schnell)"
)
_FRENCH = "quoi|quand|où|combien|pourquoi|quel(?:le)?s?|lequel|laquelle|est-ce +qu[e'’]?"
_SPANISH = "quién(?:es)?|cuándo|cuánt[oa]s?|cuál(?:es)?|a?dónde|cómo|qué"
_PORTUGUESE_AND_ITALIAN = "quando|quant[oa]s?|quais|quali|quale|porquê|perché|quem|onde"
_DUTCH_AND_DANISH = (
    "wanneer|waarom|hoeveel|waarheen|hoelang|hoe +(?:lang|vaak|veel|oud|hoog|ver)|welke?"
    "|hvem|hvornår|hvorfor|hvordan|hvilke[nt]?"
)
_SWEDISH = "när|varför|vilk(?:en|et|a)|vems?|hur +(?:många|mycket|länge|ofta|stor[at]?|gammal|högt?)"
_POLISH = (
    "kiedy|gdzie|dlaczego|skąd|dokąd|czyj[aei]?|jak(?:i|a|ie|im|ich|iej|ą)|któr(?:y|a|e|ego|ej|ych|ym)|kto"
    "|ile"
)
_RUSSIAN = (
    "почему|сколько|как(?:ой|ая|ое|ого|ому|им|ом|ую|ие|их|ов|ова|овы)|чей|чья|чьи|откуда|когда|где|куда"
    "|зачем|кто"
)
_TURKISH = "nasıl|niçin|neden|niye|nere(?:de|ye|den)|hangi(?:si|leri)?|kaç|ne +(?:zaman|kadar)|kim(?:in|ler)"
_ARABIC = "متى|أين|كيف|لماذا|ماذا|كم|هل|ما +(?:هو|هي)|من +(?:هو|هي)"
_SPACED = "|".join(
    [
        _ENGLISH,
        _GERMAN,
        _FRENCH,
        _SPANISH,
        _PORTUGUESE_AND_ITALIAN,
        _DUTCH_AND_DANISH,
        _SWEDISH,
        _POLISH,
        _RUSSIAN,
        _TURKISH,
        _ARABIC,
    ]
)

# In each list, longer words come before their prefixes, so that they take precedence.
_ANY = re.compile(rf"{_CHINESE}|{_JAPANESE}|{_KOREAN}|{_THAI}|\b(?:{_SPACED})\b", re.IGNORECASE)


@functools.lru_cache(maxsize=50)  # cached, because a search needs it several times
def without_question_words(question: str) -> str:
    """`question` without its question words; unchanged if nothing would remain."""
    rest = _ANY.sub(" ", question)
    return rest if units(rest) else question
