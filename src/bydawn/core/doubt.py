"""Do the words around a promise give it, or take it back?"""

import re

from bydawn.core.punctuation import last_sentence, plain
from bydawn.core.text import LEFT_OUT_LINE

# A sentence with one of these words does not give the promise at its end. If unsure, include the word: a promise
# that was meant and rejected costs a round; one that was accepted and not meant costs the night.
_NO = (
    r"not|never|nor|neither|cannot|(?:ca|wo|do|does|did|is|are|was|has|have|could|would|should)nt|without|unable|wip"
    r"|avoid\w*|refus\w+|declin\w+|withh\w+|refrain\w*|skip(?:ping)?|omit\w*|leav(?:e|ing) out|left out|fail\w* to"
    r"|hold\w* (?:off|back)|premature\w*|too early|instead of|rather than|hesita\w+|no way|withdraw\w*|retract\w*"
    r"|partial|partially|blocked|impossible|hardly|barely|far from|nowhere|dishonest\w*|lying|a lie|untrue|falsely"
    r"|pretend\w*|half|(?<![\d.])\d\d? ?% (?:done|complete\w*)|(?:done|complete\w*|status)\W+\d\d?(?= ?%)"
    # in German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish, Polish and Russian
    r"|nicht|noch nicht|kein\w*|niemals|pas|jamais|nunca|no (?:pued\w+|est(?:á|án|oy)|voy|deb[eo]|quiero|he|es)"
    r"|todavía|aún|non(?!-)|ancora|não|ainda|niet|geen|inte|ikke|nie|jeszcze|не|нельзя|ещё|еще"
)
_LATER = (  # postponed, conditioned or mentioned
    r"later|next(?!\.)|soon|eventually|tomorrow|until|till|before|after\w*|once|when|whenever|then|for now|almost"
    r"|nearly|a?wait(?:ing)?|(?<!0 )pending|going to|will(?! now)|to be (?:confirmed|continued)|if|unless|would"
    r"|could|should|might|may|only|assuming|provided|otherwise|in case|subject to|barring|(?:as|so) long as"
    r"|depending|on condition|conditional\w*|maybe|perhaps|probably|possibly|presumably|hopefully|hypothetical\w*"
    r"|in theory|theoretically|ideally|must|needs? to|ha(?:ve|s) to|wants?|supposed|remember\w*|remind\w*|says|said"
    r"|quot(?:e|ed|ing)|by [a-z]+ing|for (?:example|instance|reference)"
    r"|expect(?:s|ed) (?:\w+ )?(?:answer|line|output|reply|string|token)"
)
_LATER_ABROAD = (
    r"noch|erst|sobald|wenn|falls|bevor|nachdem|solange|später|würde|sollte|könnte|werden?|wird|vorausgesetzt|encore"
    r"|dès|une fois|quand|lorsque|tant que|jusqu\w*|avant|après|si|cuando|hasta|antes|después|una vez|appena|quando"
    r"|dopo|depois|assim que|nog|zodra|wanneer|när|kiedy|gdy|jeśli|пока|когда|если|после"
)
_SHORT = r"\w'(?:t|d|ll(?! now))\b"
_SIGNS = (  # in Chinese, Japanese, Korean and emoji
    r"不能|不会|不應|不应|无法|無法|尚未|还没|還沒|还未|未完成|如果|一旦|等到|之后|之後|以后|以後|稍后|稍後|除非|只有"
    r"|ない|ません|まだ|たら|場合|次第|않|못|아직|(?:하|되)면|[❌❎✖✗✘🚫⛔🛑⏳⌛🚧⏸❓❔🔴👎🤔☐⚠]"
)
# Wherever one of these follows a promise, it is taken back; …
_REGRETS = (
    r"actually|correction|oops|sorry|scratch|disregard|kidding|however|but|though|although|except|yet|broken|remain\w*"
    r"|still(?! (?:pass|work|green|hold|build|compil)\w*)|todo|wip|fixme|stubs?|un(?:verified|tested|resolved|finished)"
    r"|incomplete"
)
_STILL_OPEN = r"(?m)^\W*(?:open|skipped|pending|outstanding)\W*(?:$|:(?! (?:none|nothing|0)\b))"
# … and these, unless the sentence is a courtesy or says what was done.
_BAD_NEWS = r"fail\w*|errors?|red|missing|left|wrong\w*|mistake\w*|ignore|example|sample|placeholder|template|above"
_ORDERS = (
    r"print|echo|emit|say|write|give|repl\w+|respond|send|post|type|end|finish|conclude|declare|(?:output|signal)(?!:)"
)
_OPEN = (  # a sentence that ends with one of these is unfinished: "the token is <promise>…"
    r"about|an?|and|are|as|at|by|called|expects?|for|from|in|into|like|my|namely|no|of|on|or|say|than|that|the|this|to"
    r"|was|with|your|example|sample|format|syntax|placeholder|template|string|literal|criteri(?:a|on)|conditions?"
    r"|prompt|instructions?"
)
_DOUBTS = "|".join(
    (
        rf"\b(?:{_NO}|{_LATER}|{_LATER_ABROAD}|except|yet|incomplete|unfinished|remain\w*)\b|{_SHORT}|{_SIGNS}",
        r"\bstill\b(?! (?:pass|work|green|hold|build|compil))|\be\. ?g\.",
        # an instruction or a plan, not the deed: "to finish, print <promise>…", "complete all tasks", "Remaining:"
        rf"(?:^\W*|, |\b(?:to|please|and|just) )(?:{_ORDERS})\b(?: [\w']+){{0,5}}\W*$|^\W*to-? ?do(?:\W*$|:)",
        r"^\W*(?:complete|pass|check|test|verify|fix|implement|close) (?:all|the|every\w*|each|this|it|my|our|your)\b",
        r"^\W*(?:remaining|first(?!-)|draft|(?:my |the )?plan(?! (?:is|was|has)))\b|^\W*(?:user|human|system)\W*$",
        rf"\b(?:{_OPEN})\W*$|(?<!\bhere )(?<!\bit )\bis\W*$|\?\W*$",
        # an open quote or bracket, another tag or a comment, a table, an open box or a link definition
        r"^\W*\d\d? ?%\W*$|(?:^|\s)[\"'`~$&@]+$|[“«„‹「=]$|[(\[{][^()\[\]{}]*$|<[!/a-z]|\||^\[(?: \]|[^\]]*\]:)",
    )
)
_BARE_NO = (  # no agent says this right above a promise it means, even as a sentence of its own
    r"(?:(?:^|[:;,] )\W*not|\b(?:is|are)(?: not|n't)) (?:yet|(?:yet )?(?:done|ready|finished|complete\w*))\W*$"
    r"|(?:^|[:;,] )\W*(?:incomplete|unfinished|(?:work )?in progress|wip|todo|blocked|failed)\W*$"
    r"|^\W*not (?:all|every\w*)\b|\b(?:tests?|checks?|build|suite|ci)(?: still)? (?:do(?:es)? not|do(?:es)?n't) \w+"
    r"|\b(?:tests?|checks?|build|suite|ci)(?: still| are| is){0,2} (?:fails?|failing|red|broken)\W*$"
    r"|\b(?:pass\w*|green|works?|done),? except\b"
)
_SETTLED = (  # "0 failed", "nothing is left that is not done", "as you asked": no doubt at all
    r"\b(?:no|0|zero|nothing|none|without)(?: [\w']+){0,3}? (?:fail\w*|errors?|issues?|problems?|warnings?|remain\w*"
    r"|left|open|pending|missing|not (?:yet )?(?:done|complete\w*))\b(?: (?:that|which) (?:is not|isn't) \w+| to \w+)?"
    r"|\bas (?:you )?(?:requested|asked|promised|expected|instructed|required|specified|agreed)\b"
)
_HARMLESS = (  # a remark of ours, a courtesy, a deed, or a change to a file
    rf"{LEFT_OUT_LINE}|\b(?:if|should|when(?:ever)?) (?:you|there(?:'s| is) anything)\b|\b(?:let me know|feel free)\b"
    r"|^\W*happy to\b|^\W*(?:(?:i|we) )?(?!fail|need|block|stop|skip|disabl|comment|start|plann|want|expect|revert)"
    r"(?:\w+ed|ran|wrote|built|made|put|set|kept|took|split|rewrote|found)\b|^\W*(?:`[^`]*`|\S*[/.]\w+)\W*[:–—-] "
)
_OPTIONAL = r"(?ms)^\W*(?:optional|nice to have|ideas?\b|out of scope).*"
# What a line is made of that gives the promise in plain English: it says that something is done, or announces it, …
_SAYS = (
    r"done|complet(?:e[ds]?|ion)|finish(?:ed|es)|ready|verified|confirmed|validated|tested|pass(?:e[ds]|ing)?|green"
    r"|succe(?:eded|ss\w*)|fixed|implemented|resolved|closed|checked|ticked|met|satisfied|fulfilled|achieved|delivered"
    r"|added|updated|removed|documented|committed|pushed|merged|deployed|released|work(?:s|ing)|holds|clean|ok(?:ay)?"
    r"|yes|here|results?|status|summary|conclusion|answer|outcome|verdict|output|promise"
)
# … and these go with it.
_GOES_WITH = (
    r"an?|all|also|am|and|are|as|at|been|both|by|confirm|declare|each|end|entire|every(?:thing)?|final(?:ly)?|full|fully"
    r"|give|has|have|hereby|i|in|is|its?|my|now|of|on|our|overall|since|because|so|that|the|there(?:fore)?|these|they"
    r"|this|thus|up|was|we|were|whole|with|again|indeed|build|box(?:es)?|changes?|checks?|checklist|code|criteri(?:a|on)"
    r"|docs|acceptance|documentation|features?|files?|goals?|implementation|items?|job|lint(?:er)?|list|points?|project"
    r"|round|requirements?|steps?|story|stories|suite|tasks?|tests?|todos|types|verification|work"
)
_GOES_ON = r"[ *]*\n?[a-z]|\s*(?:[,;:?…)\]}»”\"']|(?:is|was|are|were|will|would|as|or|and|because|in)\b)"

# Figures of failure, and what makes them harmless.
_THINGS = r"(?:of (?:them|the) )?(?:(?:unit |integration )?(?:tests?|checks?|cases?|specs?|suites?|tasks?|boxes) )?"
_WELL = r"(?:are |is |have )?(?:pass\w*|green|succe\w+|ok|work\w*|done|complete\w*)\b"
_PART = rf"\b(\d{{1,9}}) ?(?:/|of|out of) ?(\d{{1,9}})(?: {_THINGS}{_WELL}|\W*$)"
_FAILED = (
    rf"(?<![\d.,])[1-9][\d,]* {_THINGS}(?:still )?(?:fail\w*|errors?|broken|red)\b|\b(?:fail\w*|errors?): ?[1-9]"
    rf"|(?<![\d.,/])0 {_THINGS}{_WELL}|\b(?:pass\w*|done|complete\w*): ?0(?![\d/]|[.,]\d)"
)
_MENDED = r"\b(?:fixed|resolved|repaired|handled|earlier|previously|before|used to|now|expected)\b"

_UNDONE = (  # a step was made, and the next one is to follow
    r"(?i)(?:\bnot|n't)\b[^.!?\n]{0,60}\byet\b|\byet to\b|\bstill (?:missing|open|to do|to be|needs?|lacks?)\b"
    r"|\bcomes? next\b|\bremains? (?:open|to be)\b"
)
_MOST_UNFINISHED = 3
_CODE = r"[/\\(){}\[\]<>=|&$#@_]|\s-|\.\w"  # tells a command like `make -k` from a word in code style like `not`
_QUOTES = r'(")|(`)|(~~)|([“”„])|([«»])|([「」])'
_LONGEST = 20_000  # characters; who goes on for longer behind a promise had not finished


def doubted(own: str, lead: str, *, is_led: bool, told: bool) -> bool:
    """Does the text before the promise, or right above it, say that it is not meant? `is_led`: does that lead in?"""
    words = rf"{_DOUBTS}|\b(?:{_REGRETS}|{_BAD_NEWS}|no|none|nothing|zero|false)\b" if told else _DOUBTS
    own, lead = (_without_code(text[-_LONGEST:]) for text in (own, lead))
    signs = [found.lastindex for found in re.finditer(_QUOTES, own)]
    if any(signs.count(kind) % 2 for kind in set(signs)):  # a quote, code or strike-through is still open
        return True
    if any(re.search(words, _settled(last_sentence(text))) for text in ((own, lead) if is_led else (own,))):
        return True
    last = [_settled(last_sentence(plain(text).rstrip(".! "))) for text in (own, lead)]
    return any(re.search(_BARE_NO, sentence) or _counts_failures(sentence) for sentence in last)


def _counts_failures(sentence: str) -> bool:
    """Does it say "0 of 5 pass" or "3 failed", and not that they were fixed? "0 failed" and "5 of 5 pass" are fine."""
    if re.search(_MENDED, sentence):
        return False
    parts = re.finditer(_PART, sentence)
    return re.search(_FAILED, sentence) is not None or any(int(part[1]) < int(part[2]) for part in parts)


def taken_back(behind: str, *, may_go_on: bool) -> bool:
    """Does anything after a promise take it back? Code counts too: a log may bring the bad news."""
    if len(behind) > _LONGEST or (re.match(_GOES_ON, behind) and not may_go_on):
        return True
    said = "\n".join(map(_settled, behind.split("\n")))
    # An open box, a question, the end of some HTML or a comment around it
    if re.search(rf"{_STILL_OPEN}|\b(?:{_REGRETS})\b|{_SIGNS}|\[ \]|\?(?:\W|$)|</[a-z]|-->", said):
        return True
    sentences = re.split(r"\n|(?<=[.!]) ", re.sub(_OPTIONAL, "", said))
    rest = "\n".join(each for each in sentences if not re.search(_HARMLESS, each))
    return any(map(_counts_failures, sentences)) or bool(
        re.search(rf"\b(?:{_NO}|{_LATER}|{_BAD_NEWS})\b|{_SHORT}", rest)
    )


def unfinished(reply: str) -> tuple[str, ...]:
    """The sentences that say of something that it is not there yet.

    >>> unfinished("The form is there. The login page does not exist yet; the session comes next.")
    ('The login page does not exist yet; the session comes next.',)
    """
    sentences = re.split(r"\n+|(?<=[.!?]) ", reply[-_LONGEST:])
    return tuple(each.strip() for each in sentences if re.search(_UNDONE, _settled(each)))[:_MOST_UNFINISHED]


def is_plain(text: str, at_least: float = 1) -> bool:
    """Is it made of plain English words, and does it say that it is done? `at_least`: this share of them is enough."""
    words = re.findall(r"\b[^\W\d_]+(?:'\w+)?\b", re.sub(r"'(?:s|m|re|ve)\b", "", _settled(text)))
    known = [word for word in words if re.fullmatch(f"{_SAYS}|{_GOES_WITH}", word)]
    says = at_least < 1 or any(re.fullmatch(_SAYS, word) for word in known)
    return says and at_least * len(words) <= len(known)


def _settled(text: str) -> str:
    """The plain text, with "done" for words that look like doubt and say that all is well."""
    return re.sub(_SETTLED, " done ", plain(text))


def _without_code(text: str) -> str:
    """Replace commands, names and our own remarks: they are about the program, not about the promise."""
    text = re.sub(LEFT_OUT_LINE, "code", text)
    return re.sub(r"`[^`]*`", lambda span: "code" if re.search(_CODE, span[0]) else span[0], text)
