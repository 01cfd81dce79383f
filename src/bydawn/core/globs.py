"""Which files a glob protects, without asking git."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

ALWAYS_PROTECTED = ("bydawn.toml",)  # settings that say what the next loop here runs


def is_protected(path: str, globs: Sequence[str]) -> bool:
    """Could one of these globs match this file, or a folder it is in? A `*` in the path is a number.

    If unsure, yes; git is not asked here, but has the last word on what a glob matches.
    """
    name = path.replace("*", "1")
    plain = ("/".join(_steps(glob)) for glob in globs)
    return any(_reaches(_steps(glob), _steps(name)) for glob in globs) or any(
        f"{name}/".startswith(f"{each}/") for each in plain
    )


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _reaches(glob: list[str], path: list[str]) -> bool:
    if not glob:
        return True  # everything below matches as well
    if glob[0] == "**":
        return any(_reaches(glob[1:], path[skipped:]) for skipped in range(len(path) + 1))
    # What only git understands, and fnmatch does not, matches anything.
    wanted = "*" if "\\" in glob[0] or "[[:" in glob[0] else glob[0].replace("[^", "[!")
    return bool(path) and fnmatchcase(path[0], wanted) and _reaches(glob[1:], path[1:])
