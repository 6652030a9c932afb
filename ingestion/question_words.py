"""Words that only ask, in scripts that do not space words.

PostgreSQL knows such words of many languages as stop words, but of none of these; documents seldom hold them,
so that they would count as the rarest words of a question.
"""

import re

from ingestion.words import units

_CHINESE = (
    "什么时候|什麼時候|什么|什麼|甚么|甚麼|哪些|哪里|哪裡|哪裏|哪儿|哪兒|哪个|哪個|哪种|哪種|哪年|哪一|哪位|哪国|哪國|哪两|哪兩"
    "|谁|誰|多少|多大|多长|多長|多久|多远|多遠|几个|幾個|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|如何"
    "|为什么|為什麼|為甚麼|为何|為何|何时|何時|何处|何處|何种|何種|何地|是否|请问|請問"
    r"|[吗嗎呢](?=\W*\Z)"
)
_JAPANESE = (
    "いつ|どこ|だれ|なぜ|どうして|どうやって|どのように|どのくらい|どれくらい|どの|どれ|どんな|いくつ|いくら"
    "|何ですか|ですか|ますか|でしょうか"
)
_KOREAN = "무엇|언제|어디|누가|누구|어떻게|어떤|얼마나|얼마|입니까|습니까"
_THAI = "อะไร|เมื่อไหร่|เมื่อไร|ที่ไหน|ใคร|ทำไม|อย่างไร|เท่าไหร่|เท่าไร"
_ANY = re.compile(f"{_CHINESE}|{_JAPANESE}|{_KOREAN}|{_THAI}")  # of those that begin alike the longest first


def without_question_words(question: str) -> str:
    """`question` without them, cut where they stood; whole where nothing else is asked."""
    rest = _ANY.sub(" ", question)
    return rest if units(rest) else question
