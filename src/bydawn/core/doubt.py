"""Do the words around a promise take it back?"""

import re
import unicodedata
from functools import cache

from bydawn.core.text import LEFT_OUT_LINE

# A sentence with one of these words does not give the promise at its end. If unsure, include the word: a promise
# that was meant and rejected costs a round; one that was accepted and not meant costs the night.
_WORDS = (
    # negated
    r"not|never|nor|neither|cannot|\w+n't|(?:ca|wo|do|does|did|is|are|was|has|have|could|would|should)nt|without",
    r"unable|avoid\w*|refus\w+|declin\w+|withh\w+|refrain\w*|skip(?:ping)?|omit\w*|leav(?:e|ing) out|left out",
    r"fail\w* to|hold\w* (?:off|back)|premature\w*|too early|instead of|rather than|except|hesita\w+|no way",
    r"incomplete|unfinished|partial|partially|blocked|impossible|hardly|barely|far from|nowhere|dishonest\w*",
    r"lying|a lie|untrue|falsely|pretend\w*|withdraw\w*|retract\w*|\d\d?% (?:done|complete|finished)",
    r"still(?! (?:pass|work|green|hold|build|compil)\w*)",
    # postponed
    r"yet|later|next(?!\.)|soon|eventually|tomorrow|until|till|before|after\w*|once|when|whenever|then|for now",
    r"almost|nearly|a?wait(?:ing)?|(?<!0 )pending|going to|will(?! now)|\w+'ll(?! now)|to be (?:confirmed|continued)",
    # conditioned
    r"if|unless|would|could|should|might|may|only|assuming|provided|otherwise|in case|\w+'d|subject to|barring",
    r"(?:as|so) long as|depending|on condition|conditional\w*|maybe|perhaps|probably|possibly|presumably|hopefully",
    r"hypothetical\w*|in theory|theoretically|ideally",
    # mentioned
    r"must|needs? to|ha(?:ve|s) to|wants?|supposed|remember\w*|remind\w*|says|said|quot(?:e|ed|ing)|by [a-z]+ing",
    r"for (?:example|instance|reference)|expect(?:s|ed) (?:\w+ )?(?:answer|line|output|reply|string|token)",
    # the same in German, French and Spanish
    r"nicht|noch|kein\w*|niemals|erst|sobald|wenn|falls|bevor|nachdem|solange|später|würde|sollte|könnte|werden?|wird",
    r"vorausgesetzt|pas|jamais|encore|dès|une fois|quand|lorsque|tant que|jusqu\w*|avant|après|si|nunca|cuando|hasta",
    r"todavía|aún|antes|después|una vez|no (?:pued\w+|est(?:á|án|oy)|voy|deb[eo]|quiero|he|es)",
    # in Italian, Portuguese, Dutch, Swedish, Danish, Polish and Russian
    r"non(?!-)|ancora|quando|appena|dopo|não|ainda|depois|assim que|niet|geen|nog|zodra|wanneer|inte|ikke|när",
    r"nie|jeszcze|kiedy|gdy|jeśli|не|нельзя|ещё|еще|пока|когда|если|после",
)
# ... and where words are not separated by spaces: Chinese, Japanese, Korean, and symbols that mean no
_SIGNS = (
    r"不能|不会|不應|不应|无法|無法|尚未|还没|還沒|还未|未完成|如果|一旦|等到|之后|之後|以后|以後|稍后|稍後|除非|只有",
    r"ない|ません|まだ|たら|場合|次第|않|못|아직|(?:하|되)면|[❌🚫⛔🛑⏳🚧✗✘]",
)
_ORDERS = r"print|echo|emit|say|write|reply|respond|send|post|type|end|finish|conclude|declare|(?:output|signal)(?!:)"
_OPEN = (  # a sentence that ends with one of these is unfinished: "the token is <promise>…"
    r"about|an?|and|are|as|at|by|called|expects|for|from|in|into|like|my|namely|no|of|on|or|say|than|that|the|this|to",
    r"was|with|your|example|sample|format|syntax|placeholder|template|string|literal|criteri(?:a|on)|conditions?",
    r"instructions?|prompt",
)
_DOUBTS = (
    rf"\b(?:{'|'.join(_WORDS)})\b|{'|'.join(_SIGNS)}",
    # an instruction or a plan, not the deed: "to finish, print <promise>…", "Remaining:", "To do:"
    rf"(?:^\W*|, |\b(?:to|please|and|just) )(?:{_ORDERS})\b(?: [\w']+){{0,5}}\W*$|^\W*to-? ?do\W*$",
    r"^\W*(?:remaining|first(?!-)|draft|(?:my |the )?plan(?! (?:is|was|has)))\b|^\W*(?:user|human|system)\W*$",
    rf"\b(?:{'|'.join(_OPEN)})\W*$|(?<!\bhere )(?<!\bit )\bis\W*$|\?\W*$",
    # an open quote or bracket, another tag or a comment, a table, an open box or a link definition
    r"(?:^|\s)[\"'`~]+$|[“«„‹「=]$|[(\[{][^()\[\]{}]*$|<[!/a-z]|\||^\[(?: \]|[^\]]*\]:)",
)
# No agent says this right above a promise it means, even as a sentence of its own.
_BARE_NO = (
    r"(?:(?:^|[:;,] )\W*not|\b(?:is|are)(?: not|n't)) (?:yet|(?:yet )?(?:done|ready|finished|complete\w*))\W*$",
    r"(?:^|[:;,] )\W*(?:incomplete|unfinished|(?:work )?in progress|wip|todo|blocked|failed)\W*$",
)

# What takes back a promise given a few lines above: all these words, and second thoughts.
_SECOND_THOUGHTS = (
    r"actually|correction|oops|sorry|scratch|disregard|ignore|kidding|mistake\w*|wrong\w*|however|but|though",
    r"although|still|fail\w*|errors?|broken|red|missing|remain\w*|left|todo|fixme|stubs?|unverified|untested",
    r"unresolved|example|sample|placeholder|template|above",
)
_TAKES_BACK = (
    rf"\b(?:{'|'.join((*_WORDS, *_SECOND_THOUGHTS))})\b|{'|'.join(_SIGNS)}",
    r"\[ \]|\?(?:\W|$)|</[a-z]|-->",  # an open box, a question, the end of some HTML or a comment around it
)
_HARMLESS = (  # our own remark, "let me know if you like", "0 failed", "fixed the failing test"
    LEFT_OUT_LINE,
    r"if (?:you(?:'d| would)? (?:like|want|need|prefer|have)|there(?:'s| is) anything)\b",
    r"\b(?:no|0|zero|nothing|none|without)(?: [\w']+){0,2}? (?:fail\w*|errors?|remain\w*|left|pending|missing)\b",
    r"\b(?:fixed|added|resolved|repaired|handled|closed|removed)(?: [\w']+){0,3}? (?:fail\w*|errors?|missing|broken)\b",
)
_GOES_ON = r"[a-z]|\s*(?:[,;:?…)\]}»”\"']|(?:is|was|are|were|will|would|as|or|and|because|in)\b)"

# Figures of failure, and what makes them harmless.
_THINGS = r"(?:of (?:them|the) )?(?:(?:unit |integration )?(?:tests?|checks?|cases?|specs?|suites?|tasks?|boxes) )?"
_WELL = r"(?:are |is |have )?(?:pass\w*|green|succe\w+|ok|work\w*|done|complete\w*)\b"
_PART = rf"\b(\d{{1,9}}) ?(?:/|of|out of) ?(\d{{1,9}}) {_THINGS}{_WELL}"
_FAILED = rf"(?<![\d.,])[1-9][\d,]* {_THINGS}(?:still )?(?:fail\w*|errors?|broken|red)\b|\b(?:fail\w*|errors?): ?[1-9]"
_MENDED = r"\b(?:fixed|resolved|repaired|handled|earlier|previously|before|used to|now|expected)\b"

_SENTENCE_END = r"(?<!\.)[.!](?=[\s\"')\]]|$)|[。।॥۔።։។။]"  # not "...": trailing off is not the end of a sentence
_ABBREVIATION = r"(?i)\b(?:e\. ?g|i\. ?e|z\. ?B)\."
_SPAN = r"`[^`]*`"
_CODE = r"[/\\(){}\[\]<>=|&$#@_]|\s-|\.\w"  # tells a command like `make -k` from a word in code style like `not`
_QUOTES = r'(")|(`)|(~~)|([“”„])|([«»])|([「」])'
_LONGEST_SENTENCE = 5_000  # characters; a longer one is not worth the time
_LONGEST_AFTERWORD = 20_000  # a reply that goes on this long had not finished
_TAIL = 200  # characters; enough for the end of a sentence
_MARKS = str.maketrans({"*": None, "_": " ", **dict.fromkeys("’‘ʼ´′", "'")})
_INVISIBLE = {"Cc", "Cf", "Me", "Mn"}  # Unicode's control, format and combining characters


@cache
def _compiled(*patterns: str) -> re.Pattern[str]:
    """Compiled when a promise is first examined; most commands never do."""
    return re.compile("|".join(patterns), re.IGNORECASE)


def doubted(before: str, above: str) -> bool:
    """Does the text before the promise, or right above it, say that it is not meant?"""
    if _left_open(before):
        return True
    own, other = (plain(_without_code(text)) for text in (before, above))
    if _compiled(*_DOUBTS).search(_last_sentence(own)):
        return True
    last = [_last_sentence(text.rstrip(".! "))[-_TAIL:] for text in (own, other)]
    return any(_compiled(*_BARE_NO).search(sentence) or _counts_failures(sentence) for sentence in last)


def _counts_failures(sentence: str) -> bool:
    """Does it say "0 of 5 pass" or "3 failed", and not that they were fixed? "0 failed" and "5 of 5 pass" are fine."""
    if _compiled(_MENDED).search(sentence):
        return False
    parts = _compiled(_PART).finditer(sentence)
    return _compiled(_FAILED).search(sentence) is not None or any(int(part[1]) < int(part[2]) for part in parts)


def taken_back(behind: str) -> bool:
    """Does anything after a promise take it back? Code counts too: a log may bring the bad news."""
    if len(behind) > _LONGEST_AFTERWORD or re.match(_GOES_ON, behind):
        return True
    said = _compiled(*_HARMLESS).sub(" ", plain(behind))
    return _compiled(*_TAKES_BACK).search(said) is not None


def plain(text: str) -> str:
    """The words as a reader sees them: no emphasis, nothing invisible, one kind of apostrophe and space."""
    characters = unicodedata.normalize("NFKC", text.translate(_MARKS)).translate(_MARKS)
    seen = (char for char in characters if char.isspace() or unicodedata.category(char) not in _INVISIBLE)
    return " ".join("".join(seen).split())


def _left_open(text: str) -> bool:
    """Is a quote, code span or strike-through left open?"""
    signs = [found.lastindex for found in re.finditer(_QUOTES, _without_code(text))]
    return any(signs.count(kind) % 2 for kind in set(signs))


def _without_code(text: str) -> str:
    """Replace commands, names and our own remarks: they are about the program, not about the promise."""
    text = re.sub(LEFT_OUT_LINE, "code", text)
    return re.sub(_SPAN, lambda span: "code" if re.search(_CODE, span[0]) else span[0], text)


def _last_sentence(text: str) -> str:
    return re.split(_SENTENCE_END, re.sub(_ABBREVIATION, "for example", text[-_LONGEST_SENTENCE:]))[-1].strip()
