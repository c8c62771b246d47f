"use strict";
// The chat page: a client of the web app's API. Whatever others wrote becomes text nodes, never markup.
(() => {
  const TEXTS = {
    en: {
      rooms: "Rooms", people: "People", newRoom: "Join or start a room", openRoom: "Open room", rename: "Rename", menu: "Rooms and people",
      close: "Close", helloTitle: "Who are you?", helloText: "The others see this name beside what you write.", yourName: "Your name", join: "Join",
      hints: "Suggestions", write: "Message", writeTo: "Message #{room}", send: "Send", reply: "Reply", replyingTo: "Replying to {name}", stopReply: "Do not reply",
      privateRoom: "You and {bot}", onlyYou: "only you see this", waiting: "waiting for the server", failed: "not sent: {why}",
      again: "Try again", discard: "Discard", offline: "No connection. What you write is kept and sent later.", joining: "Connecting…",
      newMessages: "{count} new messages", newMessage: "1 new message", today: "Today", yesterday: "Yesterday", you: "You", bot: "bot",
      owner: "owner", admin: "admin", moderator: "moderator", member: "member", ask: "Ask {bot}", earlier: "An earlier message", linkUsed: "This owner link was used already or is too old.",
      nameTaken: "That is the bot's name, or looks like it. Please take another one.", nameUnreadable: "Please take a name of 1 to 40 characters that can be seen.", tooMany: "Too many people are joining. Trying again…",
      welcomeTitle: "Say something to {bot}", welcomeText: "{bot} answers when you mention it, reply to it, or type a command. /help shows what it can do. Try one of these:",
      tryRemind: "@{bot} remind me in 20 minutes to check the oven", tryPick: "@{bot} choose between tea and coffee", tryHelp: "/help",
      privateTitle: "Your private chat with {bot}", privateText: "Only you see this chat, and {bot} answers every message: there is no need to mention it. Ask for reminders, to-do lists, sums, the weather and more. Try one of these:",
      tryDice: "roll two dice", tryReminder: "remind me in 10 minutes to take the pizza out",
      attach: "Attach files", removeFile: "Remove {name}", tooLarge: "Files of a message may have at most {limit} MB together.", tooManyFiles: "A message may have at most {count} files.", file: "File",
    },
    zh: {
      rooms: "房间", people: "成员", newRoom: "加入或新建房间", openRoom: "打开房间", rename: "改名", menu: "房间和成员",
      close: "关闭", helloTitle: "怎么称呼你？", helloText: "别人会在你的消息旁看到这个名字。", yourName: "你的名字", join: "进入",
      hints: "候选", write: "消息", writeTo: "发消息到 #{room}", send: "发送", reply: "回复", replyingTo: "回复 {name}", stopReply: "取消回复",
      privateRoom: "你和 {bot}", onlyYou: "仅你可见", waiting: "等待服务器", failed: "未发送：{why}",
      again: "重试", discard: "丢弃", offline: "连接已断开。你写的内容会保留，稍后自动发送。", joining: "正在连接…",
      newMessages: "{count} 条新消息", newMessage: "1 条新消息", today: "今天", yesterday: "昨天", you: "你", bot: "机器人",
      owner: "主人", admin: "管理员", moderator: "协管员", member: "成员", ask: "问 {bot}", earlier: "较早的消息", linkUsed: "这个主人链接已被使用或已过期。",
      nameTaken: "这是机器人的名字，或者和它太像，请换一个。", nameUnreadable: "请用 1 到 40 个看得见的字符作名字。", tooMany: "加入的人太多，正在重试…",
      welcomeTitle: "和 {bot} 说句话", welcomeText: "提到 {bot}、回复它，或输入命令，它就会回答。用 /帮助 看看它能做什么。试试：",
      tryRemind: "@{bot} 20分钟后提醒我关火", tryPick: "@{bot} 在茶、咖啡、水里选一个", tryHelp: "/帮助",
      privateTitle: "你和 {bot} 的私聊", privateText: "这里的消息只有你能看到，每条 {bot} 都会回答，不用提到它。可以让它设提醒、记待办、算数、查天气等等。试试：",
      tryDice: "掷两个骰子", tryReminder: "10分钟后提醒我把披萨拿出来",
      attach: "添加文件", removeFile: "移除 {name}", tooLarge: "一条消息的文件加起来最多 {limit} MB。", tooManyFiles: "一条消息最多 {count} 个文件。", file: "文件",
    },
  };
  const LANGUAGE = (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
  const HISTORY = 200, ROWS_KEPT = 600, MAX_WAIT_MS = 15000, JOIN_MS = 5 * 60 * 1000, STATUS_MS = 90000;
  const FILES_AT_MOST = 10, HIDDEN_MS = 30000, POLL_MS = 10000, ELSEWHERE_MS = 15000;

  const $ = (id) => document.getElementById(id);
  const say = (key, values = {}) => TEXTS[LANGUAGE][key].replace(/\{(\w+)\}/g, (_, name) => ({ bot: bot.name, ...values })[name]);
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    if (tag === "button") element.type = "button";
    return element;
  };
  const load = (storage, key, otherwise) => {
    try { return JSON.parse(storage.getItem(key)) ?? otherwise; } catch { return otherwise; }
  };
  const save = (storage, key, value) => {
    try { storage.setItem(key, JSON.stringify(value)); } catch { /* full or forbidden: this tab still has it in memory */ }
  };
  // crypto.randomUUID exists in secure contexts only, and plain http in a local network is none.
  const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  const AS = new URLSearchParams(location.search).get("as");
  let bot = { name: "Rollcall", aliases: [] };
  let shownRooms = [];
  let commands = [];
  let me = null; // {id, token, name, role}
  let room = null; // {id, title}
  let cursor = ""; // of the last event of this room
  let outbox = []; // what the server has not confirmed yet, of all rooms
  let replyTo = null; // {id, name, text}
  let unseen = 0;
  let sendsOnEntry = false; // Enter was pressed before there was a room: submit the text on entering it
  let uploadBytes = 0; // at most for the files of a message; 0: none are taken
  let picked = []; // files of the message that is being written: {name, type, size, data}
  const rows = new Map(); // message id -> {element, event}
  const people = new Map(); // member id -> name, latest speaker last

  // ---- the API -------------------------------------------------------------------------------------------------

  async function api(path, body, headers = {}) {
    const options = { headers: { ...headers }, cache: "no-store" };
    if (me) options.headers["X-Rollcall-Member"] = me.token;
    if (body !== undefined) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    const response = await fetch(path, options);
    const json = await response.json().catch(() => ({}));
    return { ok: response.ok, status: response.status, json, error: json.error ?? {} };
  }

  const chatPath = (id, rest) => `/api/v1/chats/${encodeURIComponent(id)}/${rest}`;

  async function patiently(attempt) {
    for (let wait = 500; ; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
      try {
        const answer = await attempt();
        if (answer.status < 500 && answer.status !== 429) { connected(true); return answer; }
        if (answer.status === 429) note(say("tooMany"));
      } catch { /* the server is away */ connected(false); }
      await pause(wait);
    }
  }

  // ---- who I am: one person for each tab -----------------------------------------------------------------------

  const tabKey = "rollcall.tab", meKey = AS === null ? "rollcall.me" : `rollcall.as.${AS}`;

  async function become(name) {
    const answer = await patiently(() => api("/api/v1/members", { name, fresh: AS !== null, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone }));
    if (!answer.ok) return { name_taken: say("nameTaken"), bad_request: say("nameUnreadable") }[answer.error.code] ?? answer.error.message;
    me = { ...answer.json, name, as: AS };
    remember();
    return "";
  }

  function remember() {
    save(sessionStorage, tabKey, me);
    // A tab under ?as= finds its person again after it was closed; the ordinary one has the cookie for that.
    save(localStorage, meKey, AS === null ? { name: me.name } : me);
    $("my-name").textContent = me.name;
    $("my-role").textContent = say(me.role === "owner" ? "owner" : "member");
    dress($("my-avatar"), me.id, me.name);
  }

  async function identify() {
    const ofTab = load(sessionStorage, tabKey, null), kept = load(localStorage, meKey, null);
    if (ofTab && ofTab.as === AS) { me = ofTab; remember(); return; }
    if (AS !== null && kept) { me = kept; remember(); return; }
    const name = (AS ?? kept?.name ?? "").trim().slice(0, 40);
    if (!name || await become(name)) await askName();
  }

  function askName() {
    const dialog = $("hello"), field = $("name"), problem = $("name-problem");
    field.value = me?.name ?? AS ?? "";
    problem.textContent = "";
    $("name-form").querySelector(".primary").textContent = say(me ? "rename" : "join");
    dialog.oncancel = (event) => { if (!me) event.preventDefault(); };
    dialog.showModal();
    field.focus();
    field.select();
    return new Promise((done) => {
      dialog.onclose = done;
      $("name-form").onsubmit = async (event) => {
        event.preventDefault();
        const name = field.value.trim();
        if (!name) return;
        problem.textContent = await become(name);
        if (!problem.textContent) dialog.close();
      };
    });
  }

  async function becomeOwner() {
    const address = new URL(location.href), token = address.searchParams.get("owner");
    if (!token) return;
    const answer = await patiently(() => api("/api/v1/owner", { token }));
    address.searchParams.delete("owner");
    history.replaceState(null, "", address);
    if (answer.ok) { me.role = answer.json.role; remember(); } else note(say("linkUsed"));
  }

  // The server does not know us any more (its key was replaced): join again, and take along what is unsent.
  let identifying = null;
  function identifyAgain() {
    const again = async () => {
      const oldKey = outboxKey();
      if (await become(me.name)) await askName();
      if (oldKey !== outboxKey()) { localStorage.removeItem(oldKey); saveOutbox(); showRooms(); }
      if (stream) connect();
    };
    identifying ??= again().finally(() => { identifying = null; });
    return identifying;
  }

  // ---- what is to be sent: kept until the server has it ----------------------------------------------------------

  const outboxKey = () => `rollcall.outbox.${me.id}`;
  // Files are too large for the storage of a browser: a message with files is kept in this tab only.
  const saveOutbox = () => save(localStorage, outboxKey(), outbox.filter((item) => !item.attachments));
  let flushing = false, retryTimer = 0, retryMs = 1000;

  function post(fields) {
    const item = { id: newId(), room: room.id, at: new Date().toISOString(), kind: "message", mentions: [], ...fields };
    outbox.push(item);
    saveOutbox();
    save(localStorage, "rollcall.hinted", true);
    $("log").querySelector(".welcome")?.remove();
    showPending(item);
    toBottom();
    flush();
  }

  async function flush() {
    if (flushing) return;
    flushing = true;
    clearTimeout(retryTimer);
    try {
      for (let item; (item = outbox.find((each) => !each.failed)); ) {
        if (!await deliver(item)) {
          retryTimer = setTimeout(flush, retryMs);
          retryMs = Math.min(retryMs * 2, MAX_WAIT_MS);
          break;
        }
        retryMs = 1000;
      }
    } finally { flushing = false; }
  }

  async function deliver(item) {
    const { id, text, kind, mentions, reply_to } = item;
    const attachments = item.attachments?.map(({ name, type, data }) => ({ name, type, data }));
    let answer;
    try {
      answer = await api(chatPath(item.room, "messages"), { id, text, kind, mentions, reply_to, attachments, sender: { id: me.id, name: me.name } });
    } catch { markPending(item); return false; }
    if (answer.status === 401) { await identifyAgain(); return false; }
    if (answer.status >= 500 || answer.status === 429 || answer.status === 408) { markPending(item); return false; }
    if (answer.ok) { outbox = outbox.filter((each) => each.id !== id); item.sent = true; } else item.failed = answer.error.message ?? String(answer.status);
    saveOutbox();
    markPending(item);
    return true;
  }

  // ---- what happens in the room ----------------------------------------------------------------------------------

  let stream = null, reconnectTimer = 0, reconnectMs = 1000, pollTimer = 0, hiddenTimer = 0, isConnected = true;

  const eventsPath = (query) => `${chatPath(room.id, "events")}?token=${encodeURIComponent(me.token)}&${cursor ? `after=${cursor}` : `last=${HISTORY}`}${query}`;

  function connect() {
    disconnect();
    stream = new EventSource(eventsPath(""));
    stream.onopen = () => { connected(true); reconnectMs = 1000; retryMs = 1000; flush(); setTimeout(settled, 300); };
    stream.onmessage = (message) => { const event = JSON.parse(message.data); if (event.type === "closed") pollInstead(); else take(event); };
    stream.onerror = () => {
      connected(false);
      if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects with the cursor by itself
      reconnectTimer = setTimeout(reconnect, reconnectMs);
      reconnectMs = Math.min(reconnectMs * 2, MAX_WAIT_MS);
    };
  }

  async function reconnect() {
    const answer = await api(eventsPath("&wait=0")).catch(() => null);
    if (answer?.status === 401) await identifyAgain();
    if (answer?.status === 403) { location.hash = ""; return; }
    connect();
  }

  function disconnect() {
    clearTimeout(reconnectTimer);
    clearInterval(pollTimer);
    stream?.close();
    stream = null;
  }

  // Also for a tab of somebody who has too many streams: to connect again would close the stream of another tab.
  function pollInstead() {
    disconnect();
    pollTimer = setInterval(poll, POLL_MS);
  }

  async function poll() {
    const at = room, answer = await api(eventsPath("&wait=0")).catch(() => null);
    connected(answer !== null);
    if (answer?.ok && at === room) answer.json.events.forEach(take);
  }

  // A browser allows few connections to one server: tabs that nobody looks at for a while let theirs go.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (!room) return;
    if (document.hidden) hiddenTimer = setTimeout(pollInstead, HIDDEN_MS);
    else { if (!stream) connect(); if (atBottom()) seeAll(); }
  });

  function connected(yes) {
    isConnected = yes;
    $("connection").textContent = yes ? "" : say("offline");
    $("connection").classList.toggle("trouble", !yes);
    if (!yes) showStatus("");
  }

  function take(event) {
    if (event.type === "status") { showStatus(event.text); return; }
    cursor = event.cursor;
    rememberSeen(room.id, cursor);
    if (event.type === "edited" || event.type === "deleted") { change(event); return; }
    if (event.type === "message") showStatus("");
    if (event.type === "said") meet(event.sender);
    const known = rows.get(event.id);
    if (known && !known.pending) return;
    const stay = !atBottom();
    known?.element.remove();
    if (known) rows.delete(event.id);
    show(event);
    if (event.kind === "choice" && event.sender?.id === me.id) spend(event.reply_to, event.text);
    for (const id of event.closes ?? []) retire(id);
    if (!stay || known) toBottom(); else unseen += 1;
    if (document.hidden && !stay) unseen += 1;
    showUnseen();
  }

  let statusTimer = 0;
  function showStatus(text) {
    clearTimeout(statusTimer);
    $("status").textContent = text ? `${bot.name}: ${text}` : "";
    $("status").classList.toggle("busy", Boolean(text));
    if (text) statusTimer = setTimeout(() => showStatus(""), STATUS_MS);
  }

  function note(text) {
    $("status").textContent = text;
    statusTimer = setTimeout(() => showStatus(""), 8000);
  }

  const settled = () => $("scroller").setAttribute("aria-busy", "false");

  // ---- rows of the log -------------------------------------------------------------------------------------------

  function hue(id) {
    let hash = 0x811c9dc5;
    for (const char of id) hash = Math.imul(hash ^ char.codePointAt(0), 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    return ((hash >>> 8) % 24) * 15;
  }

  function initials(name) {
    const words = (name.replace(/\p{P}+/gu, " ").trim() || name).split(/\s+/u), first = [...words[0]];
    if (/[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/u.test(first[0] ?? "")) return first.slice(-1).join("");
    return (first[0] + (words.length > 1 ? [...words.at(-1)][0] : "")).toUpperCase();
  }

  function dress(avatar, id, name) {
    avatar.textContent = initials(name);
    avatar.classList.toggle("bot", id === "");
    avatar.style.setProperty("--hue", hue(id));
  }

  const authorOf = (event) => event.type === "message" ? { id: "", name: bot.name } : event.sender;
  const timeOf = (iso) => new Date(iso).toLocaleTimeString(navigator.language, { hour: "2-digit", minute: "2-digit" });

  function dayOf(iso) {
    const day = new Date(iso), today = new Date(), yesterday = new Date(today - 86400000);
    if (day.toDateString() === today.toDateString()) return say("today");
    if (day.toDateString() === yesterday.toDateString()) return say("yesterday");
    return day.toLocaleDateString(LANGUAGE, { weekday: "long", day: "numeric", month: "long" });
  }

  function show(event, pending) {
    const log = $("log"), author = authorOf(event), mine = author.id === me.id;
    log.querySelector(".welcome:not(.first)")?.remove();
    const tail = pending ? null : log.querySelector(".row.unsent, .welcome"); // what stays below everything else
    const before = (tail ? tail.previousElementSibling : log.lastElementChild)?.data;
    if (!before || new Date(before.at).toDateString() !== new Date(event.at).toDateString()) {
      const day = make("li", "day", dayOf(event.at));
      day.data = { at: event.at };
      log.insertBefore(day, tail);
    }
    const row = make("li", "row");
    row.data = event;
    row.classList.toggle("mine", mine);
    row.classList.toggle("joined", Boolean(before?.type) && authorOf(before).id === author.id && new Date(event.at) - new Date(before.at) < JOIN_MS);
    const answersMe = rows.get(event.reply_to)?.event.sender?.id === me.id;
    row.classList.toggle("named", !mine && !answersMe && (event.mentions ?? []).includes(me.id));
    row.classList.toggle("private", Boolean(event.private_to));
    row.classList.toggle("pressed", event.kind === "choice");
    row.classList.toggle("unsent", Boolean(pending));
    const avatar = make("span", "avatar");
    avatar.setAttribute("aria-hidden", "true");
    dress(avatar, author.id, author.name);
    row.append(avatar, nameLine(event, author), bubble(event));
    if (event.choices?.length) row.append(choiceButtons(event));
    row.append(metaLine(event));
    log.insertBefore(row, tail);
    rows.set(event.id, { element: row, event, pending: Boolean(pending) });
    forgetOld();
    return row;
  }

  function change(event) {
    const known = rows.get(event.id);
    if (!known) return;
    if (event.type === "deleted") { known.element.remove(); rows.delete(event.id); return; }
    const shown = Object.assign(known.event, { text: event.text, choices: event.choices, format: event.format });
    known.element.querySelector(".bubble").replaceWith(bubble(shown));
    known.element.querySelector(".choices")?.remove();
    if (shown.choices.length) known.element.querySelector(".meta").before(choiceButtons(shown));
  }

  function nameLine(event, author) {
    const line = make("div", "from"), name = make("button", author.id ? "" : "bot", author.name);
    name.style.setProperty("--hue", hue(author.id));
    name.onclick = () => mention(author.name);
    line.append(name);
    if (!author.id) line.append(make("span", "badge", say("bot")));
    if (author.role && author.role !== "member") line.append(make("span", "badge", say(author.role)));
    return line;
  }

  function bubble(event) {
    const box = make("div", "bubble");
    box.dir = "auto";
    if (event.reply_to) box.append(quote(event.reply_to));
    const replied = rows.get(event.reply_to)?.event;
    for (const id of event.type === "message" ? event.mentions : []) {
      const name = id === me.id ? me.name : people.get(id);
      if (name && !event.text.includes(name) && replied?.sender?.id !== id) box.append(make("span", "at", `@${name}`), " ");
    }
    // Only answers of a model, and functions that say so: people's 2**3 or "# 1" is meant as it is.
    if (event.format === "markdown") {
      box.classList.add("rich");
      format(box, event.text.replaceAll("\t", "    ").split("\n"));
    } else write(box, event.text);
    for (const file of event.attachments ?? []) box.append(fileBox(file));
    return box;
  }

  const SOUND = /^audio\//, PICTURE = /^image\/(?:png|jpeg|gif|webp)$/;

  function fileBox(file) {
    // Only paths of this server: nothing that was written in a chat is loaded from elsewhere.
    const own = file.url?.startsWith("/api/v1/chats/") ? `${file.url}?token=${encodeURIComponent(me.token)}` : "";
    const box = make(own && SOUND.test(file.type) ? "div" : "a", "file");
    if (PICTURE.test(file.type)) {
      const image = make("img");
      image.alt = file.name;
      image.loading = "lazy";
      image.src = own || `data:${file.type};base64,${file.data}`;
      image.onload = () => { if (unseen === 0) toBottom(); };
      box.append(image);
    } else if (own && SOUND.test(file.type)) {
      const player = make("audio");
      player.controls = true;
      player.preload = "metadata";
      player.setAttribute("aria-label", file.name);
      player.src = own;
      box.append(player);
    } else box.append(make("span", "", `📎 ${file.name}`));
    if (own && box.tagName === "A") { box.href = own; box.target = "_blank"; box.rel = "noopener"; }
    return box;
  }

  function quote(id) {
    const box = make("button", "quote"), known = rows.get(id)?.event;
    box.append(make("b", "", known ? authorOf(known).name : say("earlier")), make("span", "", known?.text.slice(0, 200) ?? ""));
    box.onclick = () => {
      const target = rows.get(id)?.element;
      if (!target) return;
      target.scrollIntoView({ block: "center" });
      target.classList.remove("flash");
      requestAnimationFrame(() => target.classList.add("flash"));
    };
    return box;
  }

  function choiceButtons(event) {
    const box = make("div", "choices");
    for (const choice of event.choices) {
      const button = make("button", "", choice.label);
      button.dataset.value = choice.value;
      button.toggleAttribute("data-stays", Boolean(choice.stays));
      button.onclick = () => { spend(event.id, choice.value); post({ kind: "choice", text: choice.value, shown: choice.label, reply_to: event.id }); };
      box.append(button);
    }
    return box;
  }

  const buttonsOf = (id) => rows.get(id)?.element.querySelectorAll(".choices button") ?? [];

  function retire(id) {
    // A command may be given again: a vote can be changed. A suggestion answers no question, so the others stay.
    for (const button of buttonsOf(id)) button.disabled = !button.dataset.value.startsWith("/") && !button.hasAttribute("data-stays");
  }

  function spend(id, chosen) {
    retire(id);
    for (const button of buttonsOf(id)) {
      button.setAttribute("aria-pressed", String(button.dataset.value === chosen || button.textContent === chosen));
    }
  }

  function metaLine(event) {
    const line = make("div", "meta"), time = make("time", "", timeOf(event.at));
    time.dateTime = event.at;
    time.title = new Date(event.at).toLocaleString(navigator.language);
    line.append(time);
    if (event.private_to) line.append(make("span", "badge", say("onlyYou")));
    if (event.item) { fillPending(line, event.item); return line; }
    const reply = make("button", "reply", say("reply"));
    reply.onclick = () => startReply(event);
    line.append(reply);
    return line;
  }

  function fillPending(line, item) {
    if (item.failed) {
      const again = make("button", "", say("again")), discard = make("button", "", say("discard"));
      again.onclick = () => { delete item.failed; saveOutbox(); markPending(item); flush(); };
      discard.onclick = () => { outbox = outbox.filter((each) => each.id !== item.id); saveOutbox(); rows.get(item.id)?.element.remove(); rows.delete(item.id); };
      line.append(make("span", "failed", say("failed", { why: item.failed })), again, discard);
    } else if (!item.sent) line.append(make("span", "waiting", say("waiting")));
  }

  function showPending(item) {
    if (item.room !== room.id || rows.has(item.id)) return;
    const sender = { id: me.id, name: me.name };
    show({ type: "said", id: item.id, at: item.at, sender, kind: item.kind, text: item.shown ?? item.text, reply_to: item.reply_to, mentions: [], attachments: item.attachments, item }, true);
  }

  function markPending(item) {
    const known = rows.get(item.id);
    if (known?.pending) known.element.querySelector(".meta").replaceWith(metaLine({ ...known.event, item }));
  }

  function forgetOld() {
    const log = $("log");
    if (rows.size <= ROWS_KEPT || !atBottom()) return;
    for (const [id, row] of rows) {
      if (rows.size <= ROWS_KEPT - 50) break;
      if (row.pending) continue;
      row.element.remove();
      rows.delete(id);
    }
    while (log.firstElementChild?.matches(".day") && log.children[1]?.matches(".day")) log.firstElementChild.remove();
  }

  // ---- text: links, code and names, and in the bot's answers Markdown, as nodes ------------------------------------

  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const NESTED_AT_MOST = 6, COLUMNS_AT_MOST = 50;

  const PLAIN = "```(?:\\w*\\n)?(?<block>[\\s\\S]+?)```|`(?<code>[^`\\n]+)`|(?<url>https?://[^\\s<>\"'`，。！？、；：（）【】「」]+)";
  // Marks between ASCII letters and digits are arithmetic or names: 2*3*4, snake_case.
  const FORMATTED = "|\\\\(?<literal>[!-/:-@[-`{-~])"
    + "|!?\\[(?<label>[^\\]\\n]+)\\]\\(<?(?<target>https?://[^\\s<>()\"]+(?:\\([^\\s<>()\"]*\\)[^\\s<>()\"]*)*)>?(?:\\s+\"[^\"\\n]*\")?\\)"
    + "|(?<![A-Za-z0-9_*~])(?<mark>\\*{1,3}|_{1,3}|~~)(?=[^\\s*_~]|[*_~]{1,2}[^\\s*_~])(?<inner>[^\\n]+?)(?<=[^\\s*])\\k<mark>(?![A-Za-z0-9_*])";
  const TAGS = { "*": ["em"], "**": ["strong"], "***": ["strong", "em"], _: ["em"], __: ["strong"], ___: ["strong", "em"], "~~": ["s"] };

  let compiled = {}; // of the people who are known now: a large table has thousands of cells
  function special(isFormatted) {
    const names = [bot.name, ...bot.aliases, ...people.values(), me.name].map(escaped).sort((a, b) => b.length - a.length).join("|");
    if (compiled.names !== names) compiled = { names };
    return compiled[isFormatted] ??= new RegExp(`${PLAIN}|(?<name>[@＠](?:${names}))(?![\\p{L}\\p{N}_])${isFormatted ? FORMATTED : ""}`, "giu");
  }

  function write(box, text, depth = NESTED_AT_MOST) {
    let at = 0;
    for (const found of text.matchAll(special(depth < NESTED_AT_MOST))) {
      const { block, code, url, name, literal, label, target, mark, inner } = found.groups;
      box.append(text.slice(at, found.index).replace(block === undefined ? /$^/ : /\n$/, ""));
      at = found.index + found[0].length;
      if (block !== undefined) {
        box.append(codeBlock(block.replace(/\n$/, "")));
        if (text[at] === "\n") at += 1; // the block ends its line by itself
      } else if (code !== undefined) box.append(make("code", "", code));
      else if (name !== undefined) box.append(make("span", "at", name));
      else if (literal !== undefined) box.append(literal);
      else if (target !== undefined) labelled(box, label, target);
      else if (mark !== undefined) {
        const inside = TAGS[mark].reduce((outer, tag) => outer.appendChild(make(tag)), box);
        write(inside, inner, depth + 1);
      } else at = found.index + link(box, url);
    }
    box.append(text.slice(at));
  }

  function link(box, url) {
    const tidy = url.replace(/[.,;:!?]+$|\)+$/, (tail) => tail.startsWith(")") && url.includes("(") ? tail : "");
    box.append(anchor(tidy, tidy));
    return tidy.length;
  }

  function anchor(url, text) {
    const made = make("a", "", text);
    made.href = url;
    made.target = "_blank";
    made.rel = "noopener noreferrer nofollow";
    return made;
  }

  // The host is shown, since the words of a link may name another one.
  function labelled(box, label, url) {
    let host = "";
    try { host = new URL(url).host; } catch { box.append(`${label} (${url})`); return; }
    box.append(anchor(url, label.replace(/\*\*|`/g, "")));
    if (label !== url) box.append(make("small", "", ` (${host})`));
  }

  function codeBlock(text) {
    const pre = make("pre");
    pre.tabIndex = 0;
    pre.append(make("code", "", text));
    return pre;
  }

  const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/, HEADING = /^ {0,3}(#{1,6}) +(\S.*)$/, RULE = /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/;
  const QUOTE = /^ {0,3}> ?/, ITEM = /^( *)([-*+•]|\d{1,9}[.)]) +(\S.*)$/, DELIMITER = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;
  const isTable = (lines, at) => lines[at].includes("|") && lines[at].split("|").length <= COLUMNS_AT_MOST && (lines[at + 1] ?? "").includes("|") && DELIMITER.test(lines[at + 1]);
  const isBlock = (lines, at) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((each) => each.test(lines[at])) || isTable(lines, at);
  const indentOf = (line) => line.search(/\S|$/);

  // Each reader takes the lines of its block from the front of `lines`.
  function format(box, lines, levels = [], depth = 0) {
    while (lines.length) {
      const line = lines[0], heading = HEADING.exec(line), fence = FENCE.exec(line);
      if (!line.trim()) lines.shift();
      else if (fence) {
        lines.shift();
        const end = lines.findIndex((each) => each.trim().startsWith(fence[1]) && !each.replaceAll(fence[1][0], "").trim());
        box.append(codeBlock(lines.splice(0, end < 0 ? lines.length : end).join("\n")));
        lines.shift();
      } else if (heading) {
        lines.shift();
        while (levels.at(-1) >= heading[1].length) levels.pop();
        levels.push(heading[1].length);
        write(box.appendChild(make(`h${Math.min(6, levels.length + 1)}`)), heading[2].replace(/ +#+ *$/, ""), 0);
      } else if (RULE.test(line)) { lines.shift(); box.append(make("hr")); }
      else if (isTable(lines, 0)) table(box, lines);
      else if (depth < NESTED_AT_MOST && QUOTE.test(line)) {
        const end = lines.findIndex((each) => !QUOTE.test(each));
        const quoted = lines.splice(0, end < 0 ? lines.length : end).map((each) => each.replace(QUOTE, ""));
        format(box.appendChild(make("blockquote")), quoted, levels, depth + 1);
      } else if (depth < NESTED_AT_MOST && ITEM.test(line)) list(box, lines, levels, depth);
      else {
        const said = [lines.shift()];
        while (lines.length && lines[0].trim() && !isBlock(lines, 0)) said.push(lines.shift());
        write(box.appendChild(make("p")), said.join("\n"), 0);
      }
    }
  }

  function list(box, lines, levels, depth) {
    const [, spaces, bullet] = ITEM.exec(lines[0]), isOrdered = /\d/.test(bullet), made = make(isOrdered ? "ol" : "ul");
    if (isOrdered) made.start = parseInt(bullet, 10);
    for (let item; lines.length && (item = ITEM.exec(lines[0])) && /\d/.test(item[2]) === isOrdered && item[1].length <= spaces.length + 1; ) {
      const body = [item[3].replace(/^\[ \] /, "☐ ").replace(/^\[x\] /i, "☑ ")], room = item[1].length + item[2].length + 1;
      lines.shift();
      const belongs = () => indentOf(lines.find((each) => each.trim()) ?? "") > item[1].length + 1;
      for (let line; belongs(); body.push(line.slice(Math.min(indentOf(line), room)))) line = lines.shift();
      format(made.appendChild(make("li")), body, levels, depth + 1);
      while (lines.length > 1 && !lines[0].trim() && (ITEM.test(lines[1]) || !lines[1].trim())) lines.shift();
    }
    box.append(made);
  }

  function table(box, lines) {
    const cellsOf = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((each) => each.replaceAll("\\|", "|").trim());
    const head = cellsOf(lines.shift()), sides = cellsOf(lines.shift()).map((each) => (each.endsWith(":") ? (each.startsWith(":") ? "center" : "right") : "left"));
    const frame = box.appendChild(make("div", "wide")), made = frame.appendChild(make("table")), rows = () => made.tBodies[0] ?? made.createTBody();
    const fill = (row, tag, texts) => texts.slice(0, head.length).forEach((text, at) => {
      const cell = row.appendChild(make(tag));
      cell.style.textAlign = sides[at] ?? "left";
      write(cell, text, 0);
    });
    frame.tabIndex = 0;
    fill(made.createTHead().insertRow(), "th", head);
    while (lines.length && lines[0].includes("|")) fill(rows().insertRow(), "td", cellsOf(lines.shift()));
  }

  // ---- scrolling -------------------------------------------------------------------------------------------------

  const atBottom = () => { const box = $("scroller"); return box.scrollHeight - box.scrollTop - box.clientHeight < 90; };
  const toBottom = () => { const box = $("scroller"); box.scrollTop = box.scrollHeight; };
  const seeAll = () => { unseen = 0; showUnseen(); };

  function showUnseen() {
    $("pill").hidden = unseen === 0 || atBottom();
    $("pill").textContent = `↓ ${unseen === 1 ? say("newMessage") : say("newMessages", { count: unseen })}`;
    document.title = `${unseen ? `(${unseen}) ` : ""}${room.title} · ${bot.name}`;
  }

  // ---- rooms and people ------------------------------------------------------------------------------------------

  const myRooms = () => load(localStorage, "rollcall.rooms", []);
  const seenKey = () => `rollcall.seen.${me.id}`;
  const unread = new Set();

  function rememberSeen(id, at) {
    save(localStorage, seenKey(), { ...load(localStorage, seenKey(), {}), [id]: at });
  }

  function allRooms() {
    const own = myRooms().filter((id) => !shownRooms.some((each) => each.id === id)).map((id) => ({ id, title: id }));
    return [...shownRooms, ...own, { id: `dm-${me.id}`, title: say("privateRoom"), mark: "◦" }];
  }

  function showRooms() {
    $("rooms").replaceChildren(...allRooms().map((each) => {
      const item = make("li"), button = make("button");
      button.append(make("span", "mark", each.mark ?? "#"), make("span", "ellipsis", each.title));
      if (unread.has(each.id)) button.append(Object.assign(make("span"), { className: "dot", style: "position:static" }));
      if (each.id === room?.id) button.setAttribute("aria-current", "true");
      button.onclick = () => go(each.id);
      item.append(button);
      return item;
    }));
    $("elsewhere").hidden = unread.size === 0;
  }

  function enter(id) {
    const rooms = allRooms();
    if (!rooms.some((each) => each.id === id)) {
      save(localStorage, "rollcall.rooms", [...myRooms(), id].slice(-30));
      rooms.push({ id, title: id });
    }
    room = rooms.find((each) => each.id === id);
    cursor = "";
    unseen = 0;
    rows.clear();
    people.clear();
    $("my-name").textContent = me.name;
    unread.delete(id);
    $("log").replaceChildren();
    $("scroller").setAttribute("aria-busy", "true");
    $("room-title").textContent = room.mark ? room.title : `# ${room.title}`;
    $("text").placeholder = room.mark ? room.title : say("writeTo", { room: room.title });
    stopReply();
    showStatus("");
    showRooms();
    showPeople();
    closeSide();
    showUnseen();
    welcome();
    outbox.forEach(showPending);
    connect();
  }

  // At once, not when the browser gets round to its event: what is typed next belongs to this room.
  function go(id) {
    location.hash = encodeURIComponent(id);
    if (id === room?.id) closeSide(); else enter(id);
  }

  function roomOfHash() {
    try { return decodeURIComponent(location.hash.slice(1)).normalize("NFC").trim().slice(0, 60); } catch { return ""; }
  }

  function meet(person) {
    people.delete(person.id);
    people.set(person.id, person.name);
    // Another member of this room may have had my name before me: then the server has put a number behind mine.
    if (person.id === me.id && person.name.replace(/ \(\d+\)$/, "") === me.name) $("my-name").textContent = person.name;
    showPeople();
  }

  function showPeople() {
    const others = [...people].filter(([id]) => id !== me.id).reverse().slice(0, 50);
    $("people").replaceChildren(...[["", bot.name], ...others].map(([id, name]) => {
      const item = make("li"), button = make("button"), avatar = make("span", "avatar");
      avatar.setAttribute("aria-hidden", "true");
      dress(avatar, id, name);
      button.append(avatar, make("span", "ellipsis", name));
      if (id === "") button.append(make("small", "", say("bot")));
      button.onclick = () => { closeSide(); mention(name); };
      item.append(button);
      return item;
    }));
  }

  async function lookElsewhere() {
    if (document.hidden || !isConnected) return;
    const seen = load(localStorage, seenKey(), {});
    for (const each of allRooms()) {
      if (each.id === room.id) continue;
      const answer = await api(chatPath(each.id, "events?wait=0&last=1")).catch(() => null);
      if (!answer?.ok) return;
      const newest = answer.json.events.at(-1)?.cursor;
      if (newest && seen[each.id] && newest !== seen[each.id]) unread.add(each.id); else unread.delete(each.id);
      if (newest && !seen[each.id]) rememberSeen(each.id, newest);
    }
    showRooms();
  }

  function welcome() {
    if (outbox.some((item) => item.room === room.id)) return;
    const box = make("li", load(localStorage, "rollcall.hinted", false) ? "welcome" : "welcome first");
    const isPrivate = Boolean(room.mark), tries = isPrivate ? ["tryDice", "tryReminder", "tryHelp"] : ["tryRemind", "tryPick", "tryHelp"];
    box.append(make("h2", "", say(isPrivate ? "privateTitle" : "welcomeTitle")), make("p", "", say(isPrivate ? "privateText" : "welcomeText")));
    for (const text of tries.map((key) => say(key))) {
      const button = make("button", "", text);
      // Nobody else reads a private chat, so the suggestion is sent; in a room it can be changed first.
      button.onclick = () => { $("text").value = text; fit(); $("text").focus(); if (isPrivate) submit(); };
      box.append(button);
    }
    $("log").append(box);
  }

  const closeSide = () => { $("app").classList.remove("open"); $("veil").hidden = true; };

  // ---- writing ---------------------------------------------------------------------------------------------------

  function fit() {
    const box = $("text");
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
    $("send").disabled = !box.value.trim() && !picked.length;
  }

  // ---- files -----------------------------------------------------------------------------------------------------

  const contentOf = (file) => new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });

  async function pick(files) {
    if (!uploadBytes) return;
    for (const file of files) {
      if (picked.length >= FILES_AT_MOST) { note(say("tooManyFiles", { count: FILES_AT_MOST })); break; }
      const size = picked.reduce((sum, each) => sum + each.size, file.size);
      if (size > uploadBytes) { note(say("tooLarge", { limit: uploadBytes / 1e6 })); continue; }
      const type = /^[\w.+-]+\/[\w.+-]+$/.exec(file.type.split(";")[0])?.[0] ?? "application/octet-stream";
      try { if (file.size) picked.push({ name: file.name || say("file"), type, size: file.size, data: await contentOf(file) }); } catch { /* the file went away */ }
    }
    showPicked();
  }

  function showPicked() {
    $("picked").hidden = !picked.length;
    $("picked").replaceChildren(...picked.map((file) => {
      const item = make("li"), remove = make("button", "icon", "×");
      remove.setAttribute("aria-label", say("removeFile", { name: file.name }));
      remove.onclick = () => { picked = picked.filter((each) => each !== file); showPicked(); $("text").focus(); };
      item.append(fileBox(file), remove);
      if (PICTURE.test(file.type)) item.title = file.name;
      return item;
    }));
    fit();
  }

  function listenForFiles() {
    const main = document.querySelector("main"), carries = (event) => uploadBytes && event.dataTransfer?.types.includes("Files");
    $("attach").hidden = !uploadBytes;
    $("attach").onclick = () => $("files").click();
    $("files").onchange = async () => { await pick([...$("files").files]); $("files").value = ""; $("text").focus(); };
    $("text").onpaste = (event) => { if (event.clipboardData?.files.length) { event.preventDefault(); pick([...event.clipboardData.files]); } };
    main.ondragover = (event) => { if (carries(event)) { event.preventDefault(); main.classList.add("dropping"); } };
    main.ondragleave = (event) => { if (!main.contains(event.relatedTarget)) main.classList.remove("dropping"); };
    main.ondrop = (event) => { main.classList.remove("dropping"); if (carries(event)) { event.preventDefault(); pick([...event.dataTransfer.files]); } };
  }

  function mention(name) {
    const box = $("text"), before = box.value.slice(0, box.selectionStart), after = box.value.slice(box.selectionEnd);
    box.setRangeText(`${before && !/\s$/u.test(before) ? " " : ""}@${name}${/^\s/u.test(after) ? "" : " "}`, box.selectionStart, box.selectionEnd, "end");
    box.focus();
    fit();
  }

  function startReply(event) {
    replyTo = event.id;
    $("replying-name").textContent = say("replyingTo", { name: authorOf(event).name });
    $("replying-text").textContent = event.text.slice(0, 120);
    $("replying").hidden = false;
    $("text").focus();
  }

  function stopReply() {
    replyTo = null;
    $("replying").hidden = true;
  }

  function submit() {
    const text = $("text").value.trim();
    if (!text && !picked.length) return;
    if (!room) { sendsOnEntry = true; return; }
    let rest = text.toLowerCase();
    const mentions = [];
    for (const [id, name] of [...people].sort((a, b) => b[1].length - a[1].length)) { // "@Ann (2)" does not mention Ann
      const called = `@${name.toLowerCase()}`;
      if (rest.includes(called) && id !== me.id) mentions.push(id);
      rest = rest.replaceAll(called, " ");
    }
    post({ text, mentions: mentions.slice(0, 50), reply_to: replyTo, ...(picked.length ? { attachments: picked } : {}) });
    $("text").value = "";
    picked = [];
    showPicked();
    stopReply();
    closeHints();
    fit();
    seeAll();
  }

  // ---- completion of names and commands --------------------------------------------------------------------------

  let hints = [], chosen = 0;

  function wanted() {
    const box = $("text"), before = box.value.slice(0, box.selectionStart);
    const name = /(?:^|[\s，。])([@＠])([^\s@＠]*)$/u.exec(before);
    if (name) {
      const start = before.length - name[2].length - 1, part = name[2].toLowerCase();
      const all = [[bot.name, say("bot")], ...[...people].filter(([id]) => id !== me.id).reverse().map(([, each]) => [each, ""])];
      return all.filter(([each]) => each.toLowerCase().startsWith(part)).slice(0, 8).map(([each, about]) => ({ label: `@${each}`, about, start, text: `@${each} ` }));
    }
    if (/^\/\S*$/u.test(before)) {
      const part = before.toLowerCase(), isIt = (each) => each.word.toLowerCase() === part;
      return commands.filter((each) => each.word.toLowerCase().startsWith(part)).sort((one, other) => isIt(other) - isIt(one)).slice(0, 30).map((each) => ({ label: each.usage || each.word, about: each.description, start: 0, text: `${each.word} ` }));
    }
    return [];
  }

  function showHints() {
    hints = wanted();
    chosen = 0;
    $("hints").hidden = hints.length === 0;
    $("hints").replaceChildren(...hints.map((hint, index) => {
      const item = make("li");
      item.id = `hint-${index}`;
      item.setAttribute("role", "option");
      item.append(make("b", "", hint.label), make("span", "", hint.about));
      item.onpointerdown = (event) => { event.preventDefault(); accept(index); };
      return item;
    }));
    choose(0);
  }

  function choose(index) {
    chosen = hints.length ? (index + hints.length) % hints.length : 0;
    [...$("hints").children].forEach((item, at) => { item.setAttribute("aria-selected", String(at === chosen)); if (at === chosen) item.scrollIntoView({ block: "nearest" }); });
    if (hints.length) $("text").setAttribute("aria-activedescendant", `hint-${chosen}`); else $("text").removeAttribute("aria-activedescendant");
  }

  function accept(index) {
    const hint = hints[index], box = $("text");
    box.setRangeText(hint.text, hint.start, box.selectionStart, "end");
    closeHints();
    fit();
  }

  function closeHints() {
    hints = [];
    $("hints").hidden = true;
    choose(0);
  }

  function onKey(event) {
    if (event.isComposing || event.keyCode === 229) return; // an input method is at work
    if (hints.length) {
      const exact = hints[chosen].text.trim() === $("text").value.trim();
      if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); choose(chosen + (event.key === "ArrowDown" ? 1 : -1)); return; }
      if (event.key === "Tab" || (event.key === "Enter" && !exact)) { event.preventDefault(); accept(chosen); return; }
      if (event.key === "Escape") { event.preventDefault(); closeHints(); return; }
    }
    if (event.key === "Escape") stopReply();
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); submit(); }
  }

  // ---- start -----------------------------------------------------------------------------------------------------

  function label() {
    document.documentElement.lang = LANGUAGE === "zh" ? "zh-CN" : "en";
    for (const element of document.querySelectorAll("[data-text]")) element.textContent = say(element.dataset.text);
    for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", say(element.dataset.label));
    for (const element of document.querySelectorAll("[data-placeholder]")) element.placeholder = say(element.dataset.placeholder);
    $("side-title").textContent = bot.name;
    document.title = bot.name;
    $("ask-bot").textContent = say("ask");
  }

  function listenForText() {
    $("composer").onsubmit = (event) => { event.preventDefault(); submit(); };
    $("text").oninput = () => { sendsOnEntry = false; fit(); showHints(); };
    $("text").onkeydown = onKey;
    $("text").onblur = closeHints;
  }

  function listen() {
    $("stop-reply").onclick = stopReply;
    $("ask-bot").onclick = () => mention(bot.name);
    $("pill").onclick = () => { toBottom(); seeAll(); };
    $("scroller").onscroll = () => { if (atBottom() && unseen) seeAll(); };
    $("rename").onclick = askName;
    $("open-side").onclick = () => { $("app").classList.add("open"); $("veil").hidden = false; $("close-side").focus(); };
    $("close-side").onclick = closeSide;
    $("veil").onclick = closeSide;
    $("new-room").onsubmit = (event) => {
      event.preventDefault();
      const id = $("room-name").value.normalize("NFC").trim().toLowerCase().replace(/^dm-/u, "").replace(/[\s/\\#?%]+/gu, "-");
      $("room-name").value = "";
      if (id) go(id);
    };
    addEventListener("hashchange", () => { const id = roomOfHash() || shownRooms[0].id; if (id !== room?.id) enter(id); });
    addEventListener("online", () => { retryMs = 1000; flush(); if (stream?.readyState === EventSource.CLOSED) connect(); });
    addEventListener("keydown", (event) => { if (event.key === "Escape") closeSide(); });
    addEventListener("resize", () => { if (unseen === 0) toBottom(); });
  }

  async function start() {
    label();
    listenForText();
    $("connection").textContent = say("joining");
    const described = await patiently(() => api("/api/v1/page"));
    bot = described.json.bot;
    shownRooms = described.json.rooms;
    uploadBytes = described.json.upload_bytes ?? 0;
    label();
    await identify();
    outbox = load(localStorage, outboxKey(), []);
    listen();
    listenForFiles();
    enter(roomOfHash() || shownRooms[0].id);
    if (sendsOnEntry) submit(); else fit();
    flush();
    await becomeOwner();
    setInterval(lookElsewhere, ELSEWHERE_MS);
    lookElsewhere();
    const listed = () => patiently(() => api(`/api/v1/commands?language=${encodeURIComponent(navigator.language)}`));
    let answer = await listed();
    if (answer.status === 401) { await identifyAgain(); answer = await listed(); }
    commands = answer.json.commands ?? [];
    // The member may have typed "/" before the list arrived.
    if (document.activeElement === $("text")) showHints();
  }

  start();
})();
