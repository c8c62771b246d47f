"""aiogram against a Bot API server: exits with 0 if everything arrives. Arguments: URL, token, chat, user.

The server has queued updates before, and presses the first button of the bot's messages.
"""

import asyncio
import sys

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramAPIError,
    TelegramBadRequest,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramRetryAfter,
)
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    ReactionTypeEmoji,
    ReplyParameters,
)

UPDATES = ["message", "edited_message", "callback_query", "message_reaction", "my_chat_member", "chat_member"]


async def main(url: str, token: str, chat: int, user: int) -> None:
    session = AiohttpSession(api=TelegramAPIServer.from_base(url))
    async with Bot(token, session=session) as bot:
        assert (await bot.get_me()).username == "rollcall_bot"
        assert (await bot.get_webhook_info()).url == ""
        updates = await bot.get_updates(timeout=5, allowed_updates=UPDATES)
        said, topic, file, edited, reaction, joined, added = updates
        assert said.message.from_user.id == user
        assert said.message.chat.id == chat
        assert said.message.entities[0].extract_from(said.message.text) == "@rollcall_bot"
        assert topic.message.is_topic_message
        assert topic.message.reply_to_message.forum_topic_created.name == "Tea"
        assert (await bot.download(file.message.document.file_id)).read() == b"content"
        assert edited.edited_message.text == "edited"
        assert reaction.message_reaction.new_reaction[0].emoji == "👍"
        assert joined.chat_member.new_chat_member.status == "member"
        assert added.my_chat_member.new_chat_member.status == "member"

        markup = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="yes")]])
        sent = await bot.send_message(
            chat,
            f'<b>Bold</b> &amp; <a href="tg://user?id={user}">Ann</a>',
            parse_mode="HTML",
            reply_markup=markup,
            reply_parameters=ReplyParameters(message_id=said.message.message_id),
        )
        assert sent.text == "Bold & Ann"
        assert [one.type for one in sent.entities] == ["bold", "text_mention"]
        assert sent.reply_to_message.message_id == said.message.message_id
        [pressed] = await bot.get_updates(updates[-1].update_id + 1, timeout=5)
        assert pressed.callback_query.data == "yes"
        assert pressed.callback_query.message.message_id == sent.message_id
        assert await pressed.callback_query.answer()
        changed = await bot.edit_message_text("Changed", chat_id=chat, message_id=sent.message_id)
        assert changed.reply_markup is None
        assert await bot.set_message_reaction(chat, said.message.message_id, [ReactionTypeEmoji(emoji="👍")])
        assert await bot.send_chat_action(chat, "typing")
        in_topic = await bot.send_message(chat, "In the topic", message_thread_id=topic.message.message_thread_id)
        assert in_topic.is_topic_message
        photo = await bot.send_photo(chat, BufferedInputFile(b"photo", "a.png"), caption="A photo")
        assert photo.caption == "A photo"
        assert (await bot.download(photo.photo[-1].file_id)).read() == b"photo"
        document = await bot.send_document(chat, BufferedInputFile(b"text", "a.txt"))
        assert await bot.delete_message(chat, document.message_id)
        assert (await bot.get_chat_member(chat, user)).status == "member"
        assert [one.user.id for one in await bot.get_chat_administrators(chat)] == [bot.id]
        assert await bot.set_my_commands([BotCommand(command="roll", description="Roll dice")], language_code="zh")
        failures = []
        for call in (
            lambda: bot.edit_message_text("Changed", chat_id=chat, message_id=sent.message_id),
            lambda: bot.send_message(chat, "fails"),
            lambda: bot.send_message(chat, "fails"),
            lambda: bot.send_message(-500, "moved"),
        ):
            try:
                await call()
            except TelegramAPIError as error:
                failures.append(type(error))
        assert failures == [TelegramBadRequest, TelegramRetryAfter, TelegramForbiddenError, TelegramMigrateToChat]
        assert await bot.leave_chat(chat)
        assert await bot.set_webhook("https://bot.example.org/x", secret_token="s", allowed_updates=UPDATES)
        assert (await bot.get_webhook_info()).url == "https://bot.example.org/x"
        assert await bot.delete_webhook()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
