"""Every rule that can decide, by name, and what it means."""

from enum import StrEnum


class Rule(StrEnum):
    """The name of a rule, as the ledger records it; `meaning` is for people."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> "Rule":
        rule = str.__new__(cls, name)
        rule._value_ = name
        rule.meaning = meaning
        return rule

    INTERRUPTED_ROUND = "interrupted-round", "a round was started and never ended; it is recorded as interrupted first"
    ASKED_TO_STOP = "asked-to-stop", "a person asked the loop to stop"
    ASKED_TO_PAUSE = "asked-to-pause", "a person or a signal asked the loop to pause"
    OBSTRUCTED = "obstructed", "something other than the agent makes it impossible to go on"
    BASELINE = "baseline", "checks run once before the first round, to show what was already failing"
    COMMIT_DUE = "commit-due", "a round went well, and what it changed is to be committed before anything proves it"
    CHECKS_DUE = (
        "checks-due",
        "the work tree changed since the last checks, they failed, or the loop could be complete",
    )
    TAMPERED = "tampered", "a round changed a protected file, so nothing it says counts as proof"
    TASK_DONE = "task-done", "the agent says its task is done, its rounds made progress, and the checks pass"
    FINAL_CHECKS = (
        "final-checks",
        "every task is done, so the checks run once more on the whole; if one fails, the last task is open again",
    )
    CHANGED_TESTS = (
        "changed-tests",
        "all is done, but checks that failed before pass only because tests were changed; a person has to decide",
    )
    COMPLETE = "complete", "everything this loop requires is there"
    TASK_FILE = "task-file", "the task file is damaged; an unreadable file is never an empty list"
    CHECKPOINT = "checkpoint", "the task file says a person must look before the loop goes on"
    AGENT_STOP = "agent-stop", "the agent cannot work until a person does something"
    AGENT_DENIED = "agent-denied", "the agent was not allowed to do what the work needs, and the round made no progress"
    AGENT_FAILURES = "agent-failures", "the agent failed too many times in a row"
    COMMANDS_FAILED = (
        "commands-failed",
        "every command that the agent ran failed with the same error, round after round, and nothing changed",
    )
    RESTARTS = "restarts", "the process of this loop died too many times in a row"
    CUT_SHORT = "cut-short", "too many attempts in a row were cut short: bydawn was killed, or the agent interrupted"
    PAID_TROUBLE = "paid-trouble", "too many times in a row, the agent used tokens and then had trouble"
    OUTAGE = "outage", "the agent had nothing but trouble for too long"
    RECORDED_END = "recorded-end", "the agent, or a person's own session, recorded that it cannot go on"
    AGENT_BLOCKED = (
        "agent-blocked",
        "the agent says only a person can help, and made no progress, says it again, or calls its task blocked",
    )
    TASK_FAILURES = "task-failures", "one task failed too many times in a row; the loop goes on with the others"
    NO_PROGRESS = "no-progress", "too many rounds in a row made no new change"
    NO_TASK_DONE = "no-task-done", "too many rounds in a row finished no task and fixed no check"
    STILL_RED = "still-red", "too many rounds in a row turned no check green and left no fewer failures"
    SAME_FAILURE = "same-failure", "the checks failed in exactly the same way too many times in a row"
    CHECK_FAILURES = "check-failures", "checks failed after too many rounds in a row"
    TASKS_ASIDE = "tasks-aside", "every open task was set aside, or waits for one that was set aside or skipped"
    ONLY_CHECKS = "only-checks", "this run only had to check the work, and the loop is what it was before"
    ITERATIONS = "iterations", "the limit of recorded iterations is used up"
    ROUNDS = "rounds", "the round limit is used up"
    ROUNDS_THIS_RUN = "rounds-this-run", "this run was only allowed this many rounds"
    TIME = "time", "the time limit is used up"
    TIME_THIS_RUN = "time-this-run", "this run was only allowed this much time"
    TOKENS = "tokens", "the token budget is used up"
    COST = "cost", "the dollar budget is used up"
    UNTIL = "until", "the time to stop has come"
    LIMIT_STOPS = "limit-stops", "the provider's usage limit is reached, and this loop does not wait for it"
    LATEST_WAKE = "latest-wake", "the provider's usage limit resets later than this loop may wait"
    AGENT_LIMIT = "agent-limit", "the provider's usage limit has not been reset yet"
    BACK_OFF = "back-off", "the agent had trouble a moment ago; a short wait costs nothing"
    CYCLE = "cycle", "bydawn goes on by itself after a while, until a person stops it or there is nothing left to try"
    PAUSE = "pause", "this loop rests between two rounds"
    NEXT_ROUND = "next-round", "no rule says stop, and there is work left"


def meaning_of(name: str) -> str:
    """What a recorded rule means; nothing for one that only another version has."""
    return next((rule.meaning for rule in Rule if rule == name), "")
