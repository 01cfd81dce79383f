"""Names on disk that need no disk: the files of a round, and the trees that a loop keeps."""

ROUNDS = "rounds"
LOG = "worker.log"  # what a loop without a terminal would have shown
CHECKOUTS = "checkouts"  # clean checkouts, while checks run in them
PROMPT, STDOUT, STDERR, REPLY = "prompt.md", "stdout", "stderr", "reply.md"
LAST_MESSAGE = "last-message.txt"  # the reply, as an agent writes it itself if it is asked to
DAMAGED = "damaged.md"  # what was found where the task list had been
TIMES = "stdout.times"  # when the lines of stdout came
WRITTEN = "written.json"  # which files a loop has written for people
MARKS = "marks.json"  # how far the files have come that grow


def round_file(round_: int, name: str = "") -> str:
    """A file of a round, or its folder, from the loop's folder on."""
    return f"{ROUNDS}/{round_:04}/{name}"


def check_output(number: int, *, again: bool = False, outside: bool = False, aside: str = "") -> str:
    """All that a check printed; `again` is for one that was run a second time, perhaps outside its box, `aside` for
    one that tried another tree."""
    name = ("outside" if outside and not aside else "again") if again else "" if aside else "check"
    return f"{'-'.join(filter(None, (aside, name)))}-{number}.txt"


def stderr_beside(output: str) -> str:
    """What a check printed to stderr, if its loop keeps that apart."""
    return f"{output.removesuffix('.txt')}-stderr.txt"


def hook_output(hook: str, number: int = 1) -> str:
    """All that one of a hook's commands printed."""
    return f"hook-{hook}{f'-{number}' if number > 1 else ''}.txt"


def tree_before(round_: int) -> str:
    """The work tree that a round found."""
    return f"before/{round_}"


def tree_after(round_: int) -> str:
    return f"after/{round_}"


def tree_before_chat(turn: str) -> str:
    """The work tree that a question of a chat found, if it was allowed to change files or did."""
    return f"chat/{turn}/before"


def tree_after_chat(turn: str) -> str:
    return f"chat/{turn}/after"


def ref_of(tree: str) -> str:
    """Under which ref a tree is kept in the private git directory."""
    return f"refs/bydawn/{tree}"
