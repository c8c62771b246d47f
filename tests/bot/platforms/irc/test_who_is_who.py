"""State of an IRC network: features, users, and registration of the bot."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.connection import Rejected
from bot.platforms.irc.inbound import Inbound
from bot.platforms.irc.registration import Registration, joins
from bot.platforms.irc.session import Receipts
from bot.platforms.irc.state import ConfiguredChannels, Features, State
from bot.platforms.irc.wire import parse
from config.sections.irc import IrcSettings
from function_calls.context import MessageContext
from services.clock import VirtualClock
from services.refs import Role


def features(text: str = "") -> Features:
    found = Features()
    found.learn(text.split())
    return found


def a_state(*lines: str, caps: str = "account-notify account-tag extended-join multi-prefix") -> State:
    state = State()
    state.caps = set(caps.split())
    for line in (
        ":irc.test 001 Rollcall :Welcome",
        ":irc.test 005 Rollcall PREFIX=(qaohv)~&@%+ CHANMODES=b,k,l,imnpst CASEMAPPING=rfc1459 :are supported",
        ":Rollcall!r@h.test JOIN #x",
        ":irc.test 353 Rollcall = #x :Rollcall ~@zoe +bob @Ann[1]",
        ":irc.test 366 Rollcall #x :End",
        *lines,
    ):
        told = parse(line.encode())
        assert told is not None
        state.follow(told)
    return state


@pytest.mark.parametrize(
    ("mapping", "same", "different"),
    [
        ("rfc1459", ("A[]\\~", "a{}|^"), ("a", "b")),
        ("rfc1459-strict", ("A[]\\", "a{}|"), ("~", "^")),
        ("ascii", ("ABC", "abc"), ("[", "{")),
        ("something-new", ("ABC", "abc"), ("[", "{")),
    ],
)
def test_names_are_compared_as_the_server_does(mapping: str, same: tuple[str, str], different: tuple[str, str]) -> None:
    fold = features(f"CASEMAPPING={mapping}").fold
    assert fold(same[0]) == fold(same[1])
    assert fold(different[0]) != fold(different[1])


def test_a_server_that_says_nothing_of_itself_is_as_the_first_ones_were() -> None:
    plain = features()
    assert (plain.line_bytes, plain.joins_at_once, plain.has_whox) == (512, 1, False)
    assert plain.is_channel("#x")
    assert plain.is_channel("&x")
    assert not plain.is_channel("x")
    assert dict(plain.prefixes) == {"@": "o", "+": "v"}
    assert plain.channel_of("@#x") == ("@#x", False)


def test_features_may_be_taken_back_and_hold_escapes() -> None:
    some = features("NETWORK=My\\x20Net WHOX LINELEN=2048 TARGMAX=PRIVMSG:4,JOIN:3 STATUSMSG=@+ BOT=B")
    assert (some.network, some.has_whox, some.line_bytes, some.joins_at_once) == ("My Net", True, 2048, 3)
    assert some.channel_of("@+#x") == ("#x", True)
    assert some.bot_mode == "B"
    some.learn(["-WHOX", "LINELEN=nonsense"])
    assert (some.has_whox, some.line_bytes) == (False, 512)


def test_channels_are_joined_as_many_at_once_as_the_server_takes() -> None:
    wanted = [("#a", ""), ("#b", "key"), ("#c", "")]
    assert joins(wanted, features()) == [b"JOIN #b :key\r\n", b"JOIN :#a\r\n", b"JOIN :#c\r\n"]
    assert joins(wanted, features("TARGMAX=JOIN:2")) == [b"JOIN #b,#a :key\r\n", b"JOIN :#c\r\n"]
    many = [(f"#{number:060}", "") for number in range(30)]
    assert max(map(len, joins(many, features("TARGMAX=JOIN:")))) <= 512


def test_nobody_is_more_than_a_member_by_a_nick_whatever_stands_before_it() -> None:
    state = a_state()
    assert [state.role("#x", one) for one in ("~zoe", "~ann{1}", "~bob", "~nobody")] == [Role.MEMBER] * 3 + [None]
    assert state.role("#elsewhere", "~zoe") is None


@pytest.mark.parametrize(
    ("modes", "role"),
    [
        ("q", Role.ADMIN),
        ("a", Role.ADMIN),
        ("o", Role.MODERATOR),
        ("h", Role.MODERATOR),
        ("v", Role.MEMBER),
        ("qo", Role.ADMIN),
    ],
)
def test_an_account_is_what_the_modes_of_the_channel_make_it(modes: str, role: Role) -> None:
    state = a_state(
        ":bob!b@h ACCOUNT Bobby",
        ":zoe!z@h MODE #x -v bob",
        f":zoe!z@h MODE #x +{modes} {' '.join(['bob'] * len(modes))}",
    )
    assert state.role("#x", "bobby") is role
    assert state.role("#x", "~bob") is None
    assert state.role("#X", "zoe") is None


@pytest.mark.parametrize(
    "line",
    [
        ":bob!b@h QUIT :bye",
        ":bob!b@h PART #x",
        ":zoe!z@h KICK #x bob :out",
        ":bob!b@h ACCOUNT *",
        ":zoe!z@h KICK #x Rollcall :out",
        ":irc.test 353 Rollcall = #x :Rollcall ~@zoe\r",
    ],
)
def test_what_somebody_was_ends_when_they_go(line: str) -> None:
    end = ":irc.test 366 Rollcall #x :End"
    state = a_state(":bob!b@h ACCOUNT bobby", ":zoe!z@h MODE #x +o bob", line, end)
    assert state.role("#x", "bobby") is None


@pytest.mark.parametrize("caps", ["account-notify extended-join", "account-notify account-tag", "account-notify", ""])
@pytest.mark.parametrize("leaving", [":bob!b@h PART #x", ":bob!b@h QUIT", ":zoe!z@h KICK #x bob"])
def test_whoever_comes_back_under_the_nick_of_somebody_else_is_not_them(caps: str, leaving: str) -> None:
    back = ":bob!evil@h JOIN #x * :x" if "extended-join" in caps else ":bob!evil@h JOIN #x"
    state = a_state(":bob!b@h ACCOUNT bobby", leaving, back, caps=caps)
    assert state.role("#x", "bobby") is None
    assert state.nick_of("bobby") == ""
    assert state.identity_of("bob") == "~bob"


def test_modes_and_account_go_along_with_a_new_nick() -> None:
    state = a_state(
        ":bob!b@h ACCOUNT bobby", ":zoe!z@h MODE #x +o bob", ":bob!b@h NICK :robert", ":Rollcall!r@h NICK :Bot"
    )
    assert (state.role("#x", "bobby"), state.nick_of("bobby"), state.nick) == (Role.MODERATOR, "robert", "Bot")


def test_modes_with_parameters_before_it_do_not_give_a_mode_to_the_wrong_member() -> None:
    state = a_state(
        ":bob!b@h ACCOUNT bobby",
        ":zoe!z@h ACCOUNT zoe",
        ":zoe!z@h MODE #x +bklo-v *!*@* key 5 zoe bob",
        ":z MODE #x -l+o bob",
    )
    assert (state.role("#x", "bobby"), state.role("#x", "zoe")) == (Role.MODERATOR, Role.ADMIN)


def test_accounts_of_those_who_were_there_before_are_learned() -> None:
    state = a_state(
        ":irc.test 354 Rollcall 417 #x b h bob H Bobby",
        ":irc.test 354 Rollcall 417 #x z h zoe H 0",
        ":irc.test 354 Rollcall 999 #x z h zoe H mallory",
        ":irc.test 354 Rollcall 417 #x ~r far.away.test Rollcall H 0",
    )
    assert (state.identity_of("bob"), state.identity_of("zoe")) == ("bobby", "~zoe")
    assert state.own_source_bytes() == len(":Rollcall!~r@far.away.test ")


def test_an_account_that_looks_like_the_mark_of_a_nick_counts_for_nothing() -> None:
    assert a_state(":bob!b@h ACCOUNT ~zoe").identity_of("bob") == "~bob"


def test_our_own_name_is_taken_for_long_until_it_is_known() -> None:
    state = State()
    state.nick = "Rollcall"
    assert state.own_source_bytes() >= len("Rollcall") + 63
    known = a_state()
    assert known.own_source_bytes() == len(":Rollcall!r@h.test ")
    told = parse(b":irc.test 396 Rollcall hidden.test :is now your host")
    assert told is not None
    known.follow(told)
    assert known.own_source_bytes() == len(":Rollcall!r@hidden.test ")


# Registration


def settings(**more: Any) -> IrcSettings:
    return IrcSettings.model_validate({"account": "t", "host": "127.0.0.1", **more})


def told(registration: Registration, *lines: str) -> list[bytes]:
    answers: list[bytes] = []
    for line in lines:
        read = parse(line.encode())
        assert read is not None
        answers += registration.take(read)
    return answers


def test_what_the_server_does_not_offer_is_not_asked_for() -> None:
    registration = Registration(settings(password="server-word"))
    assert registration.begin()[:2] == [b"CAP LS :302\r\n", b"PASS :server-word\r\n"]
    asked = told(registration, ":s CAP * LS * :batch chghost", ":s CAP * LS :sts=port=6697 server-time")
    assert asked == [b"CAP REQ :batch server-time\r\n"]
    assert told(registration, ":s CAP * ACK :batch server-time") == [b"CAP :END\r\n"]
    assert registration.caps == {"batch", "server-time"}
    assert told(registration, ":s CAP me DEL :batch", ":s CAP me NEW :away-notify") == []
    assert registration.caps == {"server-time"}


def test_a_long_password_is_sent_in_pieces() -> None:
    sasl = {"mechanism": "plain", "account": "bot", "password": "p" * 292}
    registration = Registration(settings(sasl=sasl))
    told(registration, ":s CAP * LS :sasl", ":s CAP * ACK :sasl")
    pieces = told(registration, "AUTHENTICATE +")
    assert [len(piece) for piece in pieces] == [len("AUTHENTICATE :") + 400 + 2, len("AUTHENTICATE :+\r\n")]


def test_with_a_certificate_the_account_may_be_left_to_the_server() -> None:
    sasl = {"mechanism": "external"}
    registration = Registration(settings(sasl=sasl, client_certificate="bot.pem"))
    told(registration, ":s CAP * LS :sasl=PLAIN,EXTERNAL")
    assert told(registration, ":s CAP * ACK :sasl") == [b"AUTHENTICATE :EXTERNAL\r\n"]
    assert told(registration, "AUTHENTICATE +") == [b"AUTHENTICATE :+\r\n"]


@pytest.mark.parametrize(
    "lines",
    [
        [":s CAP * LS :batch", ":s CAP * ACK :batch"],
        [":s CAP * LS :sasl=SCRAM-SHA-256"],
        [":s 421 * CAP :unknown", ":s 001 me :hi"],
        [":s 464 * :Password incorrect"],
        [":s 465 * :You are banned"],
        [f":s 433 * {number} :taken" for number in range(30)],
    ],
)
def test_what_will_not_pass_soon_is_told_apart(lines: list[str]) -> None:
    registration = Registration(settings(sasl={"mechanism": "plain", "account": "a", "password": "p"}))
    with pytest.raises(Rejected):
        told(registration, *lines)


COMMANDS = """
    JOIN PART QUIT NICK KICK MODE PRIVMSG NOTICE TAGMSG ACCOUNT BATCH CAP INVITE PONG ERROR AUTHENTICATE FAIL
    001 005 353 366 354 396 330 318 404 433 471 376 900 903
"""
WORDS = ["#x", "Rollcall", "a", "*", "+o-v", "417", "@#x", "+1", ":Rollcall: \x01ACTION x y", ":"]
LINES = st.lists(
    st.tuples(
        st.sampled_from(
            ["", "@msgid=1;batch=1;time=2026-01-01T00:00:00Z;label=rc1 ", "@time=x;+draft/reply=1;account=a "]
        ),
        st.sampled_from([":a!b@c ", ":Rollcall!b@c ", ":s ", ""]),
        st.sampled_from(COMMANDS.split()),
        st.lists(st.sampled_from(WORDS), max_size=8),
    ),
    max_size=30,
)


@pytest.mark.parametrize("caps", ["", "echo-message", "labeled-response batch echo-message account-tag extended-join"])
@given(lines=LINES)
async def test_no_order_of_lines_breaks_what_follows_them(
    caps: str, lines: list[tuple[str, str, str, list[str]]]
) -> None:
    state, clock = a_state(caps=caps), VirtualClock()
    inbound, registration, receipts = Inbound("t", ["Rollcall"], clock), Registration(settings()), Receipts(state)
    channels = ConfiguredChannels(settings(channels=[{"name": "#x"}]).channels, "t", clock.monotonic)
    waiting = [receipts.expect("#x", "hello"), receipts.expect("a", "hello")]
    for tags, source, command, params in lines:
        line = parse(f"{tags}{source}{command} {' '.join(params)}".encode())
        assert line is not None
        for context in inbound.contexts(line, state):
            assert context.chat.native
        with suppress(Rejected):
            registration.take(line)
        state.follow(line)
        channels.follow(line, state)
        channels.due(state)
        receipts.follow(line)
    receipts.lost()
    assert all(one.done.done() for one in waiting)


def test_what_was_said_before_we_came_is_known_by_the_servers_own_clock() -> None:
    state, inbound = a_state(), Inbound("t", ["Rollcall"], VirtualClock())

    def heard(time: str) -> MessageContext:
        line = parse(f"@time={time} :ann!a@b PRIVMSG #x :hello".encode())
        assert line is not None
        [context] = inbound.contexts(line, state)
        return context

    # 9:00 here, 11:00 there.
    welcome = parse(b"@time=2026-01-05T11:00:00.000Z :irc.test 001 Rollcall :Welcome")
    assert welcome is not None
    inbound.connected(welcome)
    now, before = heard("2026-01-05T11:00:01.000Z"), heard("2026-01-05T10:30:00.000Z")
    assert (now.backfilled, before.backfilled) == (False, True)
    assert now.sent_at == VirtualClock().now()
    assert not heard("yesterday").backfilled


@pytest.mark.parametrize(
    ("said", "text", "is_meant"),
    [
        ("Rollcall: hello", "hello", True),
        ("rollcall, hello", "hello", True),
        ("hello @Rollcall", "hello", True),
        ("Robbie: hello", "hello", True),
        ("hello rollcall", "hello", True),
        ("rollcall what time is it", "what time is it", True),
        ("what time is it, Rollcall?", "what time is it?", True),
        ("I think Rollcall knows", "I think Rollcall knows", False),
        ("ask rollcall!", "ask rollcall!", False),
        ("Rollcall's answer", "Rollcall's answer", False),
        ("hello", "hello", False),
        ("Rollcaller is here", "Rollcaller is here", False),
        ("my-Rollcall", "my-Rollcall", False),
        ("Rollcall_ is another", "Rollcall_ is another", False),
        ("see https://a.test/Rollcall/x", "see https://a.test/Rollcall/x", False),
        ("see rollcall.example", "see rollcall.example", False),
        ("mail x@rollcall.test", "mail x@rollcall.test", False),
        ("Robbie is an alias", "Robbie is an alias", False),
    ],
)
def test_the_bot_is_addressed_by_its_names_and_by_its_nick(said: str, text: str, is_meant: bool) -> None:
    line = parse(f":ann!a@b PRIVMSG #x :{said}".encode())
    assert line is not None
    [context] = Inbound("t", ["Robbie"], VirtualClock()).contexts(line, a_state())
    assert (context.text, context.mentions_bot) == (text, is_meant)


def test_who_else_is_spoken_to_is_told() -> None:
    line = parse(b":ann!a@b PRIVMSG #x :bob: ask @zoe, not @nobody or Rollcall")
    assert line is not None
    [context] = Inbound("t", ["Robbie"], VirtualClock()).contexts(line, a_state())
    assert [member.native for member in context.mentions] == ["~bob", "~zoe"]
