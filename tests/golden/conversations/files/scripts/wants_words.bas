DESCRIPTION "Say something friendly"

TALK LLM("Write one friendly sentence about the evening", "The sun sets at 15:34")
