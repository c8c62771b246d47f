"""Words of Chinese, German, Spanish and French for the subjects of the built-in functions, with the English terms that
function definitions use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from services.text_index import STOP_WORDS, is_unspaced, listed, terms

_TABLE = """
remind reminder: 提醒 叫我 闹钟 记得 别忘 | erinner- weck- merk- gedenk- | recuerd- recorda- recorde- avisa- avise-
    alarma- despiert- olvid- | rappel- previens prevenir alarme- reveil- oubli-
snooze reminder: 再提醒 再叫 稍后 推迟 过一会 先等等 再过 | schlummer- spater nochmal nochmals | pospon- pospong-
    aplaz- posterg- | report- repouss- retard- snooz-
remove delete: 删 删除 删掉 取消 去掉 移除 清空 不要了 不用了 划掉 | losch- entfern- streich- weg wegmach- storniere-
    abbestell- nimm | borr- elimin- quit- suprim- cancel- retir- necesito | supprim- efface- enlev- retir- annul-
    besoin
change update: 改 改成 修改 改到 提前 改写 更改 | ander- verschieb- umbenenn- benenn- statt bearbeit- verleg-
    korrigier- | cambi- modific- muev- mover edit- renombr- corrig- | chang- modifi- deplac- renomm- corrig- decal-
show list: 看看 看下 查看 有哪些 列出 显示 还有什么 有什么 | zeig- welch- list- nenn- anzeig- | muestr- mostra- cual-
    que ver lista- ensen- | montr- affich- quel- list- voir
all every: 所有 全部 都 清空 | alle alles allen samtlich- | todo- todas tod- | tous tout- toute- totalite
add put: 加 加上 添加 记 记一条 新增 放 | setz- hinzu- neu- notier- schreib- erganz- | anad- agreg- apunt- anot- pon
    pong- nueva | ajout- mets mettre not- inscri- nouvell-
todo list task: 清单 待办 任务 列表 事项 要做 没做 | aufgab- list- eintrag- todo- erledig- einkauf- | tarea- list-
    pendiente- hacer entrada- | tach- list- entree- faire courses
done finished tick: 完成 做完 做好 买好 勾掉 搞定 办完 | erledig- abhak- hak fertig gekauft abgeschlossen | hech-
    termin- complet- compr- march- marca- list- | fini- termin- coch- achet- fait faite
poll vote: 投票 投 表决 | umfrag- abstimm- stimm- wahl- gewahlt | encuest- vot- votacion- sonde- | sondag- vot-
    scrutin- vote-
poll results: 结果 情况 多少票 领先 | ergebnis- steht stand gewinn- vorn | resultad- va gana- | resultat- en-est gagn-
    ou
close poll end: 到此为止 关了 结束 截止 关闭 停止 | beend- schliess- schluss | cierr- cerra- termin- acab- | ferm-
    termin- clotur- arret-
start create make: 发起 建 创建 开始 开个 | start- erstell- eroffn- mach- | haz abre crea- inici- lanz- empiez- |
    lanc- cree- ouvr- demarr- fais
schedule automatically: 定时 自动 每天 每周 每个 定期 | zeitplan- geplant- plan- automatisch- jeden jede jedes taglich
    wochentlich | program- automatic- cada todos diari- seman- | programm- planific- planifi- automat- chaque tous
    quotidien- hebdomadair-
post run function in this chat: 发 发送 播 运行 | schick- send- poste- lass laufen | public- envi- ejecut- manda- |
    publi- envoi- execut- poste-
pause schedule: 暂停 停一下 先停 | pausier- anhalt- halt- stopp- unterbrech- | paus- deten- suspend- par- | pause
    suspen- arret- interromp-
resume schedule: 恢复 继续 接着 | fortsetz- fort weiterlauf- weiter- wieder | reanud- continu- sig- retom- | repren-
    relanc- continu- redemarr-
weather forecast temperature: 天气 下雨 多少度 气温 伞 下雪 冷 热 | wetter- regen- schirm- warm- kalt schnei- sonn-
    temperatur- grad | tiempo clima llov- lluv- paragua- temperatur- calor frio nieve nevar | meteo- temps pluie
    pleuv- parapluie- temperatur- chaud froid neig-
time clock: 几点 时间 钟 | uhr uhrzeit spat zeit | hora- reloj | heure- horloge
what time is it: 几点 几点钟 | spat | hora | heure
convert time zone: 换成 换算 | rechne umrechn- ist | convier- convert- si | conver- fait
date day today: 几号 星期几 日期 周几 今天是 礼拜几 | datum tag wochentag heute welcher | fecha dia hoy | date jour
    aujourd
time zone: 时区 | zeitzone- | zona huso- horari- | fuseau- horaire-
set save: 设 改一下 记的 | stell- speicher- setz- | pon guard- configur- tienes | mets regl- enregistr- as
calculate arithmetic expression: 等于 除以 乘 乘以 加 减 平分 百分之 计算 算 每人 | wieviel rechne mal prozent geteilt
    plus minus summe wurzel | cuant- calcul- por ciento dividid- suma- resta- | combien calcul- fois divis- pourcent-
    font somme
how much is: 多少 | viel | cuanto | combien
unit convert units: 公斤 磅 英里 公里 华氏 摄氏 英寸 厘米 换成 换算 升 英尺 斤 | meile- kilometer- pfund grad celsius
    fahrenheit umrechn- liter zoll unze- | milla- kilometr- libra- kilo- grado- centigrad- fahrenheit convier- pasa-
    litro- pulgada- onza- | mille- kilometr- livre- kilo- degre- celsius fahrenheit conver- litre- pouce- once-
roll dice: 骰子 掷 色子 摇 | wurf- wirf wurfel- | dado- tira- lanza- | des de jett- lanc- face-
flip coin heads tails: 硬币 正面 反面 抛 | munz- kopf zahl | moneda- cara cruz | piece pile face
pick one option random choose: 挑 选 抽 随便 随机 | wahl- such- aus zufall- entscheid- oder | elig- elij- escog- azar
    sorte- decid- | chois- sort hasard tir- decid-
help what can you do commands: 帮助 会什么 会些什么 命令 功能 能做 指令 怎么用 | hilf- befehl- kannst | ayud- comando-
    sabes puedes | aide- commande- sais peux
why did you not answer: 为什么 为啥 没理 不回 没回 不理 | warum wieso weshalb reagier- geantwortet antwort- | porque
    contest- respond- callad- ignor- | pourquoi repond- ignor-
news headlines: 新闻 头条 大事 资讯 | nachricht- schlagzeil- neues news | noticia- titular- novedad- | actualit-
    nouvelle- titre- info-
search the web online internet: 搜 搜搜 搜索 上网 查一下 查查 网上 | such- google- internet netz recherch- | busc-
    internet web averigu- | cherch- internet ligne web recherch- trouv-
summary summarize miss chat: 总结 概括 错过 聊了什么 讨论 | zusammenfass- fass zusammen verpass- diskussion- | resum-
    perdid- conversacion- | resum- manqu- rate discussion-
clear forget message history of this chat: 聊天记录 忘掉 清掉 说过的 | verlauf- vergiss gruppe geschrieben |
    historial- olvida escrit- conversacion- | historique- oublie ecrit
list tools active chat: 工具 启用 开着 | werkzeug- tool- aktiv- | herramienta- activ- | outil- actif- activ-
members group who silent: 成员 谁 群里 | mitglied- wer schweig- | miembro- quien- | membre- qui
earlier later at: 提前 | fruher | antes | tot
"""
_FREQUENT = frozenset(
    listed("""
    der die das den dem des ein eine einen einem einer und oder ist sind war ich du er sie es wir ihr mich mir
    dich dir uns euch mein meine meinen dein nicht kein keine zu zum zur von vom mit auf fur aus bei nach um am im
    wie was wer wo wann welche welcher welches warum mal bitte noch schon auch nur jetzt heute morgen wird haben
    habe hast kann kannst alle el la los las un una unos unas y o de del al en con por para que como cuando donde
    quien cual es son esta estan hay mi mis tu tus su se me te lo le nos no si mas ya hoy manana ahora todos todas
    tengo tienes puedes quiero favor le les un une des du de et ou est sont dans sur avec pour par au aux que qui
    quoi quand comment combien quel quelle quels quelles je tu il elle on nous vous ils mon ma mes ton ta tes ce
    cet cette ces ne pas plus deja demain maintenant aujourd hui moi toi ca fait peux veux as ai
    """)
)
"""Frequent words of German, Spanish and French, without accents."""
_WORD = re.compile(r"[^\W\d_]+")
_SHORTEST_STEM = 3
_LONGEST_HAN = 4


def _is_english(words: Sequence[str]) -> bool:
    """Whether more of `words` are frequent in English than in the other languages with Latin letters."""
    english = sum(word in STOP_WORDS for word in words)
    return english > sum(word in _FREQUENT for word in words)


def english_terms(text: str, is_known: Callable[[str], bool]) -> list[str]:
    """English index terms of the subjects that the words of `text` name, without duplicates; empty for English texts.
    Chinese words that `is_known` accepts are found without a translation, and left out."""
    exact, stems = _table()
    found: dict[str, None] = {}
    words = _WORD.findall(_folded(text))
    if _is_english(words):
        return []
    for word in words:
        if is_unspaced(word):
            pieces = (word[at : at + size] for size in range(1, _LONGEST_HAN + 1) for at in range(len(word) - size + 1))
            for piece in pieces:
                if piece in exact and not is_known(piece):
                    found.update(exact[piece])
            continue
        found.update(exact.get(word, {}))
        for size in range(_SHORTEST_STEM, len(word) + 1):
            found.update(stems.get(word[:size], {}))
    return list(found)


def _folded(text: str) -> str:
    """`text` in lower case and without accents."""
    parts = unicodedata.normalize("NFKD", text.lower().replace("ß", "ss"))
    return "".join(one for one in parts if not unicodedata.combining(one))


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, dict[str, None]], dict[str, dict[str, None]]]:
    """English terms by word, and by the beginning of words."""
    exact: dict[str, dict[str, None]] = {}
    stems: dict[str, dict[str, None]] = {}
    for line in _TABLE.strip().replace("\n    ", " ").splitlines():
        english, _, words = line.partition(":")
        targets = dict.fromkeys(terms(english))
        for word in words.replace("|", " ").split():
            by_word = stems if word.endswith("-") else exact
            by_word.setdefault(word.removesuffix("-"), {}).update(targets)
    return exact, stems
