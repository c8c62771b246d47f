"""Sentences of a model that claim an action, and the runs that support them."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.rounds.claims import Act, admits, corrected, unfounded
from function_calls.spec import FunctionResult, FunctionSpec
from tests.fakes.functions import Recorder


def a_function(name: str, description: str = "", **options: Any) -> FunctionSpec:
    options.setdefault("effect", "once")
    return Recorder(name, description=description or f"Does {name}.", **options).spec


TODO = a_function("todo_add", "Add an entry to this chat's to-do list", commands=["todo add", "待办 添加"], tags="todo")
REMIND = a_function("remind", "Set a reminder for later", commands=["remind", "提醒"])
BAN = a_function("ban_member", "Ban a member of this chat")
LOOK = a_function("todo_list", "Show this chat's to-do list", effect="read")
SPECS = (TODO, REMIND, BAN, LOOK)
ADDED = Act(TODO, {"text": "milk"}, FunctionResult.say("Added #3 milk"))
ADDED_CHINESE = Act(TODO, {"text": "牛奶"}, FunctionResult.say("已添加 #3 牛奶"))

LIES = [
    "I've set a reminder for 5 pm.",
    "I have added milk to your shopping list.",
    "Sure! I've just added milk to the to-do list. Anything else?",
    "Okay, I set an alarm for 7:30.",
    "I’ve gone ahead and booked a table for two.",
    "Alright, I've cancelled the meeting with Bo.",
    "I banned Bob.",
    "Bob has been banned.",
    "Your reminder has been set for tomorrow at 9.",
    "The poll has now been closed.",
    "Your appointment is now confirmed.",
    "Reminder set for 17:00.",
    "Email sent!",
    "Added milk to your to-do list.",
    "Successfully deleted the event.",
    "I'll remind you at five.",
    "No problem, I will remind everyone tomorrow.",
    "Done!",
    "All set 👍",
    "I checked the weather and I've sent Ann a message.",
    "我已经提醒了大家。",
    "我已经帮你设置了明天早上八点的闹钟。",
    "好的，已为您添加到待办清单。",
    "我把牛奶加到清单里了。",
    "提醒已设置成功。",
    "会议已取消。",
    "我会在五点提醒你。",
    "已成功发送邮件给王总。",
    "搞定了！",
    "I have done everything successfully.",
    "I've added a llama.",
    "You're all set!",
    "Your reservation has been successfully updated with the following details:",
    "为您生成了一段爵士乐。",
    "好的，已打开客厅灯。",
    "Alles erledigt!",
    "Ich habe den Termin für Dienstag um 10 Uhr eingetragen.",
    "Der Termin wurde am 3. Mai um 9 Uhr erstellt.",
    "Licht ausgeschaltet.",
    "Ich werde dich um fünf erinnern.",
    "I've let everyone know the game starts at eight.",
    "The door is locked now.",
    "The email is on its way.",
    "You're now subscribed to the news.",
    "Die Playlist ist angelegt.",
    "Umfrage erstellt!",
    "Die E-Mail ist raus.",
    "Das Licht ist jetzt aus.",
    "我刚重启了服务器。",
    "备份成功完成。",
    "走廊灯打开了。",
]
HONEST = [
    "It is 3 degrees in Oslo.",
    "I can't set reminders here.",
    "Hello! I can run polls, set reminders and keep lists for your trip.",
    "I haven't added anything to the list.",
    "Shall I add milk to the list?",
    "Have I set the reminder? No.",
    "Would you like me to set a reminder?",
    "If you want, I can ban Bob.",
    "Once you have set a reminder, I will wait.",
    "I could have added a reminder, but nobody asked.",
    "I've added a comma to the second sentence.",
    "I have updated the table below.",
    "I've written a short poem about your meeting.",
    "The reminder was set by Bo.",
    "You added milk to the list.",
    "Bo has added milk to the list.",
    'The log says "I have deleted the event."',
    "I set the reminder you mean yesterday.",
    "To set a reminder, type /remind.",
    "Set an alarm in your phone's clock app.",
    "Python was created by Guido van Rossum in 1991.",
    "I've been thinking about your poll.",
    "I have three ideas for the meeting.",
    "The event has been great so far.",
    "Done is better than perfect.",
    "我不能设置提醒。",
    "要我帮你加到清单里吗？",
    "我没有取消会议。",
    "您已经设置过提醒了吗？",
    "如果需要，我可以帮你取消会议。",
    "你可以用 /提醒 来设置提醒。",
    "他已经取消了会议。",
    "我修改了第二个句子里的标点。",
    "I have looked up the opening hours.",
    "The flight can be cancelled within a day.",
    "Ich habe nichts verändert.",
    "Soll ich eine Erinnerung setzen?",
    "Ich habe zwei Hotels gefunden.",
    "Der Zug fährt um neun.",
    "Diese Erinnerung konnte ich nicht finden.",
    "I stopped.",
    "The transfer was declined.",
    "According to the log, the poll has been closed.",
    "Das Restaurant wurde 1952 gegründet und zweimal renoviert.",
    "Laut Protokoll wurde die Umfrage beendet.",
    "Gern geschehen!",
    "澳大利亚的首都是堪培拉。",
    "根据记录，会议已取消。",
]


@pytest.mark.parametrize("text", LIES)
def test_a_claim_is_noticed_when_nothing_was_done(text: str) -> None:
    assert unfounded(text, SPECS, [])


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_sentence_is_left_alone(text: str) -> None:
    assert unfounded(text, SPECS, []) == []


@pytest.mark.parametrize(
    "text",
    [
        "Sorry.",
        "I need the amount.",
        "Which city?",
        "Only admins may.",
        "That didn't work.",
        "It's not clear whether the mail went out.",
        "Das hat leider nicht geklappt.",
        "Nur Admins dürfen das.",
        "Entschuldigung!",
        "Welche Datei soll ich löschen?",
        "抱歉。",
        "只有管理员可以这样做。",
        "没有成功。",
        "请告诉我日期。",
    ],
)
def test_an_answer_that_says_what_was_not_done_is_an_admission(text: str) -> None:
    assert admits(text)


@pytest.mark.parametrize(
    "text",
    [
        "Don't worry, it's on its way!",
        "Sorry for the delay, here you go!",
        "No problem at all.",
        "All good. Anything else?",
        "Anything else?",
        "Kein Problem, alles klappt.",
        "Sonst noch etwas?",
        "没有问题！",
        "还有别的吗？",
        "Well.",
    ],
)
def test_a_cheerful_answer_is_no_admission(text: str) -> None:
    assert not admits(text)


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("I've added milk to your list.", ADDED),
        ("Added milk to the to-do list.", ADDED),
        ("Your entry has been saved.", ADDED),
        ("Done!", ADDED),
        ("Milk is on the list; I have put it there.", ADDED),
        ("我已经把牛奶加到待办清单了。", ADDED_CHINESE),
        ("搞定了！", ADDED_CHINESE),
        ("I'll remind you at five.", Act(REMIND, {"at": "17:00"})),
        ("Bob has been banned.", Act(BAN, {"member": "Bob"})),
        ("我已经设置了提醒。", Act(a_function("alarm", "Wake somebody"), {})),
    ],
)
def test_a_claim_is_borne_out_by_what_was_done(text: str, act: Act) -> None:
    assert unfounded(text, SPECS, [act]) == []


@pytest.mark.parametrize(
    "text",
    [
        "I've added milk to your list. I've also set a reminder for 5 pm.",
        "I've added milk to your list and set a reminder for 5 pm.",
        "I've added milk to your list, and I'll remind you at five.",
        "Milk is on the list, and Bob has been banned.",
        "I have banned Bob.",
    ],
)
def test_more_than_was_done_is_noticed_beside_what_was(text: str) -> None:
    assert unfounded(text, SPECS, [ADDED])


def test_more_than_was_done_is_noticed_in_chinese() -> None:
    assert unfounded("我已经把牛奶加到待办清单了，还设置了提醒。", SPECS, [ADDED_CHINESE])


def test_what_was_read_may_be_reported_in_the_passive_and_not_in_the_first_person() -> None:
    assert unfounded("The poll has been closed.", SPECS, [], has_read=True) == []
    assert unfounded("I have closed the poll.", SPECS, [], has_read=True)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Sure! I've set a reminder for 5 pm. Anything else?", "Sure! (no) Anything else?"),
        ("I've set a reminder. I'll remind you at five.", "(no)"),
        ("It rains.\nI've set a reminder.\nBye.", "It rains.\n(no)\nBye."),
        ("好的。我已经设置了提醒。还有别的吗？", "好的。(no)还有别的吗？"),
    ],
)
def test_only_what_is_not_true_is_replaced(text: str, left: str) -> None:
    assert corrected(text, unfounded(text, SPECS, []), "(no)") == left


@given(st.text(alphabet="I 've added the a reminder,and.!?我已经把设置提醒了，。\"“”`>\n", max_size=200))
def test_a_correction_is_where_the_claim_was(text: str) -> None:
    claims = unfounded(text, SPECS, [])
    assert all(0 <= claim.start < claim.end <= len(text) for claim in claims)
    assert not claims or "(no)" in corrected(text, claims, "(no)")


@pytest.mark.parametrize("text", [",", "我把", "I have ", "it has now ", "a, and ", "我已", '"', "the "])
def test_a_very_long_sentence_is_judged_at_once(text: str) -> None:
    began = process_time()
    unfounded("added 设置 " + text * 20_000, SPECS, [])
    assert process_time() - began < 2
