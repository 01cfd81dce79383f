"""The lines of Claude Code's stream that matter."""

import msgspec


class Line(msgspec.Struct, frozen=True, tag_field="type"):
    """One event of a type that matters; lines of other types are skipped."""

    session_id: str | None = None


class Tokens(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None


class ModelTokens(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None


class System(Line, frozen=True, tag="system"):
    subtype: str = ""
    key_source: str | None = msgspec.field(name="apiKeySource", default=None)
    attempt: int = 0
    max_retries: int = 0
    retry_delay_ms: float = 0
    error_status: int | None = None
    error: str | None = None


class Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, object] = {}


class Answer(msgspec.Struct, frozen=True):
    id: str = ""
    model: str = ""
    content: tuple[Block, ...] = ()
    usage: Tokens = Tokens()


class Assistant(Line, frozen=True, tag="assistant"):
    message: Answer = Answer()
    parent_tool_use_id: str | None = None  # of a helper the agent started
    error: str | None = None


class ToolResult(msgspec.Struct, frozen=True):
    tool_use_id: str = ""
    is_error: bool | None = None
    content: object = None  # text, unless it is an image

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else ""


class Results(msgspec.Struct, frozen=True):
    content: str | tuple[ToolResult, ...] = ()


class User(Line, frozen=True, tag="user"):
    message: Results = Results()  # what its tools answered


class Limit(msgspec.Struct, frozen=True):
    status: str = ""
    resets_at: float | None = msgspec.field(name="resetsAt", default=None)
    kind: str | None = msgspec.field(name="rateLimitType", default=None)
    utilization: float | None = None


class LimitLine(Line, frozen=True, tag="rate_limit_event"):
    rate_limit_info: Limit = Limit()


class Denial(msgspec.Struct, frozen=True):
    tool_name: str = ""
    tool_input: dict[str, object] = {}


class Result(Line, frozen=True, tag="result"):
    subtype: str = ""
    is_error: bool = False
    result: str | None = None
    structured_output: msgspec.Raw = msgspec.Raw()  # the reply, where a schema was given
    errors: tuple[str, ...] = ()
    api_error_status: int | None = None
    terminal_reason: str | None = None
    num_turns: int | None = None
    total_cost_usd: float | None = None
    usage: Tokens = Tokens()
    by_model: dict[str, ModelTokens] = msgspec.field(name="modelUsage", default_factory=dict)
    permission_denials: tuple[Denial, ...] = ()


AnyLine = System | Assistant | User | LimitLine | Result
LINES: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)
