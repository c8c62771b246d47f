"""Settings: all that an operator may set, checked. One section for each consumer, which gets that section alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

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
from config.sections.mail import MailSettings
from config.sections.mcp import McpSettings
from config.sections.models import FailoverSettings, MemorySettings, ModelSettings, RolloutSettings, ShadowSettings
from config.sections.news_and_search import NewsSettings, SearchSettings, SummarySettings
from config.sections.processes import FilesSettings, SandboxSettings, ShellSettings
from config.sections.timers import RemindersSettings, SchedulesSettings, TimersSettings
from config.terms import (
    SHORTEST_TOKEN,
    Count,
    Language,
    LocalPath,
    ModuleName,
    Number,
    PublicUrls,
    RoleName,
    RoomId,
    Seconds,
    Section,
    Timezone,
    Word,
    fault,
)

CONFIG_VERSION = 1
DEFAULT_BOT = "default"


def _with_default_bot(bots: Mapping[str, BotSettings]) -> Mapping[str, BotSettings]:
    return bots if DEFAULT_BOT in bots else {DEFAULT_BOT: BotSettings(), **bots}


def _this_version(version: int) -> int:
    if version != CONFIG_VERSION:
        raise fault(
            f"is {version}, but this release reads version {CONFIG_VERSION}: "
            "install the release that the file was written for, or bring the file up to date with the changelog"
        )
    return version


class LoggingSettings(Section):
    """What is written down about the daemon's own doings, and where."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is written."""
    folder: LocalPath = Path("logs")
    """Where the log files lie; relative to the working directory."""
    console: Literal["auto", "text", "json", "off"] = "auto"
    """How logs look on standard error. auto: text where nobody chats on this terminal, else off."""
    max_megabytes: Count = Field(default=20, ge=1, le=10_000)
    """A log file of this size is put aside and a new one begun."""
    keep_files: Count = Field(default=5, ge=1, le=1000)
    """How many files that were put aside are kept."""


class StoreSettings(Section):
    """Where the database is, and how much is kept in it."""

    url: SecretStr = SecretStr("")
    """A PostgreSQL database, as postgresql://user:password@host:5432/name; best a reference to the environment. Empty:
    a SQLite file in `home`."""
    lease_seconds: Seconds = Field(default=15, ge=1)
    """Of several daemons on one PostgreSQL one leads. When it has not been heard of for so long, another one does."""
    history_per_chat: Count = Field(default=1000, ge=0, le=1_000_000)
    """Messages kept for each chat."""
    days_kept: Count = Field(default=30, ge=1, le=3650)
    """Days after which messages, finished turns and their calls, summaries and rows of the audit are deleted."""
    backups_kept: Count = Field(default=5, ge=0, le=1000)
    """Backups of the SQLite file that are kept, the newest ones. Of a PostgreSQL database the operator makes them."""
    backup_every_hours: Count = Field(default=24, ge=0, le=8760)
    """The time between two backups of the SQLite file, which the daemon makes in `home`; 0: none."""

    @field_validator("url")
    @classmethod
    def _of_a_known_engine(cls, url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        if text and not text.startswith(("postgresql://", "postgres://")):
            raise fault("has to begin with postgresql://, or be empty for a SQLite file in `home`")
        return url

    @property
    def is_on_a_server(self) -> bool:
        """Whether the database is PostgreSQL's."""
        return bool(self.url.get_secret_value())

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, to be kept out of logs."""
        url = self.url.get_secret_value()
        try:
            password = urlsplit(url).password or ""
        except ValueError:
            password = ""
        return (url, password, unquote(password))


class RouterSettings(Section):
    """How a message finds its function."""

    enabled: bool = True
    """False: the model calls no functions in any chat, whatever is set elsewhere; commands and chat go on."""
    max_rounds: Count = Field(default=6, ge=2, le=50)
    """Requests to the model in one turn; the last one offers no functions."""
    max_calls: Count = Field(default=16, ge=1, le=200)
    """Runs of functions in one turn."""
    identical_calls: Count = Field(default=3, ge=1, le=50)
    """How often a turn may call one function with the same arguments."""
    turn_timeout_seconds: Seconds = 120
    """After this time a turn is ended."""
    history_messages: Count = Field(default=30, ge=0, le=1000)
    """Earlier messages of the chat that the model is shown."""
    history_tokens: Count = Field(default=2500, ge=0, le=1_000_000)
    """Tokens of earlier messages that the model is shown, as estimated."""
    result_chars: Count = Field(default=8000, ge=100, le=1_000_000)
    """Characters of one function's result that the model is shown."""
    shortlist: Count = Field(default=12, ge=0, le=1000)
    """Where many functions may be called, a model is offered so many of those that fit the message or ran lately, and
    one function to find the others. 0: it is always offered all."""
    shortlist_above: Count = Field(default=24, ge=0, le=1000)
    """Functions that are few enough to be offered all: what would be saved is not worth a choice that may be wrong."""
    shortlist_turns: Count = Field(default=8, ge=1, le=1000)
    """For so many turns of its chat a function stays on the shortlist after it last fitted or ran, while there is
    room."""
    pinned: tuple[Word, ...] = Field(default=("help",), max_length=100)
    """Functions that are always offered, before and beside those of the shortlist."""
    shadow: ShadowSettings = ShadowSettings()


class QuestionsSettings(Section):
    """What the bot asks back."""

    expires_seconds: Count = Field(default=300, ge=10, le=604_800)
    """How long a question waits for its answer."""


class LimitsSettings(Section):
    """How much is taken on at once. What is over a limit is refused and said so, never dropped."""

    queue_per_chat: Count = Field(default=200, ge=1, le=100_000)
    """Messages of one chat that may wait."""
    queue_total: Count = Field(default=10_000, ge=1, le=10_000_000)
    """Messages of all chats that may wait."""
    immediate_per_chat: Count = Field(default=10, ge=1, le=1000)
    """Commands of one chat that do not wait in its queue, such as /stop, and may run at once."""
    parallel_turns: Count = Field(default=256, ge=1, le=100_000)
    """Chats that are answered at the same time."""
    message_chars: Count = Field(default=8000, ge=100, le=1_000_000)
    """The longest message that is read; of a longer one the beginning is, with a word that the rest is missing."""
    attempts_per_turn: Count = Field(default=3, ge=1, le=100)
    """How often a message is tried that ends the process or fails within the daemon."""
    bot_alternations: Count = Field(default=8, ge=0, le=1000)
    """So many messages to the bot in a row, each within two seconds of its answer, and their sender is taken for a bot
    and not talked with for ten minutes. Only on networks where bots need not say that they are. 0: nobody is."""
    schedules_per_chat: Count = Field(default=20, ge=0, le=10_000)
    """Schedules that a chat may have by command, beside those of the settings. 0: none."""


class DeliverySettings(Section):
    """How replies are sent again when a network fails, and how many may wait for a slow one."""

    attempts: Count = Field(default=8, ge=1, le=1000)
    """How often one message is sent before it is given up."""
    first_delay_seconds: Seconds = 1
    """The pause before the second attempt; each further pause is twice as long."""
    longest_delay_seconds: Number = Field(default=60, gt=0, le=86_400)
    """The longest of these pauses."""
    lines_per_member: Count = Field(default=60, ge=1, le=100_000)
    """Lines of replies to one member that may wait to be sent on a network that is slow by design, such as IRC. What
    is over this limit is not sent, and the member is told how much that was. Reminders are always sent."""
    lines_per_chat: Count = Field(default=180, ge=1, le=1_000_000)
    """The same for all replies to one chat."""

    @field_validator("longest_delay_seconds")
    @classmethod
    def _not_shorter_than_the_first(cls, longest: float, info: ValidationInfo) -> float:
        if longest < info.data.get("first_delay_seconds", 0):
            raise fault("has to be at least first_delay_seconds")
        return longest


class ConsoleSettings(Section):
    """A chat in the terminal that the daemon was started from."""

    enabled: Literal["auto", "on", "off"] = "auto"
    """auto: where there is a terminal."""
    name: Word = "you"
    """What the person at the terminal is called."""


class RoomSettings(Section):
    """One group on the web page."""

    id: RoomId
    """What it is called in `web:main:<id>`; each id once."""
    title: Annotated[str, Field(max_length=128)] = ""
    """What the page shows. Empty: the id."""


class WebSettings(Section):
    """The web server: the chat page, the operator's pages, health and metrics."""

    host: Word = "127.0.0.1"
    """The address it listens on. 127.0.0.1: this machine alone."""
    port: Count = Field(default=8080, ge=0, le=65_535)
    """The port it listens on. 0: any that is free."""
    public_url: PublicUrls = ()
    """The URL under which other machines open the page, such as https://bot.example.org or http://192.168.1.5:8080, or
    a list. Requests for other hosts, or from pages of other origins, are refused. Empty: only `host` and the loopback
    are served."""
    page: bool = True
    """Whether there is a chat page; health and metrics are there without it."""
    metrics_token: SecretStr = SecretStr("")
    """The bearer token that /metrics needs, of at least 16 characters; best a reference to the environment. Empty: none
    is needed where only this machine can reach the server, and elsewhere nobody gets the metrics."""
    connections_per_address: Count = Field(default=100, ge=0, le=10_000)
    """Connections that may be open at once from one address other than this machine's own. 0: no limit, for a reverse
    proxy on another machine."""
    rooms: tuple[RoomSettings, ...] = Field(default=(), max_length=100)
    """The groups on the page."""

    @field_validator("metrics_token")
    @classmethod
    def _long_enough(cls, token: SecretStr) -> SecretStr:
        if 0 < len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise fault(f"has to have at least {SHORTEST_TOKEN} characters")
        return token


class HttpSettings(Section):
    """An API through which programs bring in messages and read what the bot says."""

    enabled: bool = False
    """Whether there is one."""
    token: SecretStr = SecretStr("")
    """The bearer token that callers need, of at least 16 characters; best a reference to the environment."""
    max_role: RoleName = "member"
    """The highest role that a caller may claim for a sender."""

    @field_validator("token")
    @classmethod
    def _needed_when_enabled(cls, token: SecretStr, info: ValidationInfo) -> SecretStr:
        if info.data.get("enabled") and len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise fault(f"has to have at least {SHORTEST_TOKEN} characters while platforms.http is enabled")
        return token


class PlatformsSettings(Section):
    """The networks that the bot is on."""

    console: ConsoleSettings = ConsoleSettings()
    web: WebSettings = WebSettings()
    http: HttpSettings = HttpSettings()
    irc: tuple[IrcSettings, ...] = Field(default=(), max_length=50)
    """The IRC networks. None, unless there is an entry."""


class SourcesSettings(Section):
    """Where further functions come from."""

    python: tuple[LocalPath, ...] = Field(default=(), max_length=1000)
    """Python files, packages, or folders of both, with functions of your own. They run with the daemon's rights."""
    modules: tuple[ModuleName, ...] = Field(default=(), max_length=1000)
    """Installed Python modules with functions, by their dotted names; of a package all its modules."""
    entry_points: bool = False
    """Whether installed packages may bring functions by entry points in the group `rollcall.functions`."""
    commands: tuple[LocalPath, ...] = Field(default=(), max_length=1000)
    """YAML files of command tools, or folders of them: docs/command-tools.md."""
    basic: BasicSources = ()
    """BASIC scripts: docs/basic.md. An entry is a path, or a path with options."""
    basic_keywords: KeywordModules = ()
    """Python files or packages, or installed modules by their dotted names, with keywords for BASIC scripts:
    docs/basic-keywords.md. They run with the daemon's rights."""


class Settings(Section):
    """The settings of Rollcall."""

    config_version: Annotated[Count, AfterValidator(_this_version)] = CONFIG_VERSION
    """The version of this file's form."""
    home: LocalPath = Path("var")
    """The folder of all that is kept: database, backups, keys. Relative to the working directory."""
    language: Language = "en"
    """The language of the bot's sentences."""
    timezone: Timezone = "UTC"
    """The IANA time zone that chats live in."""
    logging: LoggingSettings = LoggingSettings()
    store: StoreSettings = StoreSettings()
    models: tuple[ModelSettings, ...] = Field(default=(), max_length=20)
    """The language models, in the order in which they are asked. With none usable the bot works without a model:
    commands and the functions' own examples."""
    failover: FailoverSettings = FailoverSettings()
    budgets: BudgetsSettings = BudgetsSettings()
    router: RouterSettings = RouterSettings()
    rollout: RolloutSettings = RolloutSettings()
    filters: FiltersSettings = FiltersSettings()
    memory: MemorySettings = MemorySettings()
    summary: SummarySettings = SummarySettings()
    news: NewsSettings = NewsSettings()
    search: SearchSettings = SearchSettings()
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
    """The bots by their keys; there is always `default`."""
    functions: FunctionsSettings = Field(default_factory=dict)
    """What is set for functions in all chats, by function name."""
    chats: ChatsSettings = ChatsSettings()
    members: MembersSettings = Field(default_factory=dict)
    """Roles of members in all their chats, as `platform:account:member: role`, beside what their platform says."""
    schedules: SchedulesSettings = Field(default_factory=dict)
    """Functions that run by the clock, by names of your own."""
    platforms: PlatformsSettings = PlatformsSettings()
    mcp: McpSettings = McpSettings()
    sources: SourcesSettings = SourcesSettings()
    plugins: Plugins = ()
    """Modules of functions that all bots have: built-in ones by their names, others by their dotted names."""
    operators: OperatorsSettings = OperatorsSettings()

    @property
    def answering_models(self) -> tuple[ModelSettings, ...]:
        """The models that may answer chats: all but the shadow."""
        return tuple(one for one in self.models if one.name != self.router.shadow.model)
