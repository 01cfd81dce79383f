"""Where a text's last sentence begins and how it ends, by punctuation alone, so that it works in every language."""

import re
import unicodedata

_TAIL, _LONGEST_SENTENCE, _LONGEST = 200, 2_000, 20_000  # characters; more is not worth the time
_AROUND = "\"'”’»›“‘」』)\\]}⟩〉》】"  # what may close behind the end of a sentence
# Not "...", because trailing off ends nothing, nor "e.g.", "z. B.", "p. ej." and the "a." of a choice.
_END = rf"(?<!\.)(?<!\b[^\W\d_])(?<!\b(?:ex|ej|np|bv|vb|pl|cf|vs))[.!](?=[\s{_AROUND}]|$)[{_AROUND}]*|[。।॥۔؞։።។]"
_TICKS = r"[✅✔☑✓🟢👍💯]"
_ARROWS = "\u2190-\u21ff\u2794-\u27be\u27f0-\u27ff\u2900-\u297f\u2b00-\u2b11▶►▸▼▾⏩⏬👇👉🔽"
_LEADS_IN = rf"[:;,?؟،؛、՝፡፣፤፥፦፧⸮~〜∶\u2010-\u2015{_ARROWS}-]|\.\."
_MARKS = str.maketrans({"*": None, "_": " ", **dict.fromkeys("’‘ʼ´′", "'")})


def plain(text: str) -> str:
    """The words as they are heard: no capitals, no emphasis, nothing invisible, one kind of apostrophe and space."""
    signs = unicodedata.normalize("NFKC", text.translate(_MARKS)).translate(_MARKS).lower()
    if not (signs.isascii() and signs.isprintable()):
        unseen = {"Cc", "Cf", "Me", "Mn"}  # Unicode's control, format and combining characters
        signs = "".join(sign for sign in signs if sign.isspace() or unicodedata.category(sign) not in unseen)
    return " ".join(signs.split())


def has_words(text: str) -> bool:
    return re.search(r"[^\W\d_]", plain(text[-_TAIL:])) is not None


def last_sentence(text: str) -> str:
    """What comes after the last end of a sentence.

    >>> [last_sentence(text) for text in ("Done.", "完成。", "Done! 🎉", "Fine. Done:", "Done…", "e.g.", "Done?")]
    ['', '', '🎉', 'done:', 'done...', 'e.g.', 'done?']
    """
    return _sentences(text)[-1].strip()


def _sentences(text: str) -> list[str]:
    return re.split(_END, plain(text[-_LONGEST:])[-_LONGEST_SENTENCE:])


def leads_in(text: str) -> bool:
    """Does a text announce what follows, or break off in a sentence that is not the first of its line?

    >>> [leads_in(text) for text in ("I write:", "然后输出：", "Готово —", "Soon…", "👇", "Done.", "Tests: ✅")]
    [True, True, True, True, True, False, False]
    >>> [leads_in(text) for text in ("All done", "Red. Later I say", "Green. Done.")]
    [False, True, False]
    """
    signs = re.split(r"[^\W_]", unicodedata.normalize("NFKC", text[-_TAIL:]))[-1]
    if re.search(_LEADS_IN, signs) or re.search(_TICKS, signs):
        return not re.search(_TICKS, signs)  # what a colon before a tick announced is there
    _, *later = _sentences(text.rstrip().rpartition("\n")[2])
    return bool(later) and has_words(later[-1])
