"""Re-export of `OpenAIChat` for programs that build a model without settings; see protocols/openai_chat.py."""

from services.llm.protocols.openai_chat import OpenAIChat as OpenAIChat
