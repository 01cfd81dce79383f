"""How a text ends, by its punctuation alone, so that it works in every language."""

import re
import unicodedata

_TAIL = 200  # characters; enough for how a text ends
_ENDS = ".!。।॥۔؞።։។။"  # of a sentence, after full-width signs have become narrow ones; not of a question
_AROUND = "\"'”’»›“‘」』)]}⟩〉》】"  # what may close behind the end of a sentence
_LEADS_IN = ":;,?؟،؛、՝፡፣፤፥፦፧⸮~〜∶"
_TICKS = "✅✔☑✓🟢👍💯"
_ARROWS = re.compile("[\u2190-\u21ff\u2794-\u27be\u27f0-\u27ff\u2900-\u297f\u2b00-\u2b11▶►▸▼▾⏩⏬👇👉🔽]")
# "e.g.", "z. B.", "т. е.", "p. ej."; also the "1." of a list and the "a." of a choice
_NO_SENTENCE = re.compile(r"(?i)(?:\b[^\W\d_]|(?:^|\s)(?:ex|ej|np|bv|vb|напр|παρ|pl|cf|viz))\.$|^[\W\d_]*$")


def ends_sentence(text: str) -> bool:
    """Does a text end as a sentence does? Not if it trails off, leads in or asks.

    >>> [ends_sentence(text) for text in ("Done.", "完成。", "Done! 🎉", "Done:", "Done…", "e.g.", "Done", "Done?")]
    [True, True, True, False, False, False, False, False]
    """
    end = _end(text)
    closed = end.rstrip(_AROUND)
    return closed[-1:] in {*_ENDS} and not closed.endswith("..") and not _NO_SENTENCE.search(closed)


def leads_in(text: str) -> bool:
    """Does a text announce what follows: with a colon, comma, dash, ellipsis, question mark or arrow?

    >>> [leads_in(text) for text in ("I write:", "然后输出：", "Готово —", "Soon…", "👇", "Done.", "Tests: ✅")]
    [True, True, True, True, True, False, False]
    """
    if text.rstrip(" \n*_\ufe0f")[-1:] in {*_TICKS}:
        return False  # what the colon announced is there
    if _ARROWS.search(re.split(r"\w", text[-_TAIL:])[-1]):
        return True
    end = _end(text).rstrip(_AROUND)
    return end[-1:] in {*_LEADS_IN} or end.endswith("..") or unicodedata.category(end[-1:] or "a") == "Pd"


def _end(text: str) -> str:
    """The last characters without blanks, emphasis, emoji and what cannot be seen, in their plainest form."""
    end = unicodedata.normalize("NFKC", text[-_TAIL:])
    while end and _is_decoration(end[-1]):
        end = end[:-1]
    return end


def _is_decoration(sign: str) -> bool:
    if sign in "*_#":
        return True
    category = unicodedata.category(sign)
    return category[0] in "ZC" or category in {"So", "Sk", "Mn", "Me"}
