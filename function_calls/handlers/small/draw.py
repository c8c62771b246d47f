"""Pictures drawn by a model."""

from __future__ import annotations

import base64
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.media.models import MediaError, MediaModels
from services.media.pictures import picture_of
from services.refs import ErrorCode

_Picture = Annotated[str, Field(description="What the picture shows", min_length=1, max_length=4000, pattern=r"\S")]


@tool_function(
    examples=(
        "draw {picture}",
        "draw a picture of {picture}",
        "make an image of {picture}",
        "generate a picture showing {picture}",
        "paint me {picture}",
        "画一张{picture}",
        "画一幅{picture}的图",
        "生成一张{picture}的图片",
    ),
    commands=("draw", "画"),
    tags="have_fun",
    touches="stays_here",
    effect="idempotent",
    return_direct=True,
    timeout_seconds=120,
    ask={"picture": "@draw.ask_picture"},
)
async def draw(context: MessageContext, picture: _Picture, *, models: MediaModels, call: Call) -> FunctionResult:
    """Draw a picture"""
    if not models.is_configured(context.bot):
        return FunctionResult.fail(ErrorCode.ENVIRONMENT, call.say("draw.not_set"))
    await call.status(call.say("draw.status"))
    try:
        content = await models.draw(picture)
    except MediaError as error:
        key, code = ("declined", ErrorCode.REFUSED) if error.is_refused else ("try_again", ErrorCode.ENVIRONMENT)
        return FunctionResult.fail(code, call.say(f"draw.{key}"))
    drawn = picture_of(content)
    if drawn is None:
        return FunctionResult.fail(ErrorCode.ENVIRONMENT, call.say("draw.try_again"))
    url = f"data:{drawn.media_type};base64,{base64.b64encode(content).decode()}"
    name = f"picture.{drawn.media_type.partition('/')[2]}"
    file = Attachment(name, drawn.media_type, url, len(content))
    caption = " ".join(picture.split())[:200]
    data = {"drawn": picture, "width": drawn.width, "height": drawn.height}
    return FunctionResult.say(f"🎨 {caption}", data=data, attachments=(file,))
