"""Voice messages: what is heard becomes the member's text, and answers are read aloud where the chat wants it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace

import structlog

from bot.platforms.mentions import mention_parser
from bot.turns.attached import FileReader, Refused
from config.settings import Settings
from function_calls.checks.budgets import OverBudget, RequestBudgets
from function_calls.context import Attachment, MessageContext
from function_calls.outcome import OutcomeKind, TurnOutcome, sent
from function_calls.spec import Message
from function_calls.turn import Turn
from services.llm.model import ModelError, ModelMessage, ModelRequest
from services.media.models import MediaError, MediaModels
from services.refs import ErrorCode, ReasonCode

_log = structlog.get_logger("voice")


class Voice:
    """Hears voice messages before their turns, and speaks answers to them."""

    def __init__(self, files: FileReader, models: MediaModels, budgets: RequestBudgets, settings: Settings) -> None:
        self._files = files
        self._models = models
        self._budgets = budgets
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Apply new settings to messages that are heard from now on."""
        self._models.settings = settings.media
        self._parsers = {key: mention_parser((bot.name, *bot.aliases)) for key, bot in settings.bots.items()}

    def concerns(self, context: MessageContext) -> bool:
        """Whether `context` has a voice message that is to be heard."""
        return bool(self._models.settings.hearing) and not context.unasked and _has_voice(context)

    def may_name_bot(self, context: MessageContext) -> bool:
        """Whether a voice message that is not addressed to the bot has to be heard to find out if it names the bot."""
        is_open = not (context.calls_bot or context.addresses_another or context.text.strip())
        return is_open and self._models.settings.heard_by_name and self.concerns(context)

    def is_for_others(self, context: MessageContext) -> bool:
        """Whether `context` is a voice message, heard or not, that is not addressed to the bot."""
        is_voice = context.spoken or (_has_voice(context) and not context.text.strip())
        return is_voice and not (context.calls_bot or context.takes or context.unasked)

    async def hear(self, context: MessageContext, turn: Turn) -> MessageContext | TurnOutcome:
        """`context` with what was heard as its text, or the outcome of a turn that ends without: silent if the message
        is not for the bot."""
        texts, heard = turn.input.profile().texts, list[str]()
        is_called = context.calls_bot or turn.input.answering is not None
        try:
            for file in context.attachments:
                if file.is_voice:
                    content = await self._files.read(context.chat, file, self._models.settings.voice_bytes, texts)
                    heard.append(await self._heard(content, file.media_type, context, turn))
            words = "\n".join(filter(None, heard))
            problem = "" if words else texts.say("media.heard_nothing")
        except OverBudget as over:
            return sent(ReasonCode.OVER_BUDGET, [Message(over.text)] if over.text and is_called else [], over.setting)
        except Refused as refused:
            problem = str(refused)
        except MediaError as error:
            _log.warning("voice_not_heard", turn=turn.input.id, problem=str(error))
            problem = texts.say("media.not_heard")
        if problem:
            reason = ReasonCode.MODEL_FAILED if is_called else ReasonCode.NOT_ADDRESSED
            return sent(reason, [Message(problem)] if is_called else [], "media.hearing")
        parsed = self._parsers[context.bot](words)
        others = tuple(one for one in context.attachments if not one.is_voice)
        text = "\n".join(filter(None, (context.text, parsed.text)))
        is_named = context.mentions_bot or parsed.mentions_bot
        return replace(context, text=text, attachments=others, mentions_bot=is_named, spoken=True)

    async def _heard(self, content: bytes, media_type: str, context: MessageContext, turn: Turn) -> str:
        reservation = await self._budgets.reserve(context, turn, ModelRequest([ModelMessage("user", "")]))
        try:
            return await self._models.hear(content, media_type)
        except MediaError:
            self._budgets.refund(reservation, ModelError(ErrorCode.PROVIDER_ERROR, "no transcript"))
            raise

    async def answered(
        self, outcome: TurnOutcome, context: MessageContext, turn: Turn, *, most_bytes: int
    ) -> TurnOutcome:
        """The outcome of the turn of a voice message: with what was heard, if configured, and read aloud, if the chat
        wants it and its network takes files of `most_bytes`."""
        profile, messages = turn.input.profile(), list(outcome.messages)
        if outcome.kind is not OutcomeKind.SENT:
            return outcome
        if profile.voice_answers and most_bytes:
            messages = await self._spoken(messages, context, turn, most_bytes)
        if self._models.settings.show_heard:
            messages.insert(0, Message(profile.texts.say("media.heard", text=" ".join(context.text.split()))))
        return replace(outcome, messages=tuple(messages))

    async def _spoken(
        self, messages: Sequence[Message], context: MessageContext, turn: Turn, most_bytes: int
    ) -> list[Message]:
        """`messages`, the last of which for this chat has the voice message; unchanged if it cannot be made."""
        own = [place for place, one in enumerate(messages) if one.to is None and one.text.strip()]
        text = "\n".join(messages[place].text for place in own)
        if not own or len(text) > self._models.settings.spoken_chars or not self._models.settings.speaking:
            return list(messages)
        try:
            reservation = await self._budgets.reserve(context, turn, ModelRequest([ModelMessage("user", text)]))
        except OverBudget:
            return list(messages)
        try:
            sound = await self._models.speak(text)
        except MediaError as error:
            _log.warning("answer_not_spoken", turn=turn.input.id, problem=str(error))
            self._budgets.refund(reservation, ModelError(ErrorCode.PROVIDER_ERROR, "no sound"))
            return list(messages)
        if len(sound.content) > most_bytes:
            return list(messages)
        url = f"data:{sound.media_type};base64,{base64.b64encode(sound.content).decode()}"
        file = Attachment(sound.name, sound.media_type, url, len(sound.content))
        last = messages[own[-1]]
        spoken = replace(last, attachments=(*last.attachments, file))
        return [spoken if one is last else one for one in messages]


def _has_voice(context: MessageContext) -> bool:
    return any(one.is_voice for one in context.attachments)
