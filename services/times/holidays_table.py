"""Holidays and what people call them: one line for each, its spellings between bars, without apostrophes and `the`."""

from __future__ import annotations

FIXED = """
1-1 new year|new year day|new years|newyear|newyears day|new years day
1-6 epiphany|three kings day
1-14 thai pongal|pongal|makar sankranti|maghi
1-26 australia day|republic day
2-2 groundhog day|groundhogs day|candlemas
2-14 valentine day|valentines day|valentine|valentines|vday|v day
2-29 leap day
3-1 st david day|saint david day
3-8 women day|womens day|international women day|international womens day
3-14 pi day
3-17 st patrick day|saint patrick day|st patricks day|saint patricks day|st paddy day|st paddys day|paddy day
4-1 april fools|april fool|april fools day|april fool day|all fools day
4-22 earth day
4-23 st george day|saint george day|st georges day
4-25 anzac day
5-1 may day|mayday|international workers day|workers day
5-4 star wars day
5-5 cinco de mayo
6-14 flag day
6-19 juneteenth
6-24 st john day|saint john day|midsummer day
7-1 canada day
7-4 independence day|usa independence day|us independence day|fourth of july holiday
7-14 bastille day
8-15 assumption|assumption day|assumption of mary
8-26 women equality day|womens equality day
9-11 patriot day
10-16 boss day|bosses day|bosss day
10-31 halloween|hallowe'en|all hallows eve|halloween day
11-1 all saints day|all saints|all hallows day
11-2 all souls day|all souls
11-5 guy fawkes day|guy fawkes night|bonfire night
11-11 veterans day|veteran day|remembrance day|armistice day|singles day
12-6 st nicholas day|saint nicholas day
12-8 immaculate conception
12-24 christmas eve|xmas eve|xmas's eve
12-25 christmas|xmas|christmas day|xmas day|x mas
12-26 boxing day|st stephen day
12-31 new year eve|new years eve|nye|silvester|hogmanay
"""
"""Month and day."""
NTH = """
1 1 3 martin luther king day|martin luther king jr day|martin luther king|mlk day|mlk jr day|mlk|civil rights day
2 1 3 president day|presidents day|washington birthday|washingtons birthday
3 1 2 commonwealth day
5 6 3 armed forces day
5 7 2 mother day|mothers day
5 1 -1 memorial day|decoration day
6 7 3 father day|fathers day
7 7 -1 parents day|parent day|national parents day
9 1 1 labor day|labour day
10 1 2 columbus day|indigenous people day|indigenous peoples day|canadian thanksgiving
11 4 4 thanksgiving|thanksgiving day|us thanksgiving|turkey day
"""
"""Month, weekday (1 is Monday) and the how-manieth of them, from the end where negative."""
MOVED = """
thanksgiving 1 black friday
thanksgiving 2 small business saturday
thanksgiving 4 cyber monday
thanksgiving 5 giving tuesday
thanksgiving -1 thanksgiving eve
mother day -2 military spouse day|military spouse appreciation day
labor day 6 grandparents day|grandparent day|national grandparents day|national grandparent day
easter -52 fat thursday
easter -47 shrove tuesday|mardi gras|pancake day|fat tuesday|pancake tuesday
easter -46 ash wednesday
easter -7 palm sunday|branch sunday
easter -3 maundy thursday|holy thursday|covenant thursday|thursday of mysteries
easter -2 good friday|easter friday|great friday
easter -1 holy saturday|black saturday|easter eve|easter saturday
easter 1 easter monday|easter mon
easter 39 ascension day|ascension|holy ascension
easter 49 pentecost|whit sunday|whitsunday|white sunday
easter 50 whit monday|pentecost monday|monday of the holy spirit
easter 56 trinity sunday
easter 60 corpus christi|feast of corpus christi
orthodox easter -48 clean monday|orthodox shrove monday|ash monday
orthodox easter -8 lazarus saturday
orthodox easter -7 orthodox palm sunday|orthodox branch sunday
orthodox easter -2 orthodox good friday|orthodox great friday
orthodox easter -1 orthodox holy saturday
orthodox easter 1 orthodox easter monday
orthodox easter 49 orthodox pentecost
"""
"""Another holiday, and how many days later."""
HEBREW = """
7 1 0 rosh hashanah|rosh hashana|rosh ha shanah|jewish new year
7 10 0 yom kippur|day of atonement
7 15 0 sukkot|sukkoth|feast of tabernacles
7 22 0 shemini atzeret
7 23 0 simchat torah
9 25 -1 hanukkah|hanukah|chanukah|chanukkah|hannukah|hanukka|festival of lights jewish
11 15 -1 tu bishvat|tu b'shvat
1 15 -1 passover|pesach
2 18 -1 lag baomer|lag b'omer
3 6 -1 shavuot|feast of weeks
5 9 -1 tisha b'av|tisha bav
"""
"""Month (1 is Nisan) and day of the Hebrew calendar, and how many days later it is kept (from the evening before)."""
ISLAMIC = """
1 1 islamic new year|muharram|hijri new year
1 10 ashura|day of ashura
3 12 mawlid|mawlid al nabi|prophet birthday
7 27 isra and mi'raj|night journey
9 1 ramadan|ramadhan|ramzan
9 27 laylat al qadr|night of power|laylat al kadr
10 1 eid al fitr|eid ul fitr|id al fitr|id ul fitr|end of ramadan
12 10 eid al adha|eid ul adha|id al adha|id ul adha|feast of sacrifice|sacrifice feast|bakrid
"""
"""Month and day of the Islamic calendar."""
