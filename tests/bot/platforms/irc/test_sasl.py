"""SASL: proof of an account without sending the password, and verification of the server."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import pytest

from bot.platforms.irc.registration import NoProof, Sasl
from config.sections.irc import IrcSaslSettings
from tests.bot.platforms.irc.test_bad_days import a_world
from tests.fakes.irc_server import ALL_CAPS

# Example of RFC 7677.
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
PROOF = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def a_proof(account: str = "user", password: str = "pencil", mechanism: str = "scram-sha-256") -> Sasl:
    settings = {"mechanism": mechanism, "account": account, "password": password}
    return Sasl(IrcSaslSettings.model_validate(settings), NONCE)


def told(sasl: Sasl, text: str) -> str:
    """The answer to `text`."""
    return joined(sasl.answer(base64.b64encode(text.encode()).decode() or "+"))


def joined(lines: Iterable[bytes]) -> str:
    pieces = [line.decode().strip().removeprefix("AUTHENTICATE ").removeprefix(":") for line in lines]
    return base64.b64decode("".join(piece for piece in pieces if piece != "+")).decode()


def test_it_says_what_the_standard_says() -> None:
    sasl = a_proof()
    assert told(sasl, "") == f"n,,n=user,r={NONCE}"
    assert told(sasl, CHALLENGE) == FINAL
    assert not sasl.is_over
    assert told(sasl, PROOF) == ""
    assert sasl.is_over


def test_long_words_come_and_go_in_pieces() -> None:
    sasl = a_proof()
    told(sasl, "")
    text = base64.b64encode(f"{CHALLENGE},x={'y' * 500}".encode()).decode()
    assert sasl.answer(text[:400]) == []
    assert joined(sasl.answer(text[400:800])).startswith(f"c=biws,r={NONCE}%")
    long = a_proof(account="a" * 100, password="p" * 420, mechanism="plain")
    lines = long.answer("+")
    assert len(lines) == 3
    assert joined(lines) == "\0".join(["a" * 100, "a" * 100, "p" * 420])


def test_a_name_with_signs_of_the_protocol_is_quoted_and_letters_of_another_keyboard_are_the_same() -> None:
    assert told(a_proof(account="a,b=c"), "") == f"n,,n=a=2Cb=3Dc,r={NONCE}"
    sasl = a_proof(password="pen\u00adcil")
    told(sasl, "")
    assert told(sasl, CHALLENGE) == FINAL


@pytest.mark.parametrize(
    ("challenge", "because"),
    [
        (CHALLENGE.replace(NONCE, "somebody-elses-nonce"), "not for this bot"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "not for this bot"),
        (f"m=must,{CHALLENGE}", "not for this bot"),
        (CHALLENGE.replace("4096", "1"), "asks for 1 rounds"),
        (CHALLENGE.replace("4096", "99999999"), "asks for 99999999 rounds"),
        (CHALLENGE.replace("4096", "9" * 5000), "cannot be read"),
        (CHALLENGE.replace("4096", "many"), "cannot be read"),
        (CHALLENGE.replace("s=W22Z", "s=W22!"), "cannot be read"),
        ("e=unknown-user", "refused"),
        ("", "not for this bot"),
    ],
)
def test_a_challenge_that_proves_nothing_is_not_answered(challenge: str, because: str) -> None:
    sasl = a_proof()
    told(sasl, "")
    with pytest.raises(NoProof, match=because):
        told(sasl, challenge)


@pytest.mark.parametrize("proof", [PROOF.replace("6rri", "7rri"), "", "v=", "x"])
def test_a_server_that_does_not_know_the_password_is_not_believed(proof: str) -> None:
    sasl = a_proof()
    told(sasl, "")
    told(sasl, CHALLENGE)
    with pytest.raises(NoProof, match="not the one it says to be"):
        told(sasl, proof)
    assert not sasl.is_over


@pytest.mark.parametrize("piece", ["!", "a", "ä"])
def test_what_cannot_be_read_is_not_answered(piece: str) -> None:
    with pytest.raises(NoProof, match="cannot be read"):
        a_proof().answer(piece)


def test_a_server_that_says_too_much_is_not_listened_to() -> None:
    sasl = a_proof()
    for _ in range(20):
        assert sasl.answer("x" * 400) == []
    with pytest.raises(NoProof, match="too much"):
        sasl.answer("x" * 400)


@pytest.mark.parametrize("mechanism", ["scram-sha-256", "scram-sha-512"])
async def test_the_bot_comes_in_with_its_account_and_its_password_is_never_sent(mechanism: str) -> None:
    sasl = {"mechanism": mechanism, "account": "bot", "password": "a-secret"}
    caps = f"sasl=PLAIN,{mechanism.upper()} {ALL_CAPS}"
    async with a_world({"sasl": sasl}, caps=caps, accounts={"bot": "a-secret"}) as world:
        assert f"AUTHENTICATE :{mechanism.upper()}" in world.server.received
        sent = [base64.b64decode(line.partition(":")[2] + "==") for line in world.server.has("AUTHENTICATE")[1:-1]]
        assert sent
        assert not any(b"a-secret" in one for one in sent)


@pytest.mark.parametrize("impostor", [True, False])
async def test_a_wrong_password_and_a_server_that_only_says_yes_keep_the_bot_out(impostor: bool) -> None:
    sasl = {"mechanism": "scram-sha-256", "account": "bot", "password": "a-secret"}
    server = {"caps": "sasl=SCRAM-SHA-256", "accounts": {"bot": "another"}}
    async with a_world({"sasl": sasl}, waits=False, **server) as world:
        world.server.believes_everybody = impostor
        why = "did not show that it knows the password" if impostor else "is refused"
        await world.passes(lambda: why in world.platform.link().words, 0)
        assert not world.server.has("JOIN")
