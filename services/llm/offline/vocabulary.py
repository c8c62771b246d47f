"""English and Chinese word lists: function words, synonyms and topics."""

from __future__ import annotations

from functools import lru_cache

from services.text_index import is_unspaced, listed, stem

_HAN_FILLERS = """
    一下 一下子 麻烦 帮我 帮忙 请帮 请问 可以 可不可以 能不能 能否 能帮 那个 这个 我们 咱们 给我 我想 我要 我想要 想要
    想 需要 我需要 我想知道 想知道 知道 目前 一点 一些 会不会 是不是 有没有 现在 的话
"""
"""Chinese words without a topic."""
FILLERS = frozenset(_HAN_FILLERS.split()) | frozenset(
    listed("""
    啦 哈 嘛 呗
    a an the this that these those some any my our your his her its their me you i we he she it they them is are
    am was were be been being do does did have has had having will would shall should can could may might must s m d
    t ll re ve to of in on at near around for from by with about as into than and so then there here just please
    kindly like going gonna now really actually quickly also too well already yet still ever only um uh ah oh hey hi
    quick hello ok okay yo 的 了 吗 呢 吧 啊 呀 么 请 帮 给 我 你 您 们 下 是 在 有 把 和 个 就 要 想 能 可 以 会 去
    来 得 地 那 这 嗯 哦 好
    """)
)
PREPOSITIONS = frozenset(listed("in at on of for from to by with into about near around 在 从 到 给"))
REQUESTS = frozenset(
    listed("""
    can could would will you i me we please kindly tell know need want like wanna gotta let lemme give have
    see find ask help to d ll s m would just go ahead and do if what's hey hi hello ok okay so well um right try
    able possible wondering
    麻烦 帮我 帮忙 请帮 请问 可以 可不可以 能不能 能否 给我 我想 我要 我想要 我想知道 想知道
    请 帮 我 给 你 您 能 可 以 想 要 知 道 告 诉 问 一 下 麻 烦
    """)
)
"""Words that introduce a request without its topic."""
ASSISTANTS = frozenset(listed("alexa siri cortana google bot robot"))
GREETINGS = frozenset(listed("hey hi hello yo ok okay alexa siri cortana bot robot please so well um"))
THANKS = frozenset(listed("thanks thank thx cheers 谢"))
QUESTION_WORDS = frozenset(
    listed("""
    what when who whom whose where why which how whats hows whens wheres whos
    """)
)
STATES = frozenset(listed("is are was were isn't has had does did really"))
"""Words that follow the subject of a statement."""
INVERTED = frozenset(
    listed("did do does is are was were am has have had should shall may might must can could will would")
)
"""Verbs that start a question."""
NEGATIONS = frozenset(listed("not never no dont doesnt didnt cannot cant wont without nothing 不 没 别 勿"))
DESTRUCTIVE = frozenset(
    listed(
        "delete remove erase cancel clear drop undo discard wipe reset trash scratch deactivate"
        " 删 除 清 移 撤 删除 清空"
    )
)
ACTIONS = DESTRUCTIVE | frozenset(
    listed("""
    add put append insert create make start begin open close end finish stop set change update edit move rename
    replace swap send post share play pause resume skip book order buy pay call text email schedule turn switch
    increase decrease lower raise roll flip toss throw convert translate calculate compute solve choose pick select
    vote mark check save store record 加 建 放 查 搜 找 播 发 设 改 订 买 打 掷 抛 扔 投 选 换 算 译 开 关 停
    """)
)

TIME_WORDS = frozenset(
    listed("""
    today tomorrow tonight yesterday now noon midnight morning afternoon evening night am pm oclock monday tuesday
    wednesday thursday friday saturday sunday weekday weekend mon tue tues wed thu thur thurs fri sat january
    february march april june july august september october november december jan feb mar apr jun jul aug sep sept
    oct nov dec second seconds minute minutes min mins hour hours hr hrs day days week weeks month months year years
    daily weekly hourly later soon currently presently ago dawn dusk sunrise sunset lunchtime
    """)
)
TIME_LINKS = frozenset(
    listed("""
    the next last this coming past in at on for from of after before until till by around about half quarter to an a
    every
    """)
)
"""Words that belong to a time only next to a time word or a number."""
HAN_TIMES = frozenset(
    listed("""
    今天 明天 后天 昨天 前天 大后天 今晚 明晚 今早 明早 现在 早上 上午 中午 下午 晚上 凌晨 傍晚 半夜 周末
    今年 明年 去年 年底 月底 星期 礼拜 周一 周二 周三 周四 周五 周六 周日 周天 下周 本周 这周 上周 下月 本月
    这个月 下个月 目前 当前 点钟 小时 分钟 秒钟 半小时 天后 天前 周后 月后 年后 分钟后 小时后 之后 以后
    """)
)
HAN_TIME_UNITS = frozenset("点分秒时日号月年周半刻")
HAN_NUMBERS = {
    "零": 0,
    "〇": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
HAN_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}

FRACTIONS = {"half": 0.5, "quarter": 0.25}
OPERATORS = frozenset(
    listed("""
    + - * / × ÷ ^ % ( ) = $ plus minus times divided multiplied over percent power squared cubed root square sqrt
    cube sum of off by the to and modulo mod x 加 减 乘 除 以 的 平 方 根 次
    """)
)


GROUPS: dict[str, str] = {
    "add": "add put append insert include place jot log enter stick",
    "remove": "remove delete erase clear drop cancel strike scratch cross wipe discard scrap bin trash ditch dump",
    "show": "show display list read view see open print repeat recite",
    "create": "create make start begin build set new open launch",
    "finish": "done finished complete completed finish tick accomplished",
    "close": "close end stop finish",
    "move": "move shift reschedule postpone delay push bump",
    "group": "group chat channel room conversation thread",
    "result": "result results outcome standing standings score tally state status",
    "ahead": "winning leading ahead lead",
    "latest": "latest recent newest current new",
    "left": "left open remaining pending outstanding unfinished",
    "choose": "choose pick select decide",
    "convert": "convert change turn translate conversion equals equal equivalent",
    "compute": "calculate compute solve evaluate figure math maths arithmetic calculation",
    "throw": "roll throw toss cast flip spin",
    "die": "die dice",
    "list": "list lists agenda",
    "task": "todo task tasks chore chores errand errands item items thing things entry entries",
    "poll": "poll vote survey ballot",
    "weather": "weather forecast climate conditions temperature rain raining rainy snow snowing snowy snowfall "
    "rainfall drizzle shower showers storm stormy thunderstorm wet dry hail blizzard precipitation sunny sun sunshine "
    "cloud clouds cloudy overcast fog foggy mist misty wind windy breezy humid humidity hurricane tornado hot cold "
    "warm cool chilly freezing hotter colder warmer cooler freeze frost icy heat",
    "outfit": "umbrella raincoat jacket coat sweater boots gloves scarf hat sunscreen sunglasses",
    "carry": "need take bring wear carry pack",
    "which": "what which",
    "how much": "how much many",
    "where": "in at near around for on",
    "whither": "to into in",
    "clock": "time clock hour",
    "zone": "timezone zone",
    "date": "date day weekday",
    "ability": "help assist commands abilities capabilities features functions skills answer",
    "say": "say tell speak",
    "movie": "movie film",
    "music": "music song songs track tune",
    "news": "news headlines",
    "remind": "remind reminder reminders reminding alert",
    "message": "message text note",
    "meaning": "mean meaning define definition",
    "person": "who whom someone person",
    "place": "place city town country area location",
    "cost": "price cost value worth",
    "shop": "buy purchase order",
    "talk": "chat conversation discussion talk talked discuss discussed",
    "summary": "summary summarise summarize recap sum",
    "look": "search find look lookup",
    "size": "big large size tall high long",
    "travel": "trip travel flight journey",
    "food": "food meal dish recipe",
}


_HAN_SYNONYMS = """\
提醒: 提个醒
闹钟: 闹铃
选择: 抉择
他们: 她们 他俩 你们
提醒事项: 提醒事项表
删除: 删掉 删了 删去 去掉 拿掉 移除 移掉 取消 清除 清掉 撤掉 撤销 划去 去除 剔除 消除 抹掉
清空: 全部删除 全删了 全删 都删了 全部取消 都取消
查看: 看看 看一下 看下 看一看 显示 列出 列一下 查一下 查查 查一查 查询 瞧瞧 查 检查 打开 读一下 念一下 展示 浏览
清单: 待办 待办事项 待办清单 任务 任务清单 任务列表 列表 事项 单子 代办 代办事项 待办列表 备忘录
天气: 天气预报 气温 温度 气候 天气情况 天气状况 天儿
下雨: 下雪 下大雨 下大雪 有雨 有雪 刮风 起风 起雾 打雷 暴雨 暴雪 降雨 降雪 台风 出太阳 晴天 阴天 下雾 大雨
带伞: 带把伞 雨伞 打伞 拿伞 带雨伞 带雨具 雨衣
冷不冷: 热不热 冷吗 热吗 多少度 几度 凉不凉 暖和吗 潮湿吗 湿度
新闻: 头条 资讯 时事 头条新闻 热点 要闻 快讯
投票: 表决 票选 投个票
骰子: 色子 筛子
硬币: 钢镚 钢镚儿
掷: 扔 抛 投掷 摇 丢 甩 翻
几点: 几点钟 什么时间 几点几分 时间是多少
星期几: 礼拜几 周几 星期数
几号: 多少号 几月几号 几月几日 几日 什么日期 哪一天 哪天 日期 什么日子
多少: 几多 是几 得几 得多少 是多少 等于多少 等于几
搜索: 搜一下 搜搜 搜一搜 百度 谷歌 找找
网上: 上网 在网上 网络上 互联网
总结: 概括 归纳 小结 摘要 汇总 概述 总结一下 梳理
聊: 聊了 聊的 聊天 说了 说的 讨论 讨论了 聊过 说过 聊聊 讲了 谈了
完成: 做完 搞定 办完 弄完 办好 做好 搞完 已完成 做完了 完成了 搞定了 办完了
改成: 改到 改为 换成 调到 挪到 推到 调成 调整到 延到 移到 提前到 换到 修改为 修改成 更改为 改 修改 更改
添加: 加上 加入 加个 加一个 新增 增加 记上 记一下 记下 添上 加到 加进 放进 写上 写进 列入 加一条 加 添 放到 创建 新建 建
群里: 群 这个群 大家 群聊
命令: 指令 功能 用法 说明
选: 挑 抽 选一个 挑一个 抽一个 选个 挑个 随机选 选出 任选
关闭: 关了 关掉 结束 截止 停止 终止
结果: 票数 几票 情况
划掉: 勾掉 打勾 打个勾 勾选 勾上
推迟: 延后 延迟 推后 延期 往后推
回答: 回复 回我 理我 回应
为什么: 为啥 为何 干嘛
什么: 啥
怎么样: 如何 咋样 怎样
定时任务: 自动任务 计划任务
暂停: 先停 停一下
继续: 恢复 重新开始
"""
"""Chinese words with the same meaning, per line; the first one is their stem."""


@lru_cache(maxsize=1)
def _han_stems() -> dict[str, str]:
    found: dict[str, str] = dict.fromkeys(_HAN_FILLERS.split(), "")
    for line in _HAN_SYNONYMS.splitlines():
        first, _, words = line.partition(": ")
        found |= dict.fromkeys((first, *words.split()), first)
    return found


LONGEST_HAN_WORD = 5


def han_stem(word: str) -> str | None:
    """The stem of a known Chinese word, empty for a function word; None for an unknown word."""
    return _han_stems().get(word)


@lru_cache(maxsize=1)
def _concepts_by_stem() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, words in GROUPS.items():
        for word in words.split():
            found.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


def concepts_of(word_stem: str) -> frozenset[str]:
    """Synonym groups of the word with this stem; empty for other words and for Chinese characters."""
    if is_unspaced(word_stem):
        return frozenset()
    return _concepts_by_stem().get(word_stem, frozenset())


_TOPICS = """\
weather: weather forecast rain rainy snow sunny storm wind humidity temperature climate umbrella degrees celsius hot
    cold warm chilly freezing cloud fog
air quality: air pollution pollen smog quality aqi emission carbon dust
time: time clock hour timezone moment now
calendar: calendar date schedule appointment agenda event day week month meeting holiday planner availability slot
reminder: remind reminder alarm alert notify notification timer countdown wake
task: task todo chore errand checklist project milestone deadline kanban backlog
note: note memo jot notebook journal diary
message: message text chat sms send inbox conversation reply messenger whatsapp telegram slack discord
mail: mail email inbox newsletter letter recipient subject
call: call phone telephone dial ring voicemail contact
contact: contact address people friend colleague phonebook acquaintance
news: news headline article journalism press breaking story report media newspaper
research: research paper study scholar academic journal publication citation thesis scientific science literature
    arxiv
search: search find lookup google query browse discover seek locate retrieve explore engine
web: web website site page url link internet online domain browser html www
site building: website builder landing hosting wordpress blog homepage template publish
seo: seo keyword ranking backlink traffic domain serp audit optimization visibility
summary: summary summarize summarise digest brief overview key takeaway condense recap shorten highlight gist
document: document pdf file doc report page text word paper scan contract form upload
spreadsheet: spreadsheet excel sheet csv table row column cell
presentation: presentation slide slideshow powerpoint deck
storage: storage cloud drive folder backup upload download archive file
translation: translate translation language english chinese french spanish german japanese korean foreign
    multilingual
language learning: vocabulary grammar pronunciation fluent language learn speak tutor phrase idiom
word: word definition meaning dictionary synonym thesaurus etymology spell spelling rhyme
writing: write writing draft essay article blog copy content edit proofread paragraph author compose rewrite
    paraphrase
proofreading: grammar proofread spelling plagiarism correct polish rewrite style
story: story novel fiction tale character plot narrative fantasy script scene
poetry: poem poetry poet verse rhyme lyric haiku
book: book novel library read reading author bestseller ebook chapter publisher literature
quote: quote quotation saying proverb wisdom motivational inspirational inspiration motivation
religion: bible religion quran scripture prayer god faith verse church spiritual islam christian christianity jesus
    hadith
astrology: astrology horoscope zodiac tarot fortune birth chart star divination fate psychic sign
philosophy: philosophy meditation mindfulness wisdom stoic spiritual mindful
joke: joke fun funny humor laugh comedy pun meme entertain amuse
game: game play player puzzle quiz trivia chess riddle adventure gaming console level score multiplayer rpg
chess: chess checkmate opening pawn rook board
sport: sport football soccer basketball baseball tennis team league match score player tournament nba nfl
    championship coach
lottery: lottery lotto jackpot draw gamble casino bet odds
fitness: fitness workout exercise gym training muscle strength cardio yoga run running routine athletic
diet: diet nutrition calorie protein vitamin healthy weight meal nutrient carb fat keto vegan vegetarian
health: health medical doctor symptom disease illness hospital patient clinic diagnosis treatment medicine condition
    care
medicine: medicine drug medication pharmacy prescription dose pill vaccine pharmaceutical trial
mental health: mental therapy anxiety depression stress counselling counseling emotion emotional wellbeing
    psychologist
sleep: sleep insomnia dream bed nap rest
skin: skin skincare beauty cosmetic makeup hair salon barber
food: food meal eat dish dinner lunch breakfast hungry snack taste cuisine delicious
recipe: recipe cook cooking ingredient bake kitchen chef dish meal cuisine
restaurant: restaurant dining dine cafe table menu reservation eatery cuisine food takeaway
drink: drink coffee tea wine beer cocktail bar beverage bartender juice
grocery: grocery supermarket ingredient produce food store basket
shopping: shop shopping buy purchase product store price item retail order cart sell merchant brand amazon
bargain: deal discount coupon cheap bargain offer sale promo voucher promotion saving cashback price
comparison: compare comparison versus difference alternative better best review rating
review: review rating feedback opinion recommendation comment testimonial star
gift: gift present birthday surprise wrap
fashion: fashion clothes clothing outfit wear dress shirt shoe style wardrobe apparel garment
jewel: jewel jewelry jewellery ring diamond necklace watch gold
parcel: parcel package delivery shipment shipping track tracking courier logistics freight
travel: travel trip vacation holiday tour tourist journey destination itinerary visit tourism sightseeing traveler
flight: flight airline airport plane fly airfare ticket departure arrival aviation aircraft
hotel: hotel accommodation stay room hostel lodging resort apartment booking night
train: train railway rail station metro subway ticket timetable
bus: bus coach transit transport public commute tram
car: car vehicle automobile drive auto driver mechanic garage motor tyre electric ev
rent: rent rental lease hire landlord tenant
taxi: taxi cab ride uber chauffeur
parking: parking park lot garage
route: route direction navigate navigation map way distance road traffic path shortest gps
place: place location city town country region area address nearby local near coordinates geographic geography
    latitude
map: map geography geographic location coordinates satellite earth
nature: nature park hike hiking trail outdoor camping mountain forest beach surf lake river
animal: animal pet dog cat bird species wildlife veterinary vet breed
plant: plant garden gardening flower tree crop seed soil
farm: farm agriculture crop livestock harvest farmer irrigation soil
environment: environment climate carbon sustainability sustainable emission green recycle footprint energy
energy: energy electricity power solar battery fuel gas charging utility
event: event concert ticket festival theater theatre performance venue happening party
music: music song artist album band playlist track listen melody singer lyric spotify tune audio
instrument: guitar piano chord instrument music drum violin note
film: film movie cinema actor director series tv television watch stream streaming netflix episode trailer
    anime
video: video youtube clip film watch stream transcript footage subtitle movie channel
audio: audio sound voice speech podcast listen recording microphone
speech: speech voice speak spoken transcribe transcription transcript dictation aloud
podcast: podcast episode host listen audio
image: image picture photo photograph visual illustration drawing art graphic draw paint icon gallery
art: art artist painting museum gallery sculpture exhibition artwork creative
design: design designer graphic logo layout template banner poster creative ui mockup font
color: color colour palette shade hue
diagram: diagram chart flowchart graph mindmap visualize visualise visualization plot mermaid uml
stock: stock share market ticker portfolio equity nasdaq dividend investor trading shareholder
investment: investment invest investor fund portfolio asset finance financial hedge trader return
crypto: crypto cryptocurrency bitcoin ethereum blockchain token coin nft wallet defi web3
currency: currency exchange money dollar euro yuan pound rate convert forex
bank: bank account balance transfer deposit withdraw withdrawal card credit debit payment
payment: payment pay invoice bill charge billing receipt transaction refund checkout
loan: loan mortgage credit interest debt borrow lender repayment installment
budget: budget expense spending saving cost money finance income expenditure
tax: tax vat deduction filing revenue
insurance: insurance policy premium coverage claim insurer
economy: economy economic inflation gdp unemployment macroeconomic indicator trade
property: property house home estate apartment realtor housing mortgage listing residential rent land
home: home house room furniture decor interior kitchen renovation living bedroom appliance
smart home: light lamp thermostat device appliance switch smart heating air conditioner curtain
work: job career employment work vacancy hire recruit recruitment resume cv candidate position salary interview
    employer
business: business company firm corporate enterprise startup entrepreneur organization industry corporation
startup: startup founder venture pitch idea investor entrepreneur innovation
marketing: marketing campaign advertise advertising advertisement ad brand audience promotion promote engagement
social: social post follower tweet twitter instagram facebook tiktok linkedin hashtag viral influencer reddit
sale: sale sell seller customer lead crm client prospect revenue
support: support assistance helpdesk ticket faq customer complaint troubleshoot service
form: form survey poll questionnaire vote response feedback answer
law: law legal lawyer attorney court contract regulation statute case judge compliance rights legislation lawsuit
patent: patent trademark invention copyright intellectual
government: government public policy congress senate bill politics political election parliament law minister vote
crime: crime police theft criminal offence fraud evidence forensic suspect
emergency: emergency earthquake disaster rescue evacuation flood fire hazard ambulance
school: school student class course teacher education lesson homework exam learn learning curriculum classroom grade
university: university college degree admission campus professor scholarship academic student
teaching: teach tutor lesson explain learn learning educational training course skill instruct teacher education
child: child kid children baby parent toddler preschool family boy girl parenting
quiz: quiz question exam test flashcard answer trivia practice
math: math mathematics add plus minus multiply divide subtract sum calculate calculation equation algebra geometry
    arithmetic compute solve formula number integral
statistics: statistics average mean median probability deviation distribution regression variance sample correlation
data: data dataset database analysis analytics analyze analyse insight statistic query record metric
database: database sql query table record schema postgres mysql row
code: code coding program programming developer software script python javascript function debug compile bug
    algorithm
repository: repository github git commit branch pull issue repo gitlab source
api: api endpoint integration webhook request http json sdk rest interface
automation: automate automation workflow trigger integrate integration bot action app process
server: server cloud hosting deploy deployment kubernetes docker container infrastructure instance cluster
network: network ip dns router connection bandwidth firewall wifi port ping host
security: security password encrypt encryption hack vulnerability cyber threat protect secure authentication malware
    phishing
privacy: privacy personal gdpr consent anonymous
ai: ai artificial intelligence model neural machine prompt gpt chatgpt llm chatbot assistant
prompt: prompt generate improve perfect
memory: memory remember recall context store history forget
physics: physics force velocity energy mass acceleration motion speed gravity particle
chemistry: chemistry chemical molecule compound element reaction acid molecular atom
biology: biology gene genetic dna cell protein species organism evolution
space: space planet star astronomy moon nasa satellite orbit galaxy mars rocket telescope
history: history historical ancient war century past heritage
culture: culture cultural tradition custom museum heritage
person: person biography people celebrity famous profile politician
family: family ancestor genealogy parent relative marriage wedding
dating: dating date love relationship partner romantic match romance
random: random dice roll coin flip pick shuffle chance draw
unit: unit convert conversion measure meter kilometer mile kilogram pound ounce inch foot feet liter gallon pint
    fahrenheit celsius length volume weight
qr: qr barcode code scan
statistic sport: standings ranking record season fixture roster
idea: idea brainstorm creative inspiration suggestion creativity concept
decision: decision choose option choice pros advice decide recommend suggestion
advice: advice tip guide guidance recommendation suggestion recommend suggest consultant coach
knowledge: knowledge fact encyclopedia wikipedia information question answer
trend: trend trending popular viral hot latest top
persona: character persona roleplay avatar companion personality role
create: create make generate build produce design craft construct develop
change: change update edit modify adjust alter set revise
remove: remove delete clear erase cancel drop discard unsubscribe
show: display view list see read fetch retrieve
check: check verify validate test inspect confirm status monitor
save: save store keep record bookmark
open: open start launch begin activate enable play run
stop: stop end close pause deactivate disable halt quit
plan: plan planning planner organize organise arrange prepare strategy goal
book a place: book booking reserve reservation seat table ticket room
track: track tracking monitor watch follow progress log habit
analyse: analyze analyse analysis evaluate assess examine assessment evaluation review study
predict: predict prediction forecast estimate outlook projection expected
天气: 天气 气温 下雨 预报 温度 下雪 气候 降雨 降水 风力 湿度
时间: 时间 几点 日期 星期 时区 日历 日程 安排 行程 会议 预约
提醒: 提醒 闹钟 通知 待办 任务 清单 备忘 计划
消息: 消息 短信 邮件 发送 电话 联系 微信 通讯
新闻: 新闻 资讯 头条 报道 媒体
查询: 查询 搜索 查找 检索 寻找 查看 了解 获取
翻译: 翻译 语言 英语 中文 外语 词典 词汇 语法
音乐: 音乐 歌曲 歌手 播放 专辑 歌单 演唱 乐器 旋律
影视: 电影 影片 电视 视频 节目 影院 导演 演员 剧集
图书: 图书 书籍 小说 阅读 作者 文学 文章 写作
餐饮: 餐厅 美食 菜谱 食谱 烹饪 做法 食材 菜肴 饮食 外卖 做菜 口味
健康: 健康 医院 医生 病症 症状 治疗 药物 用药 医疗 疾病 患者 护理 诊断
运动: 运动 健身 锻炼 跑步 训练 比赛 球队 体育
饮食: 营养 减肥 热量 膳食 体重 食物 饮食
旅行: 旅行 旅游 景点 酒店 机票 航班 火车 出行 行程 门票 游玩
交通: 交通 路线 导航 地图 公交 地铁 打车 停车 驾驶 汽车 车辆 道路
购物: 购物 购买 商品 价格 优惠 订单 快递 物流 产品 折扣 促销
金融: 股票 投资 基金 理财 银行 贷款 货币 汇率 金融 资产 财务 预算 账户
税务: 税收 税务 保险 发票 账单 支付 缴费 报销
房产: 房产 房屋 租房 公寓 装修 家居 家具 室内
工作: 工作 招聘 职位 求职 简历 面试 员工 公司 企业 职业
法律: 法律 合同 律师 法规 诉讼 政策 政府 专利
教育: 教育 学校 学习 课程 学生 考试 老师 教学 大学 培训 作业
计算: 计算 数学 统计 公式 方程 概率 数值
数据: 数据 分析 报告 图表 评估 统计 监测 预测
程序: 程序 代码 编程 软件 开发 网站 系统 网络 算法
安全: 安全 密码 加密 防护 风险 漏洞 隐私
设备: 设备 智能 灯光 空调 家电 开关 控制 开启
环境: 环境 污染 空气 生态 能源 节能 环保 水质 土壤
农业: 农业 庄稼 种植 作物 农场 养殖 园艺 植物
科学: 科学 物理 化学 生物 实验 研究 论文 天文
艺术: 艺术 绘画 设计 图片 照片 摄影 画作 文化 馆藏
历史: 历史 文化 传统 古代 文物 遗产
宠物: 宠物 动物 小狗 小猫 鸟类
孩子: 孩子 儿童 宝宝 母亲 父母 家庭 亲子 育儿
活动: 活动 演出 晚会 展览 聚会 节日 婚礼
营销: 营销 广告 品牌 推广 市场 客户 销售
"""


@lru_cache(maxsize=1)
def _topics_by_term() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in _TOPICS.replace("\n    ", " ").splitlines():
        name, _, words = line.partition(":")
        for word in words.split():
            found.setdefault(word if is_unspaced(word) else stem(word), {})[name] = None
    return {term: tuple(names) for term, names in found.items()}


def topics_of(term: str) -> tuple[str, ...]:
    """Topics of a term from `services.text_index.terms`. Empty for an unknown term."""
    return _topics_by_term().get(term, ())
