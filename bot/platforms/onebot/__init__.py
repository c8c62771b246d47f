"""OneBot v11: QQ by NapCat or LLOneBot, and bridges of other networks that speak it."""
