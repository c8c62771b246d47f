"""Places and their IANA time zones."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import cached_property

from services.clock import Clock
from services.patterns import lazy_pattern

US_STATES = {
    "America/New_York": "CT DC DE FL GA IN KY MA MD ME MI NC NH NJ NY OH PA RI SC VA VT WV",
    "America/Chicago": "AL AR IA IL KS LA MN MO MS ND NE OK SD TN TX WI",
    "America/Denver": "CO ID MT NM UT WY",
    "America/Phoenix": "AZ",
    "America/Los_Angeles": "CA NV OR WA",
    "America/Anchorage": "AK",
    "Pacific/Honolulu": "HI",
}
"""State codes by the zone of most of the state; used only after a comma (`Houston, TX`)."""

PLACES = """\
Europe/London | London, 伦敦, Manchester, 曼彻斯特, Birmingham, Liverpool, Edinburgh, 爱丁堡, Glasgow, Cardiff,
  Belfast, Leeds, Bristol, Oxford, 牛津, Cambridge, 剑桥, England, Scotland, Wales, Northern Ireland | United Kingdom,
  UK, Great Britain, Britain, GB, 英国
Europe/Dublin | Dublin, 都柏林, Cork, Galway | Ireland, IE, 爱尔兰
Europe/Lisbon | Lisbon, 里斯本, Porto, Lisboa | Portugal, 葡萄牙
Europe/Madrid | Madrid, 马德里, Barcelona, 巴塞罗那, Valencia, Seville, Sevilla, Bilbao, Malaga, Zaragoza | Spain, ES,
  西班牙
Atlantic/Canary | Canary Islands, Tenerife, Las Palmas, Gran Canaria
Atlantic/Azores | Azores, Ponta Delgada
Europe/Paris | Paris, 巴黎, Lyon, Marseille, 马赛, Nice, Toulouse, Bordeaux, Lille, Strasbourg, Nantes | France, FR,
  法国
Europe/Berlin | Berlin, 柏林, Munich, München, 慕尼黑, Hamburg, 汉堡, Frankfurt, 法兰克福, Cologne, Köln, Stuttgart,
  Düsseldorf, Leipzig, Dresden, Bremen, Hanover | Germany, Deutschland, DE, 德国
Europe/Vienna | Vienna, Wien, 维也纳, Salzburg, Graz, Innsbruck | Austria, AT, 奥地利
Europe/Zurich | Zurich, Zürich, 苏黎世, Geneva, 日内瓦, Basel, Bern, Lausanne | Switzerland, CH, 瑞士
Europe/Rome | Rome, Roma, 罗马, Milan, Milano, 米兰, Naples, Turin, Florence, 佛罗伦萨, Venice, 威尼斯, Bologna,
  Palermo | Italy, IT, 意大利
Europe/Vatican | Vatican, Vatican City, 梵蒂冈 | Holy See
Europe/Amsterdam | Amsterdam, 阿姆斯特丹, Rotterdam, The Hague, 海牙, Utrecht, Eindhoven | Netherlands, Holland, NL,
  荷兰
Europe/Brussels | Brussels, 布鲁塞尔, Antwerp, Ghent, Bruges | Belgium, BE, 比利时
Europe/Luxembourg | Luxembourg, 卢森堡 | LU
Europe/Copenhagen | Copenhagen, København, 哥本哈根, Aarhus | Denmark, DK, 丹麦
Europe/Oslo | Oslo, 奥斯陆, Bergen, Trondheim, Stavanger, Tromsø, Tromso | Norway, NO, 挪威
Europe/Stockholm | Stockholm, 斯德哥尔摩, Gothenburg, Göteborg, Malmö, Malmo, Uppsala | Sweden, SE, 瑞典
Europe/Helsinki | Helsinki, 赫尔辛基, Tampere, Turku, Espoo | Finland, FI, 芬兰
Atlantic/Reykjavik | Reykjavik, 雷克雅未克 | Iceland, 冰岛
Europe/Tallinn | Tallinn, Tartu | Estonia, EE, 爱沙尼亚
Europe/Riga | Riga | Latvia, LV, 拉脱维亚
Europe/Vilnius | Vilnius, Kaunas | Lithuania, LT, 立陶宛
Europe/Warsaw | Warsaw, Warszawa, 华沙, Krakow, Kraków, Gdansk, Wroclaw, Poznan, Lodz | Poland, PL, 波兰
Europe/Prague | Prague, Praha, 布拉格, Brno | Czech Republic, Czechia, CZ, 捷克
Europe/Bratislava | Bratislava | Slovakia, SK, 斯洛伐克
Europe/Budapest | Budapest, 布达佩斯 | Hungary, HU, 匈牙利
Europe/Ljubljana | Ljubljana | Slovenia, 斯洛文尼亚
Europe/Zagreb | Zagreb, Split, Dubrovnik | Croatia, HR, 克罗地亚
Europe/Belgrade | Belgrade, 贝尔格莱德, Novi Sad | Serbia, RS, 塞尔维亚
Europe/Sarajevo | Sarajevo | Bosnia, Bosnia and Herzegovina
Europe/Skopje | Skopje | North Macedonia, Macedonia
Europe/Podgorica | Podgorica | Montenegro
Europe/Tirane | Tirana | Albania, 阿尔巴尼亚
Europe/Athens | Athens, 雅典, Thessaloniki, Crete | Greece, GR, 希腊
Europe/Sofia | Sofia, Plovdiv, Varna | Bulgaria, BG, 保加利亚
Europe/Bucharest | Bucharest, 布加勒斯特, Cluj, Timisoara | Romania, RO, 罗马尼亚
Europe/Chisinau | Chisinau | Moldova
Europe/Kyiv | Kyiv, Kiev, 基辅, Lviv, Odesa, Odessa, Kharkiv | Ukraine, UA, 乌克兰
Europe/Minsk | Minsk | Belarus, BY, 白俄罗斯
Europe/Istanbul | Istanbul, 伊斯坦布尔, Ankara, 安卡拉, Izmir, Antalya | Turkey, Türkiye, TR, 土耳其
Europe/Malta | Valletta | Malta, MT, 马耳他
Europe/Monaco | Monte Carlo | Monaco, 摩纳哥
Europe/Andorra | Andorra la Vella | Andorra
Asia/Nicosia | Nicosia, Limassol | Cyprus, CY, 塞浦路斯
Europe/Kaliningrad | Kaliningrad | Russia, RU, 俄罗斯
Europe/Moscow | Moscow, 莫斯科, Saint Petersburg, St Petersburg, St. Petersburg, 圣彼得堡, Kazan, Sochi, Nizhny
  Novgorod | Russia, RU, 俄罗斯
Europe/Samara | Samara, Izhevsk | Russia, RU, 俄罗斯
Asia/Yekaterinburg | Yekaterinburg, Chelyabinsk, Ufa, Perm | Russia, RU, 俄罗斯
Asia/Omsk | Omsk | Russia, RU, 俄罗斯
Asia/Novosibirsk | Novosibirsk, Krasnoyarsk, 新西伯利亚 | Russia, RU, 俄罗斯
Asia/Irkutsk | Irkutsk | Russia, RU, 俄罗斯
Asia/Yakutsk | Yakutsk | Russia, RU, 俄罗斯
Asia/Vladivostok | Vladivostok, Khabarovsk, 海参崴, 符拉迪沃斯托克 | Russia, RU, 俄罗斯
Asia/Kamchatka | Petropavlovsk-Kamchatsky, Kamchatka | Russia, RU, 俄罗斯
Asia/Shanghai | Beijing, 北京, Peking, Shanghai, 上海, Guangzhou, 广州, Shenzhen, 深圳, Chengdu, 成都, Hangzhou, 杭州,
  Nanjing, 南京, Wuhan, 武汉, Xi'an, Xian, 西安, Chongqing, 重庆, Tianjin, 天津, Suzhou, 苏州, Qingdao, 青岛, Xiamen,
  厦门, Kunming, 昆明, Shenyang, 沈阳, Harbin, 哈尔滨, Dalian, 大连, Changsha, 长沙, Zhengzhou, 郑州, Jinan, 济南 |
  China, PRC, CN, 中国
Asia/Urumqi | Urumqi, 乌鲁木齐, Xinjiang, 新疆
Asia/Hong_Kong | Hong Kong, 香港, Hongkong | HK
Asia/Macau | Macau, Macao, 澳门 | MO
Asia/Taipei | Taipei, 台北, Kaohsiung, 高雄, Taichung, 台中 | Taiwan, TW, 台湾
Asia/Tokyo | Tokyo, 东京, Osaka, 大阪, Kyoto, 京都, Nagoya, 名古屋, Sapporo, 札幌, Yokohama, 横滨, Fukuoka, 福冈,
  Kobe, 神户, Hiroshima, Okinawa, 冲绳 | Japan, JP, 日本
Asia/Seoul | Seoul, 首尔, Busan, 釜山, Incheon, Daegu | South Korea, Korea, KR, 韩国
Asia/Pyongyang | Pyongyang, 平壤 | North Korea, 朝鲜
Asia/Ulaanbaatar | Ulaanbaatar, 乌兰巴托 | Mongolia, MN, 蒙古
Asia/Singapore | Singapore, 新加坡 | SG
Asia/Kuala_Lumpur | Kuala Lumpur, 吉隆坡, Penang, 槟城, Johor Bahru | Malaysia, MY, 马来西亚
Asia/Jakarta | Jakarta, 雅加达, Bandung, Surabaya, Yogyakarta | Indonesia, ID, 印度尼西亚, 印尼
Asia/Makassar | Makassar, Bali, Denpasar, 巴厘岛 | Indonesia, ID, 印度尼西亚, 印尼
Asia/Jayapura | Jayapura | Indonesia, ID, 印度尼西亚, 印尼
Asia/Manila | Manila, 马尼拉, Cebu, Davao, Quezon City | Philippines, PH, 菲律宾
Asia/Bangkok | Bangkok, 曼谷, Chiang Mai, 清迈, Phuket, 普吉岛, Pattaya | Thailand, TH, 泰国
Asia/Ho_Chi_Minh | Ho Chi Minh City, Ho Chi Minh, 胡志明市, Saigon, Hanoi, 河内, Da Nang | Vietnam, Viet Nam, VN, 越南
Asia/Phnom_Penh | Phnom Penh, 金边, Siem Reap | Cambodia, KH, 柬埔寨
Asia/Vientiane | Vientiane | Laos, 老挝
Asia/Yangon | Yangon, 仰光, Rangoon, Mandalay, Naypyidaw | Myanmar, Burma, MM, 缅甸
Asia/Brunei | Bandar Seri Begawan | Brunei, 文莱
Asia/Dili | Dili | East Timor, Timor-Leste
Asia/Kolkata | New Delhi, Delhi, 新德里, 德里, Mumbai, Bombay, 孟买, Bangalore, Bengaluru, 班加罗尔, Kolkata,
  Calcutta, Chennai, Madras, Hyderabad, Pune, Ahmedabad, Jaipur, Goa | India, IN, 印度
Asia/Karachi | Karachi, 卡拉奇, Lahore, Islamabad, 伊斯兰堡 | Pakistan, PK, 巴基斯坦
Asia/Dhaka | Dhaka, 达卡, Chittagong | Bangladesh, BD, 孟加拉国
Asia/Kathmandu | Kathmandu, 加德满都 | Nepal, NP, 尼泊尔
Asia/Colombo | Colombo, 科伦坡 | Sri Lanka, LK, 斯里兰卡
Asia/Thimphu | Thimphu | Bhutan, 不丹
Indian/Maldives | Male, Malé | Maldives, 马尔代夫
Asia/Kabul | Kabul, 喀布尔 | Afghanistan, AF, 阿富汗
Asia/Tehran | Tehran, 德黑兰, Isfahan, Shiraz | Iran, IR, 伊朗
Asia/Baghdad | Baghdad, 巴格达, Basra, Erbil | Iraq, IQ, 伊拉克
Asia/Riyadh | Riyadh, 利雅得, Jeddah, Mecca, 麦加, Medina | Saudi Arabia, SA, KSA, 沙特阿拉伯, 沙特
Asia/Dubai | Dubai, 迪拜, Abu Dhabi, 阿布扎比, Sharjah | United Arab Emirates, UAE, AE, 阿联酋
Asia/Qatar | Doha, 多哈 | Qatar, QA, 卡塔尔
Asia/Kuwait | Kuwait City | Kuwait, KW, 科威特
Asia/Bahrain | Manama | Bahrain, BH, 巴林
Asia/Muscat | Muscat | Oman, OM, 阿曼
Asia/Aden | Sanaa, Aden | Yemen, 也门
Asia/Amman | Amman | Jordan, JO, 约旦
Asia/Beirut | Beirut, 贝鲁特 | Lebanon, LB, 黎巴嫩
Asia/Damascus | Damascus, 大马士革, Aleppo | Syria, SY, 叙利亚
Asia/Jerusalem | Jerusalem, 耶路撒冷, Tel Aviv, 特拉维夫, Haifa | Israel, IL, 以色列
Asia/Gaza | Gaza, Ramallah | Palestine, 巴勒斯坦
Asia/Tbilisi | Tbilisi | Georgia, GE, 格鲁吉亚
Asia/Yerevan | Yerevan | Armenia, AM, 亚美尼亚
Asia/Baku | Baku | Azerbaijan, AZ, 阿塞拜疆
Asia/Almaty | Almaty, Astana, 阿拉木图, 阿斯塔纳 | Kazakhstan, KZ, 哈萨克斯坦
Asia/Tashkent | Tashkent, 塔什干, Samarkand | Uzbekistan, UZ, 乌兹别克斯坦
Asia/Bishkek | Bishkek | Kyrgyzstan, 吉尔吉斯斯坦
Asia/Dushanbe | Dushanbe | Tajikistan, 塔吉克斯坦
Asia/Ashgabat | Ashgabat | Turkmenistan, 土库曼斯坦
Africa/Cairo | Cairo, 开罗, Alexandria, Giza, Luxor | Egypt, EG, 埃及
Africa/Tripoli | Tripoli | Libya, LY, 利比亚
Africa/Tunis | Tunis | Tunisia, TN, 突尼斯
Africa/Algiers | Algiers, Oran | Algeria, DZ, 阿尔及利亚
Africa/Casablanca | Casablanca, 卡萨布兰卡, Rabat, Marrakech, Marrakesh, Fez | Morocco, MA, 摩洛哥
Africa/Lagos | Lagos, 拉各斯, Abuja, Kano, Ibadan | Nigeria, NG, 尼日利亚
Africa/Accra | Accra, Kumasi | Ghana, GH, 加纳
Africa/Abidjan | Abidjan | Ivory Coast, Côte d'Ivoire, 科特迪瓦
Africa/Dakar | Dakar | Senegal, SN, 塞内加尔
Africa/Bamako | Bamako | Mali, 马里
Africa/Douala | Douala, Yaounde | Cameroon, 喀麦隆
Africa/Kinshasa | Kinshasa | Democratic Republic of the Congo, DR Congo, DRC, 刚果
Africa/Lubumbashi | Lubumbashi | Democratic Republic of the Congo, DR Congo, DRC, 刚果
Africa/Luanda | Luanda | Angola, AO, 安哥拉
Africa/Khartoum | Khartoum | Sudan, 苏丹
Africa/Addis_Ababa | Addis Ababa, 亚的斯亚贝巴 | Ethiopia, 埃塞俄比亚
Africa/Mogadishu | Mogadishu | Somalia, 索马里
Africa/Nairobi | Nairobi, 内罗毕, Mombasa | Kenya, KE, 肯尼亚
Africa/Kampala | Kampala | Uganda, UG, 乌干达
Africa/Kigali | Kigali | Rwanda, RW, 卢旺达
Africa/Dar_es_Salaam | Dar es Salaam, Dodoma, Zanzibar | Tanzania, TZ, 坦桑尼亚
Africa/Lusaka | Lusaka | Zambia, 赞比亚
Africa/Harare | Harare | Zimbabwe, ZW, 津巴布韦
Africa/Maputo | Maputo | Mozambique, 莫桑比克
Africa/Gaborone | Gaborone | Botswana, 博茨瓦纳
Africa/Windhoek | Windhoek | Namibia, NA, 纳米比亚
Africa/Johannesburg | Johannesburg, 约翰内斯堡, Cape Town, 开普敦, Durban, Pretoria | South Africa, ZA, 南非
Indian/Antananarivo | Antananarivo | Madagascar, 马达加斯加
Indian/Mauritius | Port Louis | Mauritius, 毛里求斯
America/New_York | New York, New York City, NYC, 纽约, Washington, Washington DC, Washington D.C., DC, 华盛顿, Boston,
  波士顿, Philadelphia, 费城, Miami, 迈阿密, Atlanta, 亚特兰大, Orlando, Tampa, Charlotte, Pittsburgh, Cleveland,
  Cincinnati, Columbus, Buffalo, Baltimore, Jacksonville, Raleigh, Richmond, Savannah, Florida, Georgia, Connecticut,
  Delaware, Maine, Maryland, Massachusetts, New Hampshire, New Jersey, North Carolina, Ohio, Pennsylvania, Rhode
  Island, South Carolina, Vermont, Virginia, West Virginia, Eastern, Eastern Time, Eastern Standard Time, Eastern
  Daylight Time, EST, EDT, ET, 美东 | United States, United States of America, US, USA, U.S., U.S.A., America, 美国
America/Chicago | Chicago, 芝加哥, Houston, 休斯敦, 休斯顿, Dallas, 达拉斯, Austin, 奥斯汀, San Antonio, New Orleans,
  Minneapolis, Milwaukee, St. Louis, St Louis, Saint Louis, Kansas City, Nashville, Memphis, Oklahoma City, Omaha,
  Texas, Illinois, Wisconsin, Minnesota, Iowa, Missouri, Arkansas, Louisiana, Mississippi, Alabama, Oklahoma, Central
  Time, Central Standard Time, Central Daylight Time, Central, CDT, 美中 | United States, United States of America,
  US, USA, U.S., U.S.A., America, 美国
America/Denver | Denver, 丹佛, Salt Lake City, Albuquerque, Santa Fe, El Paso, Colorado, Utah, New Mexico, Wyoming,
  Montana, Mountain Time, Mountain Standard Time, Mountain Daylight Time, Mountain, MST, MDT | United States, United
  States of America, US, USA, U.S., U.S.A., America, 美国
America/Phoenix | Phoenix, 凤凰城, Tucson, Arizona | United States, United States of America, US, USA, U.S., U.S.A.,
  America, 美国
America/Los_Angeles | Los Angeles, LA, 洛杉矶, San Francisco, 旧金山, SF, Seattle, 西雅图, San Diego, 圣地亚哥, San
  Jose, Las Vegas, 拉斯维加斯, Portland, Sacramento, Oakland, Silicon Valley, 硅谷, California, 加州, Washington
  State, Nevada, Pacific, Pacific Time, Pacific Standard Time, Pacific Daylight Time, PST, PDT, PT, 美西 | United
  States, United States of America, US, USA, U.S., U.S.A., America, 美国
America/Anchorage | Anchorage, Fairbanks, Juneau, Alaska, AKST, AKDT | United States, United States of America, US,
  USA, U.S., U.S.A., America, 美国
Pacific/Honolulu | Honolulu, 檀香山, Hawaii, 夏威夷, Maui, HST | United States, United States of America, US, USA,
  U.S., U.S.A., America, 美国
America/Detroit | Detroit, 底特律, Michigan
America/Indiana/Indianapolis | Indianapolis, Indiana
America/Boise | Boise
America/Puerto_Rico | San Juan | Puerto Rico, PR, 波多黎各
America/St_Johns | St. John's, St Johns, Newfoundland, NST, NDT | Canada, CA, 加拿大
America/Halifax | Halifax, 哈利法克斯, Nova Scotia, Atlantic Time, ADT | Canada, CA, 加拿大
America/Toronto | Toronto, 多伦多, Ottawa, 渥太华, Montreal, Montréal, 蒙特利尔, Quebec, Quebec City, 魁北克,
  Hamilton, Ontario | Canada, CA, 加拿大
America/Winnipeg | Winnipeg, Manitoba | Canada, CA, 加拿大
America/Regina | Regina, Saskatoon, Saskatchewan | Canada, CA, 加拿大
America/Edmonton | Edmonton, Calgary, 卡尔加里, 埃德蒙顿, Alberta | Canada, CA, 加拿大
America/Vancouver | Vancouver, 温哥华, British Columbia | Canada, CA, 加拿大
America/Mexico_City | Mexico City, 墨西哥城, Guadalajara, Monterrey, Puebla | Mexico, MX, 墨西哥
America/Cancun | Cancun, Cancún, 坎昆 | Mexico, MX, 墨西哥
America/Tijuana | Tijuana | Mexico, MX, 墨西哥
America/Hermosillo | Hermosillo | Mexico, MX, 墨西哥
America/Guatemala | Guatemala City | Guatemala, GT, 危地马拉
America/Belize | Belmopan | Belize
America/El_Salvador | San Salvador | El Salvador, 萨尔瓦多
America/Tegucigalpa | Tegucigalpa | Honduras, 洪都拉斯
America/Managua | Managua | Nicaragua, 尼加拉瓜
America/Costa_Rica | San José | Costa Rica, CR, 哥斯达黎加
America/Panama | Panama City | Panama, 巴拿马
America/Havana | Havana, 哈瓦那 | Cuba, CU, 古巴
America/Jamaica | Kingston | Jamaica, JM, 牙买加
America/Port-au-Prince | Port-au-Prince | Haiti, 海地
America/Santo_Domingo | Santo Domingo, Punta Cana | Dominican Republic, 多米尼加
America/Nassau | Nassau | Bahamas, 巴哈马
America/Port_of_Spain | Port of Spain | Trinidad and Tobago, Trinidad
America/Bogota | Bogota, Bogotá, 波哥大, Medellin, Medellín, Cali, Cartagena | Colombia, CO, 哥伦比亚
America/Caracas | Caracas, 加拉加斯 | Venezuela, VE, 委内瑞拉
America/Guayaquil | Quito, 基多, Guayaquil | Ecuador, EC, 厄瓜多尔
Pacific/Galapagos | Galapagos
America/Lima | Lima, 利马, Cusco | Peru, PE, 秘鲁
America/La_Paz | La Paz, Santa Cruz | Bolivia, BO, 玻利维亚
America/Santiago | Santiago, Valparaiso | Chile, CL, 智利
Pacific/Easter | Easter Island
America/Argentina/Buenos_Aires | Buenos Aires, 布宜诺斯艾利斯, Cordoba, Rosario, Mendoza | Argentina, AR, 阿根廷
America/Montevideo | Montevideo | Uruguay, UY, 乌拉圭
America/Asuncion | Asuncion, Asunción | Paraguay, PY, 巴拉圭
America/Guyana | Georgetown | Guyana
America/Paramaribo | Paramaribo | Suriname
America/Noronha | Fernando de Noronha | Brazil, BR, 巴西
America/Sao_Paulo | São Paulo, Sao Paulo, 圣保罗, Rio de Janeiro, Rio, 里约热内卢, 里约, Brasilia, Brasília, 巴西利亚,
  Belo Horizonte, Porto Alegre, Curitiba, Salvador, Recife, Fortaleza, BRT | Brazil, BR, 巴西
America/Manaus | Manaus | Brazil, BR, 巴西
America/Rio_Branco | Rio Branco | Brazil, BR, 巴西
Australia/Perth | Perth, 珀斯, Western Australia, AWST | Australia, AU, 澳大利亚, 澳洲
Australia/Darwin | Darwin, Northern Territory | Australia, AU, 澳大利亚, 澳洲
Australia/Adelaide | Adelaide, 阿德莱德, South Australia, ACST, ACDT | Australia, AU, 澳大利亚, 澳洲
Australia/Brisbane | Brisbane, 布里斯班, Gold Coast, Queensland, Cairns | Australia, AU, 澳大利亚, 澳洲
Australia/Sydney | Sydney, 悉尼, Canberra, 堪培拉, Newcastle, New South Wales, AEST, AEDT | Australia, AU, 澳大利亚,
  澳洲
Australia/Melbourne | Melbourne, 墨尔本, Geelong
Australia/Hobart | Hobart, Tasmania
Pacific/Auckland | Auckland, 奥克兰, Wellington, 惠灵顿, Christchurch, 基督城, Queenstown, NZST, NZDT | New Zealand,
  NZ, 新西兰
Pacific/Chatham | Chatham Islands
Pacific/Fiji | Suva | Fiji, FJ, 斐济
Pacific/Port_Moresby | Port Moresby | Papua New Guinea, PNG
Pacific/Noumea | Noumea | New Caledonia
Pacific/Tahiti | Papeete, Tahiti | French Polynesia
Pacific/Apia | Apia | Samoa, 萨摩亚
Pacific/Tongatapu | Nuku'alofa | Tonga, 汤加
Pacific/Kiritimati | Kiritimati
Pacific/Guam | Hagåtña | Guam, 关岛
America/Nuuk | Nuuk | Greenland, GL, 格陵兰
Atlantic/Bermuda | Hamilton Bermuda | Bermuda, 百慕大
Atlantic/Cape_Verde | Praia | Cape Verde
UTC | UTC, GMT, Z, Zulu, Universal Time, Greenwich, 格林威治, 世界时
Europe/Paris | CET, CEST, MET, Central European Time, Central European Summer Time
Europe/Athens | EET, EEST, Eastern European Time
Europe/Lisbon | WET, WEST
Europe/Moscow | MSK
Asia/Tokyo | JST
Asia/Seoul | KST
Asia/Hong_Kong | HKT
Asia/Singapore | SGT
Asia/Manila | PHT
Asia/Jakarta | WIB
Asia/Karachi | PKT
Asia/Bangkok | ICT
Africa/Nairobi | EAT
Africa/Johannesburg | SAST
Africa/Maputo | CAT
Africa/Lagos | WAT
Asia/Kathmandu | NPT
Asia/Shanghai | CST
America/Chicago | CST
America/Havana | CST
Asia/Kolkata | IST
Europe/Dublin | IST
Asia/Jerusalem | IST
Europe/London | BST
America/Halifax | AST
Asia/Riyadh | AST
"""


_NOISE = lazy_pattern(
    r"^(?:the|in|at)\s+|\s*(?:'s|local)?\s*\b(?:time\s*zone|time|right now|now)$|[?？。.!]+$"
    r"|(?:时间|时区|现在)$|(?<=..)市$"
)
_OFFSET = lazy_pattern(r"(?:utc|gmt)?\s*([+-−])\s*(\d{1,2})(?::?([0-5]\d))?")
_CJK = lazy_pattern(r"[\u3400-\u9fff]")
_CHINESE_HOURS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_CLOCK = lazy_pattern(
    r"(?P<hour>\d{1,2})(?:[:：.h](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?\s*(?:o'?clock)?\s*(?P<half>[ap]\.?\s?m\.?)?"
)
_CHINESE_CLOCK = lazy_pattern(
    r"(?P<part>凌晨|早上|早晨|上午|中午|下午|傍晚|晚上)?\s*(?P<hour>\d{1,2}|十[一二]?|[零一二两三四五六七八九])\s*[点點时]"
    r"(?:钟|(?P<half>半)|(?P<quarter>[一三])刻|(?P<minute>[0-5]?\d)分?)?"
)
_DATE = lazy_pattern(r"(\d{4}-\d{2}-\d{2})[T\s]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Place name with its time zone, as found by Places."""

    name: str
    zone: tzinfo


class UnknownPlace(LookupError):
    """No place has this name; `similar` are known names close to it."""

    def __init__(self, name: str, similar: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.similar = tuple(similar)


class BadTime(ValueError):
    """The text is not a time of day that `Places.convert` understands."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The same instant as aware times in two places, as returned by Places.convert."""

    source: datetime
    target: datetime
    skipped: bool = False
    """The time falls into a gap of the source's clock; `source` is the time after the gap."""
    repeated: bool = False
    """The time occurs twice at the source; the first occurrence is used."""

    @property
    def days_later(self) -> int:
        """Difference between the target's and the source's date in days: -1, 0 or 1."""
        return (self.target.date() - self.source.date()).days


class Places:
    """Time zones of places, and conversion of times between them. Knows major cities, countries, US states, common
    abbreviations and all IANA zones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self, zone: tzinfo) -> datetime:
        """Current time in `zone`."""
        return self._clock.now().astimezone(zone)

    def find(self, text: str) -> tuple[Place, ...]:
        """Places that `text` may mean, ordered from east to west; several if it is ambiguous (a country with several
        zones, an abbreviation with several meanings). Case is ignored; UTC offsets such as `+2` are places, too. Raises
        UnknownPlace."""
        found = self.known(text)
        if not found:
            raise UnknownPlace(" ".join(text.split()), self._similar(_bare(text)))
        return found

    def known(self, text: str) -> tuple[Place, ...]:
        """Like `find`, but empty for unknown names, and fast enough for testing arbitrary words."""
        name = _bare(text)
        offset = _fixed_offset(name)
        if offset is not None:
            return (Place(zone_label(self.now(offset)), offset),)
        for spelling in (" ".join(text.split()).casefold(), name):
            entries = self._look_up(spelling)
            if entries:
                return self._places(spelling, entries)
        return ()

    def convert(self, text: str, source: tzinfo, target: tzinfo) -> Conversion:
        """Convert the wall time `text` at the source (`15:30`, `3 pm`, `noon`, `now`, `下午3点半`, or with a date as in
        `2026-03-29 02:30`) to the target; without a date it is today at the source. Raises BadTime."""
        now = self.now(source)
        if text.strip().casefold() in ("now", "right now", "现在", "此刻"):
            return Conversion(now, now.astimezone(target))
        wall = read_wall_time(text, now).replace(tzinfo=source)
        instant = wall.astimezone(UTC)
        shown = instant.astimezone(source)
        skipped = shown.replace(tzinfo=None) != wall.replace(tzinfo=None)
        repeated = not skipped and wall.replace(fold=1).utcoffset() != wall.utcoffset()
        return Conversion(shown, instant.astimezone(target), skipped, repeated)

    def _look_up(self, name: str) -> Mapping[str, str]:
        """Zone keys with display names for a folded name, in table order; empty if unknown."""
        found = self._names.get(name) or self._zone_names.get(name)
        if found:
            return found
        for head, tail in _splits(name):
            near = self._names.get(head) or self._zone_names.get(head) or {}
            wide = self._regions.get(tail.strip()) or self._names.get(tail) or {}
            both = {zone: shown for zone, shown in near.items() if zone in wide}
            if both or ("," in name and (near or wide)):
                return both or wide or near  # if they do not intersect, prefer the region: Paris, Texas
        return {}

    def _places(self, name: str, entries: Mapping[str, str]) -> tuple[Place, ...]:
        if len(entries) == 1:
            return tuple(Place(shown, zoneinfo.ZoneInfo(zone)) for zone, shown in entries.items())
        chinese = bool(_CJK.search(name))
        places = [Place(self._shown_name(zone, chinese=chinese), zoneinfo.ZoneInfo(zone)) for zone in entries]
        return tuple(sorted(places, key=lambda place: self.now(place.zone).utcoffset() or timedelta(), reverse=True))

    def _shown_name(self, zone: str, *, chinese: bool) -> str:
        names = self._cities.get(zone) or [zone.rsplit("/", 1)[-1].replace("_", " ")]
        return next((name for name in names if chinese and _CJK.search(name)), names[0])

    def _similar(self, name: str) -> Sequence[str]:
        close = get_close_matches(name, self._names, n=3, cutoff=0.75)
        return list(dict.fromkeys(next(iter(self._names[spelling].values())) for spelling in close))

    @cached_property
    def _names(self) -> Mapping[str, Mapping[str, str]]:
        """Map of case-folded names to zone keys with display names."""
        names: dict[str, dict[str, str]] = {}
        for zone, cities, countries in _entries():
            for name in (*cities, *countries):
                names.setdefault(name.casefold(), {})[zone] = name
        return names

    @cached_property
    def _cities(self) -> Mapping[str, Sequence[str]]:
        cities: dict[str, Sequence[str]] = {}
        for zone, names, _ in _entries():
            cities.setdefault(zone, names)
        return cities

    @cached_property
    def _regions(self) -> Mapping[str, Mapping[str, str]]:
        return {code.lower(): {zone: code} for zone, codes in US_STATES.items() for code in codes.split()}

    @cached_property
    def _zone_names(self) -> Mapping[str, Mapping[str, str]]:
        """IANA keys and their cities. Zones that end in the same city are aliases, so the first is enough."""
        names: dict[str, dict[str, str]] = {}
        for zone in sorted(zoneinfo.available_timezones()):
            names[zone.casefold()] = {zone: zone}
            if "/" in zone and not zone.startswith("Etc/"):
                city = zone.rsplit("/", 1)[-1].replace("_", " ")
                names.setdefault(city.casefold(), {zone: city})
        return names


def zone_label(moment: datetime) -> str:
    """UTC offset of an aware time as text: `UTC`, `UTC+8`, `UTC-3:30`."""
    minutes = round((moment.utcoffset() or timedelta()).total_seconds() / 60)
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}" + (f":{rest:02}" if rest else "")


def read_wall_time(text: str, now: datetime) -> datetime:
    """Parse a naive wall time with an optional leading date, by default the day of `now`. Raises BadTime."""
    bare = text.strip().casefold().removeprefix("at ").strip()
    dated = _DATE.match(bare.upper())
    try:
        day = datetime.fromisoformat(dated[1]).date() if dated else now.date()
        return datetime.combine(day, _clock_time(bare[dated.end() :] if dated else bare))
    except ValueError as error:
        raise BadTime(text) from error


def _clock_time(text: str) -> time:
    if text in ("noon", "midday", "正午", "中午"):
        return time(12)
    if text in ("midnight", "午夜"):
        return time(0)
    found = _CLOCK.fullmatch(text)
    if found:
        hour = int(found["hour"])
        if found["half"]:
            if not 1 <= hour <= 12:
                raise BadTime(text)
            hour = hour % 12 + (12 if found["half"].startswith("p") else 0)
        return time(hour, int(found["minute"] or 0), int(found["second"] or 0))
    found = _CHINESE_CLOCK.fullmatch(text)
    if not found:
        raise BadTime(text)
    return _chinese_time(found)


def _chinese_time(found: re.Match[str]) -> time:
    written = "两" if found["hour"] == "二" else found["hour"]
    hour = int(written) if written.isdigit() else _CHINESE_HOURS.index(written)
    part = found["part"] or ""
    if (part in ("下午", "傍晚", "晚上") and hour < 12) or (part == "中午" and hour < 11):
        hour += 12
    elif part in ("凌晨", "晚上") and hour == 12:
        hour = 0
    minute = 30 if found["half"] else int(found["minute"] or 0)
    if found["quarter"]:
        minute = 15 if found["quarter"] == "一" else 45
    return time(hour, minute)


def _entries() -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    for line in PLACES.replace("\n  ", " ").strip().splitlines():
        zone, *groups = (part.strip() for part in line.split("|"))
        cities, countries = (*groups, "")[:2]
        yield zone, _comma_list(cities), _comma_list(countries)


def _comma_list(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _bare(text: str) -> str:
    """Case-folded name without surrounding words (`in the … time zone`)."""
    name = " ".join(text.split()).casefold().strip()
    while (shorter := _NOISE.sub("", name).strip()) != name and shorter:
        name = shorter
    return name


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Possible splits of `name` into a town and its region, at the comma or at each space: `houston, tx`, `tokyo
    japan`."""
    if "," in name:
        head, _, tail = name.partition(",")
        yield head.strip(), tail.strip()
        return
    words = name.split()
    for count in range(len(words) - 1, 0, -1):
        yield " ".join(words[:count]), " ".join(words[count:])


def _fixed_offset(name: str) -> timezone | None:
    found = _OFFSET.fullmatch(name)
    if not found or int(found[2]) > 14:
        return None
    ahead = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(ahead if found[1] == "+" else -ahead)
