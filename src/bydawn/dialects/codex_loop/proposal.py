"""What Codex proposes when a project begins: goal, spec, plan, tasks and verification commands."""

import re
from collections.abc import Iterator

import msgspec

from bydawn.core import task_folder
from bydawn.core.errors import UserError
from bydawn.core.text import fit, plain, shorten
from bydawn.dialects.codex_loop.config import NAME, PLAN, SPEC, Tasks

_LONGEST, _LONGEST_LINE = 100_000, 2_000  # characters of a document, and of a command, a title or a criterion
_MOST_TASKS, _MOST_LINES = 100, 50
_NUMBER = re.compile(r"^[0-9]+-(?=.)")  # of a slug that begins as its file would
_SLUG = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", re.ASCII)
_LONGEST_SLUG = 60
_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)


class ProposedTask(msgspec.Struct, frozen=True):
    slug: str
    title: str
    markdown: str


class Proposal(msgspec.Struct, frozen=True):
    name: str
    goal: str
    done_when: tuple[str, ...]
    spec: str
    plan: str
    tasks: tuple[ProposedTask, ...]
    verification_commands: tuple[str, ...]

    def files(self, folder: str) -> dict[str, str]:
        """The text of each file but the configuration, by its path; tasks are in this folder."""
        tasks = {f"{folder}/{name}": text for name, text in self.task_files.items()}
        return {SPEC: f"{self.spec}\n", PLAN: f"{self.plan}\n", **tasks}

    @property
    def task_files(self) -> dict[str, str]:
        return {f"{number:03}-{task.slug}.md": _page(task) for number, task in enumerate(self.tasks, 1)}


def _page(task: ProposedTask) -> str:
    text = task.markdown.strip()
    return f"{text}\n" if not text or text.startswith(("# ", "---\n")) else f"# {task.title}\n\n{text}\n"


def _object(**properties: object) -> dict[str, object]:
    """As the provider wants it: everything required, nothing else allowed."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_TASK = _object(slug=_TEXT, title=_TEXT, markdown=_TEXT)
SCHEMA = msgspec.json.encode(
    _object(
        name=_TEXT,
        goal=_TEXT,
        done_when=_TEXTS,
        spec=_TEXT,
        plan=_TEXT,
        tasks={"type": "array", "items": _TASK},
        verification_commands=_TEXTS,
    )
).decode()

_PROMPT = """\
Plan the work for the goal below in this repository. Look around first; change nothing. Afterwards you will
be given the tasks one by one, unattended, each in a session of its own that knows only its task, the goal, the spec and
the plan.

Answer with one JSON object:
- `name`: a short name of the project.
- `goal`: the goal in one sentence.
- `done_when`: what must be true at the end; each can be checked.
- `spec`: Markdown: what is to be built, what not, constraints, how one sees that it works.
- `plan`: Markdown: the approach, and in which order.
- `tasks`: in the order of work. Each is small enough for one session, changes files, and leaves every verification
  command passing. `slug`: lower case letters, digits and dashes, such as `add-login`; the first becomes the file
  `001-add-login.md`. `title`: one line. `markdown`: what to do and when it is done. If a task needs others, put
  `<!-- depends_on: 001-add-login -->` into its markdown, with the names of their files without `.md`.
- `verification_commands`: shell commands, one line each, that run in the root of the repository and exit with 0 only if
  the work is right. Prefer those that the project has. They run after each iteration, and change nothing.

## Goal

"""


def prompt(goal: str) -> str:
    return f"{_PROMPT}{goal.strip()}\n"


def read(reply: str) -> Proposal:
    """What a reply proposes, cleaned; refused if anything of it cannot be used."""
    text = reply.strip()
    fenced = _FENCED.fullmatch(text)
    try:
        found = msgspec.json.decode(fenced[1] if fenced else text, type=Proposal)
    except msgspec.ValidationError as error:
        raise _unusable(plain(str(error))) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _unusable(f"its answer is not JSON: {shorten(plain(text), 80) or 'it is empty'}") from None
    cleaned = Proposal(
        name=shorten(plain(found.name), 80),
        goal=plain(found.goal).strip(),
        done_when=tuple(shorten(plain(each), _LONGEST_LINE) for each in found.done_when if each.strip()),
        spec=plain(found.spec).strip(),
        plan=plain(found.plan).strip(),
        tasks=tuple(
            ProposedTask(_NUMBER.sub("", each.slug), shorten(plain(each.title), 200), plain(each.markdown))
            for each in found.tasks
        ),
        verification_commands=tuple(each.strip() for each in found.verification_commands),
    )
    for trouble in _troubles(cleaned):
        raise _unusable(trouble)
    return cleaned


def _unusable(cause: str) -> UserError:
    hint = f"nothing was written; ask again, and say more about what you want: `{NAME} init --prompt …`"
    return UserError("what Codex proposes cannot be used", cause=cause, hint=hint)


def _troubles(found: Proposal) -> Iterator[str]:
    """What is missing comes first, and in the words of the answer."""
    yield from (f"its {field} is empty" for field in found.__struct_fields__ if not getattr(found, field))
    yield from (
        f"its {field} is too long" for field in ("goal", "spec", "plan") if len(getattr(found, field)) > _LONGEST
    )
    if len(found.tasks) > _MOST_TASKS or max(len(found.done_when), len(found.verification_commands)) > _MOST_LINES:
        yield f"it has too many parts: at most {_MOST_TASKS} tasks, and {_MOST_LINES} criteria and commands"
    for command in found.verification_commands:
        if not command.isprintable() or not command or len(command) > _LONGEST_LINE:
            yield f"a verification command must be one visible line: {fit(command, 80)!r}"
    slugs = [task.slug for task in found.tasks]
    for task in found.tasks:
        if not _SLUG.fullmatch(task.slug) or len(task.slug) > _LONGEST_SLUG:
            yield f"the slug {fit(task.slug, 80)!r} cannot be part of a file name"
        if slugs.count(task.slug) > 1:
            yield f"two tasks have the slug {task.slug}"
        if not task.markdown.strip() or not task.title or len(task.markdown) > _LONGEST:
            yield f"the task {task.slug} has no title, no text, or too much of it"
    if problem := task_folder.read(found.task_files).problem:
        yield f"{Tasks().source_dir}/ {problem}"
