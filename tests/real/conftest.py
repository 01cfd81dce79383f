"""The real Codex and the real Claude Code, with a scripted model behind them and nothing of this machine's settings."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driving import Home
from real.model_server import ModelServer

SCRIPT = Path(__file__).parents[2] / "scripts/agents"
FOREIGN = ("ANTHROPIC_", "CLAUDE", "CODEX_", "OPENAI_", "IS_SANDBOX", "SSL_", "NODE_", "AWS_", "HTTP", "ALL_PROXY")

CODEX_CONFIG = """\
model = "scripted-model"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 5000

[features]
plugins = false # or it looks for them at GitHub whenever it starts

[analytics]
enabled = false
"""


@pytest.fixture(scope="session")
def agents_bin() -> Path:
    """Where `codex` and `claude` are; a machine that cannot have them fails the tests and says why."""
    asked = subprocess.run([str(SCRIPT)], capture_output=True, text=True, timeout=1500)
    if asked.returncode:
        pytest.fail(asked.stderr, pytrace=False)
    return Path(asked.stdout.strip())


@pytest.fixture(scope="session")
def original() -> Path:
    """A folder for PYTHONPATH with the first release of codex-autorunner in it."""
    asked = subprocess.run([str(SCRIPT.with_name("original"))], capture_output=True, text=True, timeout=600)
    if asked.returncode:
        pytest.fail(asked.stderr, pytrace=False)
    return Path(asked.stdout.strip())


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The model; `model.play([...])` gives it its script."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def agent_env(home: Home, agents_bin: Path) -> Iterator[dict[str, str]]:
    """The environment of the story's home, with the real agents on its PATH and no settings for them.

    The temporary folder is short, for the sockets that Claude's sandbox keeps there, and not above CODEX_HOME. The
    shell is bash: with zsh, which it takes by itself if there is one, Claude calls every command a success.
    """
    folder = tempfile.mkdtemp(prefix="by-")
    env = {name: value for name, value in home.env.items() if not name.upper().startswith(FOREIGN)}
    yield env | {"PATH": f"{agents_bin}:{env['PATH']}", "TMPDIR": folder, "SHELL": "/bin/bash"}
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def codex_home(home: Home, model: ModelServer) -> Path:
    """A CODEX_HOME whose only provider is the scripted model."""
    folder = home.root / "codex"
    folder.mkdir()
    (folder / "config.toml").write_text(CODEX_CONFIG.format(url=model.url))
    return folder


@pytest.fixture
def codex_env(agent_env: dict[str, str], codex_home: Path) -> dict[str, str]:
    """What Codex needs to find the scripted model."""
    return agent_env | {"CODEX_HOME": str(codex_home), "SCRIPTED_KEY": "dummy"}


@pytest.fixture
def claude_env(agent_env: dict[str, str], model: ModelServer) -> dict[str, str]:
    """What Claude Code needs to find the scripted model, with an API key."""
    return agent_env | {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


@pytest.fixture
def claude_oauth_env(claude_env: dict[str, str]) -> dict[str, str]:
    """The same for a person with a subscription: only then does Claude Code speak of session limits."""
    env = {name: value for name, value in claude_env.items() if name != "ANTHROPIC_API_KEY"}
    return env | {"CLAUDE_CODE_OAUTH_TOKEN": "dummy"}
