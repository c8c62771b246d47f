"""The XMPP platform."""
