"""`OpenAIChat` for programs that build a model without settings."""

from services.llm.protocols.openai_chat import OpenAIChat as OpenAIChat
