"""Would the checks also pass without this work? What can be said without trying, and what would have to be tried."""

from collections.abc import Callable, Sequence

import msgspec

from bydawn.core.ports import Difference
from bydawn.core.proof import Answer, Group, Noticed
from bydawn.core.test_files import Side, Sides, adds_tests, takes_from_tests

_READ = 200  # work files that are searched for tests
_NESTED = "160000"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be tried: the work files as they were before, by path; did new tests come with them?"""

    forms: dict[str, str]
    with_tests: bool
    asks: bool  # may the agent be asked for better ones? Not where it changed tests that were there


def judged(
    group: Group, differences: Sequence[Difference], sides: Sides, read: Callable[[str], bytes], *, green: bool = True
) -> Noticed | Trial | None:
    """The answer for a group, if it needs no try; None if nothing was changed at all. `green`: the checks passed when
    it was closed."""

    def answer(what: Answer, detail: str = "") -> Noticed:
        return Noticed(tasks=group.tasks, answer=what, detail=detail)

    found: dict[Side, list[Difference]] = {}
    for each in differences:
        if sides.is_list(each.path):
            continue
        found.setdefault(sides.of_change(each, read), []).append(each)
    work = found.get(Side.WORK, [])
    tests = [*found.get(Side.TEST, []), *found.get(Side.DATA, [])]
    steering = found.get(Side.STEERING, [])
    # A tree holds no file of them: what follows its id, up to the next mark, stands for them.
    inside = {tree.partition("+")[2].partition("+")[0] for tree in (group.before, group.after)}
    if len(inside) > 1 or any(each.new.startswith(_NESTED) or each.old.startswith(_NESTED) for each in work):
        return answer(Answer.UNKNOWN, "a nested repository is part of it")
    if not work:
        elsewhere = steering or found.get(Side.ELSEWHERE)
        kinds = (
            (tests, Answer.TESTS, ""),
            (elsewhere, Answer.UNKNOWN, "takes effect elsewhere"),
            (found.get(Side.DOCUMENT), Answer.DOCUMENTS, ""),
        )
        return next((answer(what, detail) for given, what, detail in kinds if given), None)
    texts = [(_content(each.old, read), _content(each.new, read)) for each in work[:_READ]]
    if group.red and not green and not tests and not steering:
        return answer(Answer.UNKNOWN, "the checks failed when it was closed")
    taken = bool(group.red) and any(takes_from_tests(*pair) for pair in texts)
    if group.red and not (tests or steering or taken):
        return answer(Answer.NOTICED, f"{group.red[0]}: failed before it")
    if taken or any(adds_tests(*pair) for pair in texts):
        return answer(Answer.UNKNOWN, "tests and code share a file")
    old = any(each.old for each in (*tests, *steering))
    new = any(not each.old for each in found.get(Side.TEST, []))
    return Trial(forms={each.path: each.old for each in work}, with_tests=new, asks=new and not old)


def _content(form: str, read: Callable[[str], bytes]) -> bytes:
    return read(form) if form.startswith("100") else b""
