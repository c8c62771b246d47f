"""Settings: everything an operator can configure, validated. Each consumer gets only its own section."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, create_model, field_validator

from config.sections.basic import BasicSettings, BasicSources, KeywordModules
from config.sections.bots import (
    ApprovalsSettings,
    BotSettings,
    BotsSettings,
    BudgetsSettings,
    ChatsSettings,
    FunctionsSettings,
    MembersSettings,
    OperatorsSettings,
    Plugins,
)
from config.sections.filters import FiltersSettings
from config.sections.irc import IrcSettings
from config.sections.knowledge import KnowledgeSettings
from config.sections.mail import MailSettings
from config.sections.mcp import McpSettings
from config.sections.media import MediaSettings
from config.sections.models import (
    FailoverSettings,
    MemorySettings,
    ModelSettings,
    RolloutSettings,
    ShadowSettings,
    ThinkingSettings,
)
from config.sections.networks import NetworkSettings
from config.sections.news_and_search import NewsSettings, PicturesSettings, SearchSettings, SummarySettings
from config.sections.processes import FilesSettings, SandboxSettings, ShellSettings
from config.sections.timers import RemindersSettings, SchedulesSettings, TimersSettings
from config.terms import (
    SHORTEST_TOKEN,
    Count,
    Language,
    LocalPath,
    ModuleName,
    Number,
    PrivateHost,
    ProcessPath,
    PublicUrls,
    RoleName,
    RoomId,
    Seconds,
    Section,
    Timezone,
    WebUrl,
    Word,
    not_below_first_delay,
    settings_error,
)

CONFIG_VERSION = 1
DEFAULT_BOT = "default"


def _with_default_bot(bots: Mapping[str, BotSettings]) -> Mapping[str, BotSettings]:
    return bots if DEFAULT_BOT in bots else {DEFAULT_BOT: BotSettings(), **bots}


def _this_version(version: int) -> int:
    if version != CONFIG_VERSION:
        raise settings_error(
            f"is {version}, but this release reads version {CONFIG_VERSION}: "
            "install the release that the file was written for, or bring the file up to date with the changelog"
        )
    return version


class LoggingSettings(Section):
    """Logs of the daemon."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The minimum level that is written."""
    folder: ProcessPath = Path("logs")
    """Folder of the log files; relative to the working directory."""
    console: Literal["auto", "text", "json", "off"] = "auto"
    """Log format on standard error. auto: text, unless the console chat uses this terminal, then off."""
    max_megabytes: Count = Field(default=20, ge=1, le=10_000)
    """A log file of this size is rotated."""
    keep_files: Count = Field(default=5, ge=1, le=1000)
    """Number of rotated files that are kept."""


class TelemetrySettings(Section):
    """Traces of turns, model requests and runs of functions."""

    traces_url: WebUrl | None = None
    """Receiver of OpenTelemetry traces (OTLP over HTTP), such as http://127.0.0.1:4318/v1/traces. None: no traces.
    Needs the extra `otel`."""
    traces_content: bool = False
    """Whether traces include messages and arguments, without known secrets and sensitive arguments."""


class StoreSettings(Section):
    """The database, and how long data is kept."""

    url: SecretStr = SecretStr("")
    """URL of a PostgreSQL database, as postgresql://user:password@host:5432/name; preferably a reference to the
    environment. Empty: a SQLite file in `home`."""
    history_per_chat: Count = Field(default=1000, ge=0, le=1_000_000)
    """Maximum number of messages kept per chat."""
    days_kept: Count = Field(default=30, ge=1, le=3650)
    """Days after which messages, finished turns and their calls, summaries and audit rows are deleted."""
    backups_kept: Count = Field(default=5, ge=0, le=1000)
    """Number of backups of the SQLite file that are kept. For PostgreSQL backups are left to the operator."""
    backup_every_hours: Count = Field(default=24, ge=0, le=8760)
    """Interval of the daemon's backups of the SQLite file, which are stored in `home`; 0: none."""

    @field_validator("url")
    @classmethod
    def _of_a_known_engine(cls, url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        if text and not text.startswith(("postgresql://", "postgres://")):
            raise settings_error("has to begin with postgresql://, or be empty for a SQLite file in `home`")
        return url

    @property
    def is_on_a_server(self) -> bool:
        """Whether the database is PostgreSQL."""
        return bool(self.url.get_secret_value())

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret values, to be redacted in logs."""
        url = self.url.get_secret_value()
        try:
            password = urlsplit(url).password or ""
        except ValueError:
            password = ""
        return (url, password, unquote(password))


class RouterSettings(Section):
    """How functions are chosen for messages."""

    enabled: bool = True
    """False: the model calls no functions in any chat, whatever other settings say; commands and chat still work."""
    max_rounds: Count = Field(default=6, ge=2, le=50)
    """Maximum number of requests to the model per turn; the last one offers no functions."""
    max_calls: Count = Field(default=16, ge=1, le=200)
    """Maximum number of function runs per turn."""
    identical_calls: Count = Field(default=3, ge=1, le=50)
    """Maximum number of calls of one function with the same arguments per turn."""
    turn_timeout_seconds: Seconds = 120
    """Timeout of a turn."""
    status_after_seconds: Number = Field(default=10, ge=0, le=3600)
    """On networks where the bot can edit its messages, a turn that takes longer posts a status message, which its
    answer replaces. 0: never."""
    history_messages: Count = Field(default=30, ge=0, le=1000)
    """Maximum number of earlier messages of the chat in a request to the model."""
    history_tokens: Count = Field(default=2500, ge=0, le=1_000_000)
    """Maximum length of these earlier messages, in estimated tokens."""
    note_tokens: Count = Field(default=600, ge=0, le=1_000_000)
    """Maximum size of the notes on members and the chat in a request to the model, in estimated tokens. 0: none."""
    result_chars: Count = Field(default=8000, ge=100, le=1_000_000)
    """Maximum length, in characters, of a function's result in a request to the model."""
    function_tokens: Count = Field(default=10_000, ge=0, le=1_000_000)
    """Maximum size of the functions in a request, in estimated tokens. If all take more, a model is offered a
    shortlist: the pinned ones, those that the chat uses most, those that match its messages, and a function to find
    others. 0: always a shortlist, limited by the number of functions alone."""
    shortlist: Count = Field(default=200, ge=0, le=1000)
    """Maximum number of functions on the shortlist in addition to the pinned ones. 0: all are always offered, whatever
    their size."""
    shortlist_above: Count = Field(default=0, ge=0, le=1000)
    """Up to this number of functions, all are offered, whatever their size."""
    shortlist_turns: Count | None = Field(default=None, ge=1, le=1000)
    """Without effect: functions leave the shortlist when it is full. Accepted because earlier versions had it."""
    pinned: tuple[Word, ...] = Field(default=("help",), max_length=100)
    """Functions that are always offered."""
    shadow: ShadowSettings = ShadowSettings()
    thinking: ThinkingSettings = ThinkingSettings()


class QuestionsSettings(Section):
    """Questions that the bot asks."""

    expires_seconds: Count = Field(default=300, ge=10, le=604_800)
    """Time after which an unanswered question expires."""


class LimitsSettings(Section):
    """Limits of concurrent and queued work. Work beyond a limit is rejected with a reply, never dropped silently."""

    queue_per_chat: Count = Field(default=200, ge=1, le=100_000)
    """Maximum number of queued messages per chat."""
    queue_total: Count = Field(default=10_000, ge=1, le=10_000_000)
    """Maximum number of queued messages in all chats."""
    immediate_per_chat: Count = Field(default=10, ge=1, le=1000)
    """Maximum number of concurrent commands per chat that bypass its queue, such as /stop."""
    background_per_chat: Count = Field(default=3, ge=1, le=1000)
    """Maximum number of long runs per chat that continue beside its other turns, such as /research."""
    parallel_turns: Count = Field(default=256, ge=1, le=100_000)
    """Maximum number of chats that are answered concurrently."""
    message_chars: Count = Field(default=8000, ge=100, le=1_000_000)
    """Maximum length of a message in characters; a longer one is truncated, with a note."""
    answer_within_minutes: Count = Field(default=60, ge=1, le=10_080)
    """Maximum age of a message, in minutes, when it arrives; an older one, as after a long outage, is recorded and not
    answered."""
    gather_seconds: Number = Field(default=0.0, ge=0, le=60)
    """Time to wait for further messages of the sender before a language model is asked; they are answered together.
    Commands and answers to questions do not wait. 0: each message is answered by itself, without delay."""
    attempts_per_turn: Count = Field(default=3, ge=1, le=100)
    """Maximum number of attempts for a message that crashes the process or fails inside the daemon."""
    bot_alternations: Count = Field(default=8, ge=0, le=1000)
    """A sender of this number of consecutive messages to the bot, each within two seconds of its answer, is treated as
    a bot and ignored for ten minutes. Only on networks where bots are not marked. 0: never."""
    schedules_per_chat: Count = Field(default=20, ge=0, le=10_000)
    """Maximum number of schedules per chat that are set by command; those in the settings are not counted. 0: none."""


class DeliverySettings(Section):
    """Repeated delivery when a network fails, and queue limits for slow networks."""

    attempts: Count = Field(default=8, ge=1, le=1000)
    """Maximum number of attempts to send a message."""
    first_delay_seconds: Seconds = 1
    """Delay before the second attempt; doubled for each further one."""
    longest_delay_seconds: Annotated[Number, AfterValidator(not_below_first_delay)] = Field(default=60, gt=0, le=86_400)
    """Maximum delay between attempts."""
    lines_per_member: Count = Field(default=60, ge=1, le=100_000)
    """Maximum number of queued reply lines to one member on networks that are slow by design, such as IRC. Further
    replies are not sent, and the member is notified of their number. Reminders are always sent."""
    lines_per_chat: Count = Field(default=180, ge=1, le=1_000_000)
    """The same limit for all replies to one chat."""


class WebAccessSettings(Section):
    """Web access of functions and scripts."""

    private_hosts: tuple[PrivateHost, ...] = Field(default=(), max_length=100)
    """Servers on this machine or in a private network that functions and scripts may ask, as `host` or `host:port`;
    without a port, 80 and 443. All members can read them, with `/read` for example. Empty: none."""


class ConsoleSettings(Section):
    """Chat in the terminal of the daemon."""

    enabled: Literal["auto", "on", "off"] = "auto"
    """auto: on if there is a terminal."""
    name: Word = "you"
    """Name of the person at the terminal."""


class RoomSettings(Section):
    """A group on the web page."""

    id: RoomId
    """Id in `web:main:<id>`; must be unique."""
    title: Annotated[str, Field(max_length=128)] = ""
    """Title on the page. Empty: the id."""


class WebSettings(Section):
    """The web server: chat page, operator's pages, health and metrics."""

    host: Word = "127.0.0.1"
    """The address to listen on. 127.0.0.1: only this machine."""
    port: Count = Field(default=8080, ge=0, le=65_535)
    """The port to listen on. 0: any free port."""
    public_url: PublicUrls = ()
    """URL under which other machines open the page, such as https://bot.example.org or http://192.168.1.5:8080, or a
    list. Requests with other hosts or origins are rejected. Empty: only `host` and the loopback are accepted."""
    page: bool = True
    """Whether to serve the chat page; health and metrics do not depend on it."""
    desk: bool = True
    """Whether to serve the operators' desk at /desk, where accounts with a password see and change what the bot
    does."""
    metrics_token: SecretStr = SecretStr("")
    """Bearer token for /metrics, at least 16 characters; preferably a reference to the environment. Empty: no token is
    needed if only this machine can reach the server; otherwise metrics are not served."""
    connections_per_address: Count = Field(default=100, ge=0, le=10_000)
    """Maximum number of open connections per address, except this machine's. 0: no limit, for a reverse proxy on
    another machine."""
    rooms: tuple[RoomSettings, ...] = Field(default=(), max_length=100)
    """Groups on the page."""

    @field_validator("metrics_token")
    @classmethod
    def _long_enough(cls, token: SecretStr) -> SecretStr:
        if 0 < len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise settings_error(f"has to have at least {SHORTEST_TOKEN} characters")
        return token


class HttpSettings(Section):
    """API for programs that submit messages and read the bot's messages."""

    enabled: bool = False
    """Whether the API is served."""
    token: SecretStr = SecretStr("")
    """Bearer token of callers, at least 16 characters; preferably a reference to the environment."""
    max_role: RoleName = "member"
    """The highest role that a caller may assign to a sender."""

    @field_validator("token")
    @classmethod
    def _needed_when_enabled(cls, token: SecretStr, info: ValidationInfo) -> SecretStr:
        if info.data.get("enabled") and len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise settings_error(f"has to have at least {SHORTEST_TOKEN} characters while platforms.http is enabled")
        return token


class PlatformsSettings(Section):
    """Networks that the bot is connected to."""

    console: ConsoleSettings = ConsoleSettings()
    web: WebSettings = WebSettings()
    http: HttpSettings = HttpSettings()
    irc: tuple[IrcSettings, ...] = Field(default=(), max_length=50)
    """IRC networks; none by default."""

    @property
    def networks(self) -> tuple[tuple[str, NetworkSettings], ...]:
        """Each configured account on a network, with the network's name."""
        lists = ((name, value) for name, value in self if isinstance(value, tuple))
        return tuple((name, each) for name, value in lists for each in value)


class SourcesSettings(Section):
    """Sources of additional functions."""

    python: tuple[LocalPath, ...] = Field(default=(), max_length=1000)
    """Python files, packages, or folders of both, with custom functions. They run with the daemon's rights."""
    modules: tuple[ModuleName, ...] = Field(default=(), max_length=1000)
    """Installed Python modules with functions, by dotted name; all modules of a package."""
    entry_points: bool = False
    """Whether installed packages may provide functions by entry points in the group `rollcall.functions`."""
    commands: tuple[LocalPath, ...] = Field(default=(), max_length=1000)
    """YAML files of command tools, or folders of them: docs/command-tools.md."""
    basic: BasicSources = ()
    """BASIC scripts: docs/basic.md. An entry is a path, or a path with options."""
    basic_keywords: KeywordModules = ()
    """Python files or packages, or installed modules by their dotted names, with keywords for BASIC scripts:
    docs/basic-keywords.md. They run with the daemon's rights."""


class Settings(Section):
    """Settings of Rollcall."""

    config_version: Annotated[Count, AfterValidator(_this_version)] = CONFIG_VERSION
    """Version of the file format."""
    home: ProcessPath = Path("var")
    """Folder of all stored data: database, backups, keys. Relative to the working directory."""
    language: Language = "en"
    """Default language of the bot's texts. If it is not set, a private chat uses the language of the member's client,
    where the network reports it."""
    timezone: Timezone = "UTC"
    """Default IANA time zone of chats. If it is not set, members are asked for theirs with their first reminder."""
    logging: LoggingSettings = LoggingSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    store: StoreSettings = StoreSettings()
    engine: Literal["embedded", "cluster"] = "embedded"
    """`embedded`: one process does everything. `cluster`: any number of processes share a PostgreSQL database, see
    `rollcall run --role`."""
    models: tuple[ModelSettings, ...] = Field(default=(), max_length=20)
    """Language models in the order of use. Without a usable one the bot works with commands and the functions' examples
    only."""
    failover: FailoverSettings = FailoverSettings()
    budgets: BudgetsSettings = BudgetsSettings()
    router: RouterSettings = RouterSettings()
    rollout: RolloutSettings = RolloutSettings()
    filters: FiltersSettings = FiltersSettings()
    memory: MemorySettings = MemorySettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    media: MediaSettings = MediaSettings()
    summary: SummarySettings = SummarySettings()
    pictures: PicturesSettings = PicturesSettings()
    news: NewsSettings = NewsSettings()
    search: SearchSettings = SearchSettings()
    web_access: WebAccessSettings = WebAccessSettings()
    sandbox: SandboxSettings = SandboxSettings()
    files: FilesSettings = FilesSettings()
    shell: ShellSettings = ShellSettings()
    basic: BasicSettings = BasicSettings()
    mail: MailSettings = MailSettings()
    questions: QuestionsSettings = QuestionsSettings()
    approvals: ApprovalsSettings = ApprovalsSettings()
    timers: TimersSettings = TimersSettings()
    reminders: RemindersSettings = RemindersSettings()
    limits: LimitsSettings = LimitsSettings()
    delivery: DeliverySettings = DeliverySettings()
    bots: Annotated[BotsSettings, AfterValidator(_with_default_bot)] = Field(default_factory=dict)
    """Bots by key; `default` always exists."""
    functions: FunctionsSettings = Field(default_factory=dict)
    """Settings of functions in all chats, by function name."""
    chats: ChatsSettings = ChatsSettings()
    members: MembersSettings = Field(default_factory=dict)
    """Roles of members in all their chats, as `platform:account:member: role`, added to those from the platform."""
    schedules: SchedulesSettings = Field(default_factory=dict)
    """Functions that run on a schedule, by custom names."""
    platforms: PlatformsSettings = PlatformsSettings()
    mcp: McpSettings = McpSettings()
    sources: SourcesSettings = SourcesSettings()
    plugins: Plugins = ()
    """Modules of functions for all bots: built-in ones by name, others by dotted name."""
    operators: OperatorsSettings = OperatorsSettings()

    @field_validator("engine")
    @classmethod
    def _on_a_server(cls, engine: str, info: ValidationInfo) -> str:
        store = info.data.get("store")
        if engine == "cluster" and store is not None and not store.is_on_a_server:
            raise settings_error("cluster needs a PostgreSQL database in store.url")
        return engine

    @property
    def routing(self) -> RouterSettings:
        """`router` with the lowest limit on the size of functions that a usable model has."""
        default = self.router.function_tokens
        limits = [
            default if one.function_tokens is None else one.function_tokens
            for one in self.answering_models
            if one.usable
        ]
        return self.router.model_copy(update={"function_tokens": min(limits)}) if limits else self.router

    @property
    def seeing_models(self) -> frozenset[str]:
        """Names of the usable models that are shown pictures."""
        return frozenset(one.name for one in self.answering_models if one.sees and one.usable)

    @property
    def takes_files(self) -> bool:
        """Whether any model is given pictures, voice messages or documents."""
        return bool(self.seeing_models or self.media.hearing or self.media.documents)

    @property
    def answering_models(self) -> tuple[ModelSettings, ...]:
        """Models that may answer chats: all except the shadow."""
        return tuple(one for one in self.models if one.name != self.router.shadow.model)


_MOST_ACCOUNTS = 50


def settings_with(networks: Mapping[str, type[NetworkSettings]]) -> type[Settings]:
    """`Settings` with a list of accounts in `platforms` for each of `networks`, given by its section."""
    return _settings_with(tuple(sorted(networks.items(), key=itemgetter(0)))) if networks else Settings


@cache  # settings that are read again must be equal to those before
def _settings_with(networks: tuple[tuple[str, type[NetworkSettings]], ...]) -> type[Settings]:
    lists: dict[str, Any] = {
        name: (tuple[section, ...], Field(default=(), max_length=_MOST_ACCOUNTS))  # type: ignore[valid-type]
        for name, section in networks
    }
    platforms = create_model(
        "PlatformsSettings", __base__=PlatformsSettings, __doc__=PlatformsSettings.__doc__, **lists
    )
    return create_model("Settings", __base__=Settings, platforms=(platforms, platforms()))
