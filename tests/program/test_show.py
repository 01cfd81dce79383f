"""What a person reads of one loop: everything that `run` said, and where to read more."""

from driving import OK, Home, Step

WRITES: Step = {"append": {"path": "log", "text": "x"}}


def test_the_end_of_what_a_failing_check_printed_is_shown_and_the_way_there_is_offered(home: Home) -> None:
    lines = r'seq 1 40; printf "\033[31mE  assert 1 == 2\033[0m\n"; echo key=$MY_TOKEN; exit 3'
    home.env |= {"MY_TOKEN": "hunter2hunter2"}
    ended = home.run(home.rounds([WRITES, OK]), "-k", lines, "-k", "true", "--rounds", "2")
    assert "bydawn show repo --round 2" in ended.out
    assert "bydawn show repo --round 2" in home.bydawn("show").out
    shown = home.bydawn("show", "repo", "--round", "2").out.splitlines()
    printed = [line.partition("│ ")[2] for line in shown if "│" in line]
    assert printed == [*map(str, range(33, 41)), "E  assert 1 == 2", f"key={'*' * 14}"]
    [file] = [line.strip() for line in shown if line.endswith("check-1.txt")]
    assert file == str(home.folder() / "rounds/0002/check-1.txt")


def test_at_the_end_a_long_command_gives_way_and_not_the_reason(home: Home) -> None:
    command = f"echo {' '.join(map(str, range(200)))} >/dev/null; echo FAILED test_a; exit 1"
    ended = home.run(home.rounds([WRITES, OK]), "-k", command, "--rounds", "1")
    rows = [line for line in ended.out.splitlines() if line.startswith("    · ")]
    assert len(rows) == 1
    assert rows[0].endswith("…: exit 1: FAILED test_a")
    assert len(rows[0]) <= 100
    assert home.bydawn("show").out.count("exit 1: FAILED test_a") == 1


def test_a_loop_whose_checks_are_green_offers_nothing_about_red_ones(home: Home) -> None:
    ended = home.run(home.rounds([WRITES, OK]), "-k", "true", "--done-when", "ready", "--rounds", "1")
    assert ended.code == 4
    assert "--round 1  " not in ended.out.replace("logs repo --round 1", "")


def test_in_a_pipe_nothing_is_wrapped_and_in_few_columns_no_word_is_broken(home: Home) -> None:
    path = f"{home.root}/a/very/long/path/{'x' * 60}/file.txt"
    prompt = f"write {path} {'again and ' * 15}again"
    home.bydawn("run", prompt, "-a", home.rounds([WRITES, OK]), "--rounds", "1", "--plain")
    assert prompt in home.bydawn("show").out
    assert path in home.bydawn("show", COLUMNS="40").out
    for words in (["why"], ["show", "--round", "1"]):
        assert home.bydawn(*words, COLUMNS="40").out.split() == home.bydawn(*words).out.split()
